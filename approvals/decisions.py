"""Deciding: one decision counts, whoever clicks how often in how many places.

An action takes as many approvals as it needs, each by another reviewer and of this digest; one denial is enough, as
long as nothing has started. Must never take an approval of a page that did not show the whole text.
"""

from typing import Any, Literal

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from console.workspaces import audit, ledger, permissions
from console.workspaces.errors import Conflict, Invalid, PermissionDenied
from console.workspaces.keys import Caller
from console.workspaces.members import by_need
from console.workspaces.models import Member, Workspace

from . import memory, selves, states, twins, votes
from .errors import AlreadyDecided, NotSeen, WrongDigest
from .gate import APPROVED_FOR
from .models import Action, View

VERDICTS = {"approve": "approved", "deny": "denied"}


@transaction.atomic
def decide(
    action: Action,
    verdict: str,
    *,
    by: Member,
    digest: str,
    reason: str = "",
    via: Literal["page", "api"] = "api",
    view: View | None = None,
) -> Action:
    """The action as decided, or still pending when it needs another approval. `view`: what was shown, which approving
    on a page takes. Raises PermissionDenied, Invalid, WrongDigest, NotSeen, or AlreadyDecided naming who was first."""
    reason = reason.strip()
    if action.plan_id:
        raise Conflict(f"{action.pk} is an item of plan {action.plan_id}, which is decided as a whole. Decide that.")
    check(action, verdict, by=by, digest=digest, reason=reason)
    if verdict == "approve" and via == "page" and not _shows(view, action, by):
        raise NotSeen(action.pk)
    ledger.hold(action.workspace_id)  # approvals are counted one after the other
    count(action, verdict, by=by, digest=digest, reason=reason, via=via, told=told_of(action, by, via, view))
    if verdict == "deny":
        memory.count_denial(action)
    action.refresh_from_db()
    twins.settle(action, verdict, by=by, reason=reason, via=via)
    return action


def count(
    action: Action, verdict: str, *, by: Member, digest: str, reason: str, via: str, told: dict[str, Any]
) -> None:
    """One vote of those it takes, or the end of the wait. In a transaction that holds the workspace, and has checked.
    Raises AlreadyDecided."""
    if verdict == "approve" and votes.is_one_of_more(action, by=by, digest=digest):
        votes.record(action, verdict, by=by, digest=digest, reason=reason, via=via, told=told)
    elif _moved(action, verdict, by=by, digest=digest, reason=reason, told=told):
        votes.keep(action, verdict, by=by, digest=digest, reason=reason, via=via)
    else:
        raise AlreadyDecided(already(action.pk))


def check(action: Action, verdict: str, *, by: Member, digest: str, reason: str) -> None:
    check_may_decide(action, verdict, by=by)
    if verdict not in VERDICTS:
        raise Invalid(f"A verdict is approve or deny, not {verdict!r}.", field="verdict")
    if verdict == "approve" and action.agent and action.agent.settings_version != action.profile["settings_version"]:
        raise WrongDigest(
            f"The Agent Tools of {action.agent.name} changed after {action.pk} was proposed. It cannot run."
        )
    if verdict == "deny" and not reason:
        raise Invalid("Say why. The agent is told this.", field="reason")
    if digest != action.digest:
        raise WrongDigest(f"{action.pk} is not what was on your page. Look at it again; nothing was decided.")


def _shows(view: View | None, action: Action, by: Member) -> bool:
    return view is not None and (view.action_id, view.member_id, view.digest) == (action.pk, by.pk, action.digest)


def told_of(action: Action, by: Member, via: str, view: View | None) -> dict[str, Any]:
    """For the audit row: through which door, when it was shown, and whether they decide for what is their own."""
    shown = {"shown_at": view.shown_at.isoformat(timespec="milliseconds")} if view else {}
    return {"via": via, **shown, **({"self": True} if selves.why(action, by) else {})}


def _moved(action: Action, verdict: str, *, by: Member, digest: str, reason: str, told: dict[str, Any]) -> bool:
    now = timezone.now()
    fields: dict[str, Any] = {"decided_by": "reviewer", "decided_at": now, "end_reason": reason}
    if verdict == "approve":
        fields["start_by"] = now + APPROVED_FOR
    else:
        fields["retry_at"] = memory.retry_at(action)
    actor, new = audit.Actor("member", by.pk), VERDICTS[verdict]
    in_time = Q(digest=digest, expires_at__gt=Now())
    if states.advance(action, old="pending", new=new, actor=actor, where=in_time, told=told, **fields):
        return True
    beats = verdict == "deny" and action.approvals_needed > 1  # `action` may have been read while it waited
    return beats and states.advance(
        action, old="approved", new=new, actor=actor, where=Q(digest=digest), told=told, **fields
    )


def is_deniable_late(action: Action) -> bool:
    """Where several approve, a denial beats the last approval too, until something has started."""
    return action.status == "approved" and action.approvals_needed > 1


def check_may_decide(action: Action, verdict: str, *, by: Member) -> None:
    if by.workspace_id != action.workspace_id:
        raise PermissionDenied(f"{by} is no member of the workspace of {action.pk}.")
    by_need(by, permissions.APPROVALS_REVIEW)
    if verdict == "approve" and (why := selves.why_not(action, by)):
        raise PermissionDenied(f"{why} You can deny it.")


def decide_by_key(action: Action, verdict: str, *, caller: Caller, digest: str, reason: str = "") -> Action:
    """As `decide`, for a member's key, where the workspace has turned deciding by key on. Never for an agent's."""
    return decide(action, verdict, by=by_key(caller), digest=digest, reason=reason, via="api")


def by_key(caller: Caller) -> Member:
    """The member who decides with this key. Raises PermissionDenied."""
    if caller.is_agent:
        raise PermissionDenied("An agent's key never decides. A reviewer decides in the console.")
    caller.need(permissions.APPROVALS_REVIEW)
    if not Workspace.objects.get(pk=caller.workspace_id).key_decisions:
        raise PermissionDenied(
            "Deciding by key is off in this workspace. A member with `workspace:manage` can turn it on; until then "
            "reviewers decide in the console."
        )
    return Member.objects.select_related("user", "workspace").get(pk=caller.member_id)


def already(action_id: str) -> str:
    """Who or what was first, and when, for the one who came second."""
    action = Action.objects.get(pk=action_id)
    at = f"{(action.decided_at or action.ended_at or timezone.now()):%Y-%m-%d %H:%M:%S} UTC"
    if action.status == "pending":
        return (
            f"{action_id} expired before your decision came, at {action.expires_at:%Y-%m-%d %H:%M:%S} UTC. Nothing ran."
        )
    if decision := votes.deciding(action):
        verb = "approved" if decision.verdict == "approve" else "denied"
        return f"{decision.by} {verb} this first, at {at}. It is {action.status}."
    return f"{action_id} is {action.status} since {at}: {action.end_reason}"
