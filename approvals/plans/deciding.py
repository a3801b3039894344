"""Deciding on a plan: one act over all of its items that wait. Those ticked are approved, those left out are denied.

Each item is decided as it would be alone: by its own digest, with a decision row of its own. Must never approve what
the page did not show whole, nor a part of what was meant: all of the act holds, or nothing of it.
"""

from collections.abc import Collection
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from approvals import decisions, memory, votes
from approvals.errors import AlreadyDecided, NotSeen, WrongDigest
from approvals.models import Action, View
from console.workspaces import ledger
from console.workspaces.errors import Invalid
from console.workspaces.keys import Caller
from console.workspaces.models import Member

from . import fate, order
from .models import Plan


def waiting(plan: Plan) -> list[Action]:
    found = plan.in_order().filter(status="pending")
    return list(found.select_related("agent__owner__user", "workspace", "plan"))


def _deniable(plan: Plan, verdict: str) -> list[Action]:
    """Where several approve, a denial beats the last approval too: of what has not started, as for an action alone."""
    if verdict != "deny":
        return []
    found = plan.in_order().filter(status="approved", approvals_needed__gt=1)
    return list(found.select_related("agent__owner__user", "workspace", "plan"))


def digest_of(plan: Plan) -> str:
    return fate.digest(list(plan.in_order()))


@transaction.atomic
def decide(
    plan: Plan,
    verdict: str,
    *,
    by: Member,
    digest: str,
    left_out: Collection[str] = (),
    reason: str = "",
    via: Literal["page", "api"] = "api",
    view: View | None = None,
) -> Plan:
    """`digest`: of all that waits, as it was shown; `left_out`: ids of items that are denied while the others are
    approved. Raises what `decisions.decide` raises."""
    ledger.hold(plan.workspace_id)
    items, reason = waiting(plan) or _deniable(plan, verdict), reason.strip()
    if not items:
        raise AlreadyDecided(decisions.already(plan.in_order()[0].pk))
    _check(plan, items, verdict, digest=digest, left_out=left_out, reason=reason)
    if verdict == "approve" and via == "page" and not _shows(view, plan, by, digest):
        raise NotSeen(plan.pk)
    if left_out:
        votes.drop_for([item for item in items if item.pk not in left_out], by=by)
    denied = []
    for item in items:
        own = "deny" if item.pk in left_out else verdict
        _decide(item, own, by=by, reason=reason if own == "deny" else "", via=via, view=view)
        denied += [item] if own == "deny" else []
    if denied:
        memory.count_denial(denied[0])  # one act of one person, however many it was about
    _give_time(plan)
    return plan


def _check(
    plan: Plan, items: list[Action], verdict: str, *, digest: str, left_out: Collection[str], reason: str
) -> None:
    if digest != digest_of(plan):
        raise WrongDigest(f"{plan.pk} is not what was on your page. Look at it again; nothing was decided.")
    if strangers := set(left_out) - {item.pk for item in items}:
        raise Invalid(f"{min(strangers)[:60]} is no waiting item of {plan.pk}.", field="left_out")
    if verdict == "approve" and len(set(left_out)) == len(items):
        raise Invalid("Every item is left out. Tick one, or deny the plan.", field="left_out")
    if left_out and not reason:
        raise Invalid("Say why items are left out. The agent is told this.", field="reason")


def _decide(item: Action, verdict: str, *, by: Member, reason: str, via: str, view: View | None) -> None:
    decisions.check(item, verdict, by=by, digest=item.digest, reason=reason)
    told: dict[str, Any] = {**decisions.told_of(item, by, via, view), "plan": item.plan_id}
    decisions.count(item, verdict, by=by, digest=item.digest, reason=reason, via=via, told=told)


def _shows(view: View | None, plan: Plan, by: Member, digest: str) -> bool:
    return view is not None and view.member_id == by.pk and view.digest == digest and view.action.plan_id == plan.pk


def _give_time(plan: Plan) -> None:
    """The first starts as any approved action does; for the others the time begins when it is their turn."""
    approved = plan.in_order().filter(status="approved")
    if first := approved.first():
        approved.exclude(pk=first.pk).update(start_by=timezone.now() + order.WHOLE_WITHIN)


def decide_by_key(plan: Plan, verdict: str, *, caller: Caller, **said: Any) -> Plan:
    """As `decide`, for a member's key, where the workspace has turned deciding by key on. Never for an agent's."""
    return decide(plan, verdict, by=decisions.by_key(caller), via="api", **said)
