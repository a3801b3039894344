"""Plans: several calls proposed as one card, followed to the end, and decided by key where a workspace allows that."""

from contextlib import nullcontext

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router

from approvals.plans import fate
from console.doorman import body_parsed
from console.workspaces import permissions
from console.workspaces.keys import Caller
from sandboxes import plan_acts

from . import answers, gated, once, schemas, tools
from .body import forget
from .door import SEES_ACTIONS, caller, door
from .waits import Wait, waiting

router = Router(tags=["Plans"])


@door(
    router, "POST", "/plans", may=(permissions.SANDBOXES_RUN,), keys="agent", gate="approval",
    answers={200: schemas.Plan, 202: schemas.Plan}, fails=tools.REFUSALS, headers=(tools.PREFER,),
)  # fmt: skip
async def propose_plan(request: HttpRequest, body: schemas.NewPlan) -> HttpResponseBase:
    """Propose several calls as one plan. A reviewer sees all of them at once, may leave some out, and approves the
    others in one act; they run in order, and the first that fails ends it. Answered 200 when all of it has ended, else
    202, and `Location` is where to wait for it.

    A plan always asks, also where a rule would allow each call alone. A command that exits with anything but 0 has
    failed, for its plan. A file may be changed by one call of a plan. A call that a rule denies refuses the plan: 403
    `denied` names the `item`.
    """
    who, wait_s = caller(request), tools.wait_of(request.headers.get("Prefer", ""))
    calls = [plan_acts.Call(each.tool, each.arguments) for each in body.calls]
    body.calls = []
    forget(request)
    body_parsed(request.scope)  # type: ignore[attr-defined]
    with waiting(who.key_id) if wait_s else nullcontext():
        recorded = await plan_acts.propose(
            who, calls, conversation=body.conversation, title=body.title, reason=body.reason,
            idempotency_key=once.scope_of(request) or None,
        )  # fmt: skip
        calls.clear()  # while it waits for a reviewer, no content stays in memory
        found = await plan_acts.settled(who, recorded.plan_id, wait_s=wait_s)
    return await _whole(request, who, found, joined=recorded.joined, is_new=True)


@door(router, "GET", "/plans/{plan_id}", may=SEES_ACTIONS, answers={200: schemas.Plan}, fails=("too_many",))
async def get_plan(request: HttpRequest, plan_id: str, wait: Wait = 0) -> HttpResponseBase:
    """Get a plan with its items. With `wait`, as soon as all of it has ended, or as it is when that time is over: ask
    again, as often as you like."""
    who = caller(request)
    with waiting(who.key_id) if wait else nullcontext():
        found = await plan_acts.settled(who, plan_id, wait_s=wait)
    return await _whole(request, who, found)


@door(
    router, "POST", "/plans/{plan_id}/decision", may=(permissions.APPROVALS_REVIEW,), keys="workspace",
    answers={200: schemas.Plan}, fails=("already_decided", "wrong_digest"),
)  # fmt: skip
async def decide_plan(request: HttpRequest, plan_id: str, body: schemas.NewPlanDecision) -> HttpResponseBase:
    """Approve a plan, or some of its items, or deny it. For the exact `digest` that was looked at, and only in a
    workspace that lets keys decide. Items in `left_out` are denied, which needs a reason as a denial does."""
    who, said = caller(request), {"digest": body.digest, "left_out": body.left_out, "reason": body.reason}
    return await _whole(request, who, await plan_acts.decide_by_key(who, plan_id, body.verdict, **said))


async def _whole(
    request: HttpRequest, who: Caller, found: plan_acts.Followed, *, joined: bool = False, is_new: bool = False
) -> HttpResponseBase:
    for item in found.items:
        gated.given(request, item)
    outcomes = await plan_acts.said(who, found.items)
    results = [(outcome or {}).get("result") or {} for outcome in outcomes]
    size = sum(len(value) for result in results for value in result.values() if isinstance(value, str))
    answer = schemas.Plan.of(found.plan, list(found.items), outcomes, joined=joined)
    response = await answers.large(answer, size_bytes=size)
    if is_new and fate.is_open(found.items):
        response.status_code = 202
        response.headers["Location"] = f"/v1/plans/{found.plan.pk}"
    return response
