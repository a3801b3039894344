"""Packs of rules, and rules that past decisions suggest."""

from functools import partial

from django.http import HttpRequest
from ninja import Router

from approvals.rules import suggesting, ticking
from console.workspaces import db, permissions
from console.workspaces.keys import Caller
from console.workspaces.models import Workspace

from . import acting, schemas
from .door import caller, door

router = Router(tags=["Rules"])
manages = partial(door, router, keys="workspace", may=(permissions.RULES_MANAGE,))


@manages("GET", "/rules/packs", answers={200: schemas.Packs})
async def list_packs(request: HttpRequest) -> schemas.Packs:
    """List the packs of rules. `version_on` is what this workspace has turned on, null when it is off."""
    return await db.read(_packs, caller(request))


def _packs(who: Caller) -> schemas.Packs:
    found = ticking.listed(Workspace.objects.get(pk=who.workspace_id))
    return schemas.Packs(items=[schemas.Pack.of(each) for each in found])


@manages("PUT", "/rules/packs/{pack}", answers={200: schemas.Packs}, fails=("conflict",))
async def turn_on_pack(request: HttpRequest, pack: str) -> schemas.Packs:
    """Turn a pack on. Its rules are the workspace's own from then on, in its newest version; once more changes
    nothing."""
    return await db.write(_turn, caller(request), pack, True)


@manages("DELETE", "/rules/packs/{pack}", answers={200: schemas.Packs})
async def turn_off_pack(request: HttpRequest, pack: str) -> schemas.Packs:
    """Turn a pack off. Rules of it that somebody has changed stay."""
    return await db.write(_turn, caller(request), pack, False)


def _turn(who: Caller, pack: str, on: bool) -> schemas.Packs:
    (ticking.tick if on else ticking.untick)(pack, by=acting.member(who))
    return _packs(who)


@manages("GET", "/rules/suggestions", answers={200: schemas.Suggestions})
async def list_suggestions(request: HttpRequest) -> schemas.Suggestions:
    """List rules that past decisions suggest. Each would have matched that many approvals of 30 days, and no denial."""
    rows = await db.read(_suggestions, caller(request))
    items = [schemas.Suggestion(agent_id=row.agent.pk, pattern=row.pattern, approvals=row.approvals) for row in rows]
    return schemas.Suggestions(items=items)


def _suggestions(who: Caller) -> list[suggesting.Suggestion]:
    return suggesting.suggest(Workspace.objects.get(pk=who.workspace_id))
