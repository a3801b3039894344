"""Grants by key, where a workspace lets keys decide. Only with `approvals:review`, and never by an agent's key."""

from functools import partial

from django.http import HttpRequest
from ninja import Router, Status

from approvals.models import Action, Grant
from approvals.rules import grants
from console.workspaces import db, permissions
from console.workspaces.errors import NotFound
from console.workspaces.keys import Caller

from . import acting, listing, schemas
from .door import caller, door

router = Router(tags=["Rules"])
reviews = partial(door, router, keys="workspace", may=(permissions.APPROVALS_REVIEW,))


@reviews("GET", "/grants", answers={200: schemas.Grants})
async def list_grants(
    request: HttpRequest, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.Grants:
    """List the grants that hold now. Newest first."""
    found, more = await db.read(_list, caller(request), limit, cursor)
    return schemas.Grants(items=[schemas.Grant.of(row) for row in found], next_cursor=more)


def _list(who: Caller, limit: int, cursor: str | None) -> tuple[list[Grant], str | None]:
    return listing.page(Grant.objects.in_force().filter(workspace_id=who.workspace_id), limit, cursor)


@reviews("POST", "/grants", answers={201: schemas.Grant}, fails=("not_found", "already_decided", "wrong_digest"))
async def give_grant(request: HttpRequest, body: schemas.NewGrant) -> Status[schemas.Grant]:
    """Approve an action and grant it. Its conversation may do exactly the same again, in the same sandbox, until the
    time is over or somebody ends it. Only in a workspace that lets keys decide."""
    return Status(201, await db.write(_give, caller(request), body))


def _give(who: Caller, body: schemas.NewGrant) -> schemas.Grant:
    action = Action.objects.visible_to(who).select_related("agent").filter(pk=body.action_id).first()
    if action is None:
        raise NotFound("action", body.action_id)
    return schemas.Grant.of(grants.give_by_key(action, caller=who, digest=body.digest, minutes=body.minutes))


@reviews("DELETE", "/grants/{grant_id}", answers={200: schemas.Done})
async def end_grant(request: HttpRequest, grant_id: str) -> schemas.Done:
    """End a grant. The next call asks; once more changes nothing."""
    await db.write(_end, caller(request), grant_id)
    return schemas.Done()


def _end(who: Caller, grant_id: str) -> None:
    grant = Grant.objects.filter(pk=grant_id, workspace_id=who.workspace_id).first()
    if grant is None:
        raise NotFound("grant", grant_id)
    grants.end(grant, by=acting.member(who))
