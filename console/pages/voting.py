"""What a card says of its reviewers while it waits: how many approved where several are needed, who, and if the viewer
did; that it was escalated; that too few of those who can are there."""

from typing import Any

from approvals import votes
from approvals.models import Action
from approvals.plans import fate
from console.workspaces import away, reviewers
from console.workspaces.models import Member

from . import absences
from .words import listed

ANEW = "Items were left out, so what was approved of the whole plan counts no more."


def shown(action: Action, viewer: Member, *, digest: str = "") -> dict[str, Any]:
    """`digest`: what is voted on, where that is more than the action."""
    found: dict[str, Any] = {"votes": "", "voted": False, "voted_on": digest or action.digest}
    if action.status != "pending":
        return found
    found |= {"escalated": _escalated(action, viewer), "escalated_at": action.escalated_at}
    found["absent"] = absences.too_few_here(action, viewer)
    if action.approvals_needed > 1:
        given = votes.given(action)
        found["votes"] = _said(action, [_name(vote.by, viewer) for vote in given])
        found["voted"] = any(vote.by_id == viewer.pk for vote in given)
    return found


def _escalated(action: Action, viewer: Member) -> str:
    """Empty when it was not."""
    if action.escalated_at is None:
        return ""
    found = Member.objects.filter(pk__in=action.escalated_to).select_related("user", "deputy__user")
    group = [_with_deputy(each, viewer) for each in found.order_by("user__name")]
    return f"Nobody had decided in time, so it was escalated{f' to {listed(group)}' if group else ''}"


def _with_deputy(member: Member, viewer: Member) -> str:
    """`Bob`, `Bob (away)`, `Bob (away, deputy: Carol)` where Carol is told instead."""
    name = _name(member, viewer)
    if not member.is_away:
        return name
    present = {each.pk for each in reviewers.in_workspace(member.workspace_id) if not each.is_away}
    if member.deputy and away.hearer(member, present) == member.deputy.pk:
        return f"{name} (away, deputy: {_name(member.deputy, viewer)})"
    return f"{name} (away)"


def _name(member: Member, viewer: Member) -> str:
    return "you" if member.pk == viewer.pk else str(member)


def _said(action: Action, names: list[str]) -> str:
    """`1 of 2 approved, by Bob`."""
    said = f"{len(names)} of {action.approvals_needed} approved{f', by {listed(names)}' if names else ''}"
    return f"{said}. {ANEW}" if _has_less(action) else said


def _has_less(action: Action) -> bool:
    return bool(action.plan and any(map(fate.left_out, action.plan.in_order())))
