"""Calls that are actions: proposed, waited for, and answered with what became of them.

The same for a command and a file. It only proposes and waits: when the client leaves, the wait ends and nothing else.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from time import monotonic
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from approvals import told, twins
from approvals.models import Action
from sandboxes import acts
from sandboxes.models import Command

from . import once
from .door import caller
from .errors import Refused
from .waits import waiting

# The published client gives up after 120 s; its agent must have an answer by then, decided or not.
GATED_CALL_S = 100
# A workspace key's call never asks; this only bounds a wait for a sandbox that does not answer.
RECORDED_CALL_S = 3600 + 300

REFUSALS = (
    "pending_approval", "still_running", "denied", "expired", "cancelled", "superseded", "stale_edit",
    "script_changed", "failed", "sandbox_gone", "sandbox_not_enabled", "not_allowed_by_settings", "no_reviewer",
    "halted", "too_many", "too_many_commands", "no_runtime", "channel_lost", "sandbox_unresponsive",
)  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """An action that did what was asked. Everything else is raised."""

    action: Action
    joined: bool
    command: Command | None = None
    """Its row, when this call began it."""


async def call(request: HttpRequest, sandbox_id: str, tool: str, arguments: dict[str, Any], *, reason: str) -> Ended:
    """Takes `arguments` over, and empties them: while it waits for a reviewer, no content stays in memory.

    An agent's call is one of its key's waits from before it is proposed: one too many proposes nothing. A workspace
    key's is none: it waits for no person, and how many commands a sandbox runs at once is bounded elsewhere.
    """
    who, began = caller(request), monotonic()
    with waiting(who.key_id) if who.is_agent else nullcontext():
        scope = once.scope_of(request) or None
        proposed = await acts.propose(who, sandbox_id, tool, arguments, reason=reason, idempotency_key=scope)
        arguments.clear()
        return await ended(request, proposed, began=began)


async def ended(request: HttpRequest, proposed: acts.Proposed, *, began: float) -> Ended:
    """Waits for its end, within the time that such a call has in all."""
    who = caller(request)
    budget_s: float = getattr(settings, "GATED_CALL_S", GATED_CALL_S) if who.is_agent else RECORDED_CALL_S
    wait_s, begun = max(0.0, budget_s - (monotonic() - began)), proposed.begun
    action = await acts.settled(who, proposed.action_id, wait_s=wait_s, begun=begun)
    given(request, action)
    joined = proposed.joined
    if same := twins.runs_as(action):
        joined, action = True, await acts.settled(who, same, wait_s=max(0.0, budget_s - (monotonic() - began)))
        given(request, action)
    if action.status != "succeeded":
        raise _refusal(action, joined=joined)
    return Ended(action, joined, begun.command if begun and action is begun.ended else None)


def given(request: HttpRequest, action: Action) -> None:
    """Once the answer has gone out to a client still there, the same call proposes anew instead of joining."""
    if action.asked and not action.is_open and caller(request).is_agent and action.delivered_at is None:
        after: list[Any] = request.scope.setdefault("after_send", [])  # type: ignore[attr-defined]
        after.append(lambda: acts.mark_delivered(action.pk))


def _refusal(action: Action, *, joined: bool) -> Refused:
    code, detail, more = _why(action)
    return Refused(code, detail, **{"action_id": action.pk, "status": action.status, "joined": joined, **more})


def _why(action: Action) -> tuple[str, str, dict[str, Any]]:
    match action.status:
        case "pending" | "approved" | "running" if action.asked:
            return "pending_approval", _still_waits(action), {}
        case "running":  # only what waited for a person is joined: the same call again would run it again
            detail = (
                f"{action.pk} still runs. Do not make this call again, it would run twice: follow {_address(action)}."
            )
            return "still_running", detail, {}
        case "denied":
            return "denied", told.ended(action), {"reason": action.end_reason, **_decided(action)}
        case "unknown":
            return "outcome_unknown", told.ended(action), {}
        case "failed" | "superseded":
            error = dict(action.error or {})
            detail = str(error.pop("detail", action.end_reason))
            return str(error.pop("code", action.status)), detail, error
        case _:
            return action.status, told.ended(action), _decided(action)


def _decided(action: Action) -> dict[str, Any]:
    outcome = action.outcome() or {}
    return {name: outcome[name] for name in ("decided_by", "human_decided", "retry_after") if name in outcome}


def _still_waits(action: Action) -> str:
    waiting = {"pending": "waits for a reviewer", "approved": "was approved and waits for its start"}
    what = waiting.get(action.status, "still runs")
    return f"{action.pk} {what}. Make the same call again to go on waiting, or follow it at {_address(action)}."


def _address(action: Action) -> str:
    return f"/v1/actions/{action.pk}?wait=55"
