"""Which earlier action a call is the same as: by its Idempotency-Key, or because it asks for the same while that waits.

Must never find what a rule decided, or what its agent has been given the outcome of.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from django.utils import timezone

from console.workspaces.errors import IdempotencyMismatch
from console.workspaces.once import KEPT_FOR

from .models import Action

if TYPE_CHECKING:
    from .proposal import Proposal


def done_already(proposal: "Proposal") -> Action | None:
    """The same call, done after a person approved it, whose outcome its agent has not been given yet."""
    if proposal.idempotency_key:
        return None
    own = Action.objects.joinable().filter(agent_id=proposal.caller.agent_id, sandbox_id=proposal.sandbox_id)
    done = own.filter(tool=proposal.tool, status="succeeded").order_by("-created_at")
    return next((action for action in done if is_call_of(action, proposal)), None)


def of_key(proposal: "Proposal") -> QuerySet[Action]:
    return Action.objects.filter(key_id=proposal.caller.key_id, idempotency_key=proposal.idempotency_key)


def earlier(proposal: "Proposal") -> Action | None:
    """The action of an earlier call with this Idempotency-Key; another body under it is refused. `bases`, `script` and
    `profile` do not matter: they are no part of what was sent."""
    known = of_key(proposal).filter(created_at__gt=timezone.now() - KEPT_FOR).first()
    if known is None:
        return None
    same = all(getattr(known, name) == getattr(proposal, name) for name in ("conversation", "reason", "parent_action"))
    if not same or not is_call_of(known, replace(proposal, profile=known.profile)):
        raise IdempotencyMismatch(
            f"This Idempotency-Key came with another body before, for {known.pk}. Send a new one with a new body."
        )
    return known


def is_call_of(action: Action, proposal: "Proposal") -> bool:
    """The same call, whatever has become of the files that it names."""
    same = replace(proposal, bases=action.bases, script=_script_of(action)).digest()
    return (same, proposal.sandbox_id) == (action.proposed_digest or action.digest, action.sandbox_id)


def joinable(proposal: "Proposal") -> Action | None:
    own = Action.objects.joinable().filter(agent_id=proposal.caller.agent_id, sandbox_id=proposal.sandbox_id)
    for action in own.filter(tool=proposal.tool).order_by("-created_at"):
        if is_call_of(action, proposal) and _is_of_same_files(action, proposal):
            return action
    return None


def _is_of_same_files(action: Action, proposal: "Proposal") -> bool:
    if _script_of(action) != proposal.script:
        return False
    return action.bases == proposal.bases or _left_it_so(action, proposal)


def _script_of(action: Action) -> Any:
    """Of the call as its agent made it, whatever a reviewer made of that."""
    first = action.edits.order_by("at").first() if action.edited else None
    return first.script_before if first else action.script


def _left_it_so(action: Action, proposal: "Proposal") -> bool:
    """A write that is done has itself changed its base: asked for again, it is not another write."""
    written = (action.result or {}).get("sha256")
    return action.status == "succeeded" and set(proposal.bases.values()) == {written}
