"""Calls that come again: found by the key they came with, or brought back to their reviewers by the gate itself."""

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from console.workspaces.keys import Caller
from console.workspaces.once import KEPT_FOR

from . import gate
from .models import Action

CARRIED_OVER = "carried_over"


def with_key(caller: Caller, idempotency_key: str) -> Action | None:
    """The action of an earlier call with this Idempotency-Key, whatever was asked."""
    own = Action.objects.filter(key_id=caller.key_id, idempotency_key=idempotency_key)
    return own.filter(created_at__gt=timezone.now() - KEPT_FOR).first()


@transaction.atomic
def propose_again(action: Action, *, bases: Mapping[str, str | None], replaced: Mapping[str, int], why: str) -> str:
    """An approved edit whose file changed elsewhere comes back to its reviewers, bound to the file as it is now; under
    the first approval nothing runs. Answers the new action's id."""
    kept = ("sandbox_id", "tool", "tool_version", "arguments", "profile", "conversation", "reason")
    again = gate.submit(
        gate.Proposal(
            caller=Caller(action.key_id or "", action.workspace_id, action.agent_id, None, frozenset()),
            kind="write",
            bases=bases,
            replaced=replaced,
            flags=tuple(dict.fromkeys([*action.flags, CARRIED_OVER])),
            parent_action=action.pk,
            **{name: getattr(action, name) for name in kept},
        )
    )
    assert isinstance(again, gate.Wait), "what was asked about once is asked about again"
    why = f"{why} It waits for a person again, as {again.action_id}."
    gate.supersede(action, why, code="stale_edit", next_action=again.action_id)
    return again.action_id
