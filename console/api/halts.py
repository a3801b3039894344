"""Halting an agent or the workspace, as on the pages. Lifting a halt is done there alone, by a person who has just
signed in: a key never lifts one."""

from functools import partial

from django.http import HttpRequest
from ninja import Router

from console.workspaces import db, permissions
from console.workspaces.keys import Caller
from console.workspaces.models import Halt
from sandboxes import quarantine

from . import acting, listing, schemas
from .door import SEES_ACTIONS, caller, door

router = Router(tags=["Halts"])
halts = partial(door, router, keys="workspace", may=(permissions.APPROVALS_REVIEW,), answers={200: schemas.Halt})


@door(router, "GET", "/halts", keys="workspace", may=SEES_ACTIONS, answers={200: schemas.Halts})
async def list_halts(
    request: HttpRequest, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.Halts:
    """List the workspace's halts, those that were lifted too. Newest first."""
    found, more = await db.read(_list, caller(request), limit, cursor)
    return schemas.Halts(items=[schemas.Halt.of(row) for row in found], next_cursor=more)


def _list(who: Caller, limit: int, cursor: str | None) -> tuple[list[Halt], str | None]:
    rows = Halt.objects.filter(workspace_id=who.workspace_id).select_related("halted_by__user")
    return listing.page(rows, limit, cursor)


@halts("POST", "/agents/{agent_id}/halt")
async def halt_agent(request: HttpRequest, agent_id: str, body: schemas.NewHalt) -> schemas.Halt:
    """Halt an agent. What waits is cancelled, what runs is killed within seconds, and every new call of it is refused
    until somebody lifts the halt in the console. Its sandboxes end, and their files are kept for 7 days where they can
    be. Once more changes nothing."""
    return await db.write(_halt, caller(request), agent_id, body.reason)


@halts("POST", "/workspace/halt")
async def halt_workspace(request: HttpRequest, body: schemas.NewHalt) -> schemas.Halt:
    """Halt the workspace. As for an agent, for all of its agents and keys."""
    return await db.write(_halt, caller(request), None, body.reason)


def _halt(who: Caller, agent_id: str | None, reason: str) -> schemas.Halt:
    by = acting.member(who)
    agent = acting.agent(who, agent_id) if agent_id else None
    return schemas.Halt.of(quarantine.halt(by.workspace, agent, by=by, reason=reason, via="api"))
