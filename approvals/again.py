"""Calls that come again: found by the key they came with, or brought back to their reviewers by the gate itself."""

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from console.workspaces import ledger
from console.workspaces.errors import Conflict, SandgateError
from console.workspaces.keys import Caller
from console.workspaces.models import Agent
from console.workspaces.once import KEPT_FOR

from . import gate, room
from .models import Action

CARRIED_OVER = "carried_over"
ALLOWED = "It was approved for the file as it was before. A person looks at it as it is now."


def with_key(caller: Caller, idempotency_key: str) -> Action | None:
    """The action of an earlier call with this Idempotency-Key, whatever was asked."""
    own = Action.objects.filter(key_id=caller.key_id, idempotency_key=idempotency_key)
    return own.filter(created_at__gt=timezone.now() - KEPT_FOR).first()


@transaction.atomic
def propose_again(action: Action, *, bases: Mapping[str, str | None], replaced: Mapping[str, int], why: str) -> str:
    """An approved edit whose file changed elsewhere comes back to its reviewers, bound to the file as it is now, though
    a rule or a grant would let it through: under neither approval does it run. Answers the new action's id; "" when
    nobody may be asked about it now, and then it has ended saying why."""
    ledger.hold(action.workspace_id)
    agent = action.agent
    assert agent, "a call of a member's key is never asked about"
    proposal = _as_now(action, bases, replaced)
    try:
        asked_for = _check(agent, proposal)
    except SandgateError as error:  # nothing has been written yet
        gate.supersede(action, f"{why} {error.detail}", code="stale_edit")
        return ""
    again = gate.ask(proposal, agent, why=asked_for)
    why = f"{why} It waits for a person again, as {again.pk}."
    gate.supersede(action, why, code="stale_edit", next_action=again.pk)
    return again.pk


def _as_now(action: Action, bases: Mapping[str, str | None], replaced: Mapping[str, int]) -> gate.Proposal:
    kept = ("sandbox_id", "tool", "tool_version", "arguments", "profile", "conversation", "reason")
    return gate.Proposal(
        caller=Caller(action.key_id or "", action.workspace_id, action.agent_id, None, frozenset()),
        kind="write",
        bases=bases,
        replaced=replaced,
        flags=tuple(dict.fromkeys([*action.flags, CARRIED_OVER])),
        parent_action=action.pk,
        **{name: getattr(action, name) for name in kept},
    )


def _check(agent: Agent, proposal: gate.Proposal) -> str:
    """Why a person is asked. Raises what keeps anybody from being asked: a halt, a rule, or no room."""
    verdict = gate.judge(proposal)
    if verdict.effect == "deny":
        raise Conflict(verdict.why)
    room.check(agent, more_bytes=sum(proposal.payloads().values()))
    return verdict.why if verdict.effect == "ask" else ALLOWED
