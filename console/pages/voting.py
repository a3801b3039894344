"""What a card says of approvals where several are needed: how many there are, whose, and if the viewer gave one."""

from typing import Any

from approvals import votes
from approvals.models import Action
from approvals.plans import fate
from console.workspaces.models import Member

from .words import listed

ANEW = "Items were left out, so what was approved of the whole plan counts no more."


def shown(action: Action, viewer: Member, *, digest: str = "") -> dict[str, Any]:
    """`digest`: what is voted on, where that is more than the action."""
    voted_on = digest or action.digest
    if action.approvals_needed <= 1 or action.status != "pending":
        return {"votes": "", "voted": False, "voted_on": voted_on}
    given = votes.given(action)
    mine = any(vote.by_id == viewer.pk for vote in given)
    said = _said(action, [_name(vote.by, viewer) for vote in given])
    return {"votes": said, "voted": mine, "voted_on": voted_on}


def _name(member: Member, viewer: Member) -> str:
    return "you" if member.pk == viewer.pk else str(member)


def _said(action: Action, names: list[str]) -> str:
    """`1 of 2 approved, by Bob`."""
    said = f"{len(names)} of {action.approvals_needed} approved{f', by {listed(names)}' if names else ''}"
    return f"{said}. {ANEW}" if _has_less(action) else said


def _has_less(action: Action) -> bool:
    return bool(action.plan and any(map(fate.left_out, action.plan.in_order())))
