"""Members and what they may, as on the pages."""

from functools import partial
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Status

from approvals import leaving
from console.workspaces import away, db, members, owners, permissions
from console.workspaces.keys import Caller
from console.workspaces.models import Member

from . import acting, listing, schemas
from .door import caller, door

router = Router(tags=["Members"])
manages = partial(door, router, keys="workspace", may=(permissions.MEMBERS_MANAGE,))
reviews = partial(door, router, keys="workspace", may=(permissions.APPROVALS_REVIEW,))


@manages("GET", "/members", answers={200: schemas.Members})
async def list_members(
    request: HttpRequest, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.Members:
    """List the workspace's members. Newest first."""
    found, more = await db.read(_list, caller(request), limit, cursor)
    return schemas.Members(items=[schemas.Member.of(row) for row in found], next_cursor=more)


def _list(who: Caller, limit: int, cursor: str | None) -> tuple[list[Member], str | None]:
    rows = Member.objects.current().filter(workspace_id=who.workspace_id)
    return listing.page(rows.select_related("user").prefetch_related("permissions"), limit, cursor)


@manages("POST", "/members", answers={201: schemas.MemberMade}, fails=("conflict",), shown_once=("first_password",))
async def add_member(request: HttpRequest, body: schemas.NewMember) -> Status[schemas.MemberMade]:
    """Add a member. By e-mail address, without any permission yet; a new user gets a first password."""
    return Status(201, await db.write(_add, caller(request), body))


def _add(who: Caller, body: schemas.NewMember) -> schemas.MemberMade:
    by = acting.member(who)
    made, password = members.add_by_email(by.workspace, email=body.email, name=body.name, by=by)
    return schemas.MemberMade.of(made, first_password=password)


@manages("DELETE", "/members/{member_id}", answers={200: schemas.Done}, fails=("conflict",))
async def remove_member(
    request: HttpRequest,
    member_id: str,
    owner: Annotated[str | None, Query(max_length=40, description="A member's id.")] = None,
) -> schemas.Done:
    """Remove a member. Their sessions, keys and permissions end, and what they approved does not start any more. Agents
    that they own are owned by `owner` from now on, or by nobody."""
    await db.write(_remove, caller(request), member_id, owner)
    return schemas.Done()


def _remove(who: Caller, member_id: str, owner: str | None) -> None:
    member, heir = acting.other_member(who, member_id), acting.other_member(who, owner) if owner else None
    leaving.remove(member, by=acting.member(who), heirs=dict.fromkeys((each.pk for each in owners.owned(member)), heir))


@manages("PUT", "/members/{member_id}/permissions/{permission}", answers={200: schemas.Done})
async def give_permission(request: HttpRequest, member_id: str, permission: str) -> schemas.Done:
    """Give a member a permission. Once more changes nothing. Nobody gives `sandboxes:run` to
    themselves, save the only member of a workspace."""
    await db.write(acting.change, members.give, acting.other_member, caller(request), member_id, permission)
    return schemas.Done()


@manages("DELETE", "/members/{member_id}/permissions/{permission}", answers={200: schemas.Done}, fails=("conflict",))
async def take_permission(request: HttpRequest, member_id: str, permission: str) -> schemas.Done:
    """Take a permission from a member. The last `members:manage` of a workspace stays."""
    await db.write(acting.change, members.take, acting.other_member, caller(request), member_id, permission)
    return schemas.Done()


@reviews("PUT", "/members/me/away", answers={200: schemas.Member})
async def be_away(request: HttpRequest, body: schemas.NewAway) -> schemas.Member:
    """Be away until a time. Of the key's own member: their notices go to the deputy, whose rights stay as they are. It
    ends by itself."""
    return await db.write(_leave, caller(request), body)


def _leave(who: Caller, body: schemas.NewAway) -> schemas.Member:
    by = acting.member(who)
    away.leave(until=body.until, deputy=acting.other_member(who, body.deputy) if body.deputy else None, by=by)
    return schemas.Member.of(acting.member(who))


@reviews("DELETE", "/members/me/away", answers={200: schemas.Done})
async def be_back(request: HttpRequest) -> schemas.Done:
    """Be back before that time. Once more changes nothing."""
    await db.write(lambda: away.come_back(by=acting.member(caller(request))))
    return schemas.Done()
