"""Actions: list, follow to the end, take back, and decide by key where the workspace allows that."""

from django.db.models import prefetch_related_objects
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router

from approvals.models import Action
from console.workspaces import db, permissions
from console.workspaces.keys import Caller
from sandboxes import acts, tool_acts

from . import answers, gated, listing, schemas
from .door import SEES_ACTIONS, caller, door
from .waits import Wait, waiting

router = Router(tags=["Actions"])


@door(router, "GET", "/actions", may=SEES_ACTIONS, answers={200: schemas.Actions})
async def list_actions(
    request: HttpRequest,
    status: schemas.ActionStatus | None = None,
    agent: str | None = None,
    sandbox: str | None = None,
    conversation: str | None = None,
    plan: str | None = None,
    undelivered: bool = False,
    limit: schemas.Limit = 50,
    cursor: schemas.Cursor | None = None,
) -> schemas.Actions:
    """List actions. Newest first; outcomes here are without output. `undelivered`: those that waited for a person, have
    ended, and whose agent has not been given the outcome yet."""
    asked = {"status": status, "agent_id": agent, "sandbox_id": sandbox, "conversation": conversation}
    asked["plan_id"] = plan
    wanted = {name: value for name, value in asked.items() if value is not None}
    found, more = await db.read(_list, caller(request), wanted, undelivered, limit, cursor)
    return schemas.Actions(
        items=[schemas.Action.of(row, outcome=tool_acts.without_output(row)) for row in found], next_cursor=more
    )


def _list(
    who: Caller, wanted: dict[str, str], undelivered: bool, limit: int, cursor: str | None
) -> tuple[list[Action], str | None]:
    found = Action.objects.visible_to(who).filter(**wanted)
    if undelivered:
        found = found.filter(asked=True, delivered_at=None).exclude(ended_at=None)
    return listing.page(found.prefetch_related("decisions__by__user"), limit, cursor)


@door(router, "GET", "/actions/{action_id}", may=SEES_ACTIONS, answers={200: schemas.Action}, fails=("too_many",))
async def get_action(request: HttpRequest, action_id: str, wait: Wait = 0) -> HttpResponseBase:
    """Get an action. With `wait`, as soon as it has ended, or as it is when that time is over: ask again, as often as
    you like."""
    who = caller(request)
    if wait:
        with waiting(who.key_id):
            action = await acts.settled(who, action_id, wait_s=wait)
    else:
        action = await acts.settled(who, action_id, wait_s=0)
    gated.given(request, action)
    return await _whole(who, action)


@door(
    router, "POST", "/actions/{action_id}/cancel", may=(permissions.SANDBOXES_RUN,), keys="agent",
    answers={200: schemas.Action},
)  # fmt: skip
async def cancel_action(request: HttpRequest, action_id: str) -> HttpResponseBase:
    """Take back an action that has not started. One that has stays as it is; the answer says how it is."""
    who = caller(request)
    return await _whole(who, await acts.cancel(who, action_id))


@door(
    router, "POST", "/actions/{action_id}/decision", may=(permissions.APPROVALS_REVIEW,), keys="workspace",
    answers={200: schemas.Action}, fails=("already_decided", "wrong_digest"),
)  # fmt: skip
async def decide_action(request: HttpRequest, action_id: str, body: schemas.NewDecision) -> HttpResponseBase:
    """Approve or deny an action. For the exact `digest` that was looked at, and only in a workspace that lets keys
    decide. A denial needs a reason; the agent is told it."""
    who = caller(request)
    action = await acts.decide_by_key(who, action_id, body.verdict, digest=body.digest, reason=body.reason)
    return await _whole(who, action)


async def _whole(who: Caller, action: Action) -> HttpResponseBase:
    outcome = await tool_acts.said(who, action)
    await db.read(prefetch_related_objects, [action], "decisions__by__user")
    result = (outcome or {}).get("result") or {}
    size = sum(len(result.get(name, "")) for name in ("stdout", "stderr"))
    return await answers.large(schemas.Action.of(action, outcome=outcome), size_bytes=size)
