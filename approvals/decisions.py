"""Deciding: one decision counts, whoever clicks how often in how many places."""

from typing import Any, Literal

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from console.workspaces import audit, permissions
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.keys import Caller
from console.workspaces.members import by_need
from console.workspaces.models import Member, Workspace

from . import memory, states
from .errors import AlreadyDecided, WrongDigest
from .gate import APPROVED_FOR
from .models import Action, Decision

VERDICTS = {"approve": "approved", "deny": "denied"}


@transaction.atomic
def decide(
    action: Action,
    verdict: str,
    *,
    by: Member,
    digest: str,
    reason: str = "",
    via: Literal["page", "api"] = "page",
) -> Action:
    """The action as decided. Raises PermissionDenied, Invalid, WrongDigest, or AlreadyDecided naming who was first."""
    check_may_decide(action, verdict, by=by)
    if verdict not in VERDICTS:
        raise Invalid(f"A verdict is approve or deny, not {verdict!r}.", field="verdict")
    if verdict == "approve" and action.agent and action.agent.settings_version != action.profile["settings_version"]:
        raise WrongDigest(
            f"The Agent Tools of {action.agent.name} changed after {action.pk} was proposed. It cannot run."
        )
    reason = reason.strip()
    if verdict == "deny" and not reason:
        raise Invalid("Say why. The agent is told this.", field="reason")
    if digest != action.digest:
        raise WrongDigest(f"{action.pk} is not what was on your page. Look at it again; nothing was decided.")
    fields: dict[str, Any] = {"decided_by": "reviewer", "decided_at": timezone.now(), "end_reason": reason}
    if verdict == "approve":
        fields["start_by"] = timezone.now() + APPROVED_FOR
    else:
        fields["retry_at"] = memory.retry_at(action)
    moved = states.advance(
        action, old="pending", new=VERDICTS[verdict], actor=audit.Actor("member", by.pk),
        where=Q(digest=digest, expires_at__gt=Now()), **fields,
    )  # fmt: skip
    if not moved:
        raise AlreadyDecided(already(action.pk))
    Decision.objects.create(action=action, by=by, verdict=verdict, reason=reason, digest=digest, via=via)
    if verdict == "deny":
        memory.count_denial(action)
    action.refresh_from_db()
    return action


def check_may_decide(action: Action, verdict: str, *, by: Member) -> None:
    if by.workspace_id != action.workspace_id:
        raise PermissionDenied(f"{by} is no member of the workspace of {action.pk}.")
    by_need(by, permissions.APPROVALS_REVIEW)
    agent = action.agent
    if verdict == "approve" and agent and agent.owner_id == by.pk and not agent.self_approval:
        raise PermissionDenied("Nobody approves for an agent they own. You can deny it.")


def decide_by_key(action: Action, verdict: str, *, caller: Caller, digest: str, reason: str = "") -> Action:
    """As `decide`, for a member's key, where the workspace has turned deciding by key on. Never for an agent's."""
    if caller.is_agent:
        raise PermissionDenied("An agent's key never decides. A reviewer decides in the console.")
    caller.need(permissions.APPROVALS_REVIEW)
    if not Workspace.objects.get(pk=caller.workspace_id).key_decisions:
        raise PermissionDenied(
            "Deciding by key is off in this workspace. A member with `workspace:manage` can turn it on; until then "
            "reviewers decide in the console."
        )
    member = Member.objects.select_related("user", "workspace").get(pk=caller.member_id)
    return decide(action, verdict, by=member, digest=digest, reason=reason, via="api")


def already(action_id: str) -> str:
    """Who or what was first, and when, for the one who came second."""
    action = Action.objects.get(pk=action_id)
    decision = action.decisions.select_related("by__user").order_by("at").first()
    at = f"{(action.decided_at or action.ended_at or timezone.now()):%Y-%m-%d %H:%M:%S} UTC"
    if action.status == "pending":
        return (
            f"{action_id} expired before your decision came, at {action.expires_at:%Y-%m-%d %H:%M:%S} UTC. Nothing ran."
        )
    if decision:
        verb = "approved" if decision.verdict == "approve" else "denied"
        return f"{decision.by} {verb} this first, at {at}. It is {action.status}."
    return f"{action_id} is {action.status} since {at}: {action.end_reason}"
