"""Keys: list, make, revoke. A key made by a key never does more than the key that made it."""

from functools import partial

from django.http import HttpRequest
from ninja import Router, Status

from console.workspaces import db, keys, permissions
from console.workspaces.errors import NotFound, PermissionDenied
from console.workspaces.keys import Caller
from console.workspaces.models import Key

from . import acting, listing, schemas
from .door import caller, door

router = Router(tags=["Keys"])
manages = partial(door, router, keys="workspace", may=(permissions.KEYS_MANAGE,))


@manages("GET", "/keys", answers={200: schemas.KeyList})
async def list_keys(
    request: HttpRequest, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.KeyList:
    """List the workspace's keys. Newest first, the revoked ones among them; never a secret."""
    found, more = await db.read(_list, caller(request), limit, cursor)
    return schemas.KeyList(items=[schemas.Key.of(row) for row in found], next_cursor=more)


def _list(who: Caller, limit: int, cursor: str | None) -> tuple[list[Key], str | None]:
    rows = Key.objects.filter(workspace_id=who.workspace_id).prefetch_related("permissions")
    return listing.page(rows, limit, cursor)


@manages("POST", "/keys", answers={201: schemas.KeyMade}, fails=("not_found",), shown_once=("secret",))
async def make_key(request: HttpRequest, body: schemas.NewKey) -> Status[schemas.KeyMade]:
    """Make a key. For an agent, or for the calling member; its secret is in this answer and nowhere else."""
    return Status(201, await db.write(_make, caller(request), body))


def _make(who: Caller, body: schemas.NewKey) -> schemas.KeyMade:
    by = acting.member(who)
    if body.agent_id:
        key, secret = keys.make_agent_key(acting.agent(who, body.agent_id), name=body.name, by=by, days=body.days)
    else:
        _check_within(who, body.permissions)
        key, secret = keys.make_member_key(by, name=body.name, may=body.permissions, by=by, days=body.days)
    return schemas.KeyMade.of(key, secret=secret)


def _check_within(who: Caller, wanted: list[str]) -> None:
    """Else a key that may only make keys could make one that does all that its member may."""
    if beyond := sorted(set(wanted) - who.permissions):
        raise PermissionDenied(
            f"This key does not have `{beyond[0]}`, so it cannot make one that has. Make it on the page Keys.",
            permission=beyond[0],
        )


@manages("DELETE", "/keys/{key_id}", answers={200: schemas.Done})
async def revoke_key(request: HttpRequest, key_id: str) -> schemas.Done:
    """Revoke a key. Once more changes nothing."""
    await db.write(_revoke, caller(request), key_id)
    return schemas.Done()


def _revoke(who: Caller, key_id: str) -> None:
    key = Key.objects.filter(pk=key_id, workspace_id=who.workspace_id).first()
    if key is None:
        raise NotFound("key", key_id)
    keys.revoke(key, by=acting.member(who))
