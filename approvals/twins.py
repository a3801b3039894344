"""Identical pending proposals: the same agent, sandbox and digest, each with an id of its own. One card, run once.

Owns which of them stands on the queue for all, and what becomes of the others when one is decided. Must never run or
approve a second one: docs/decisions/025-one-card-for-identical-proposals.md.
"""

from collections.abc import Iterable

from django.db.models import QuerySet

from console.workspaces import audit
from console.workspaces.models import Member

from . import states, votes
from .models import Action

MERGED = "merged"


def of(action: Action) -> QuerySet[Action]:
    """The others that wait for the same decision, the oldest first."""
    same = Action.objects.pending().filter(
        agent_id=action.agent_id, sandbox_id=action.sandbox_id, digest=action.digest, agent__isnull=False, plan=None
    )
    if action.plan_id:  # it runs in its plan's order, whoever else asks for the same
        return same.none()
    return same.exclude(pk=action.pk).order_by("pk")


def ids_of(actions: Iterable[Action]) -> dict[str, list[str]]:
    """By action, the ids of the others; one question for a whole queue."""
    pending = [action for action in actions if action.status == "pending" and not action.plan_id]
    found: dict[tuple[str | None, str, str], list[str]] = {}
    agents, digests = {action.agent_id for action in pending}, {action.digest for action in pending}
    for action in Action.objects.pending().filter(agent_id__in=agents, digest__in=digests).order_by("pk"):
        if not action.plan_id:  # not asked of the database, which would go through all that are in no plan
            found.setdefault(_same(action), []).append(action.pk)
    return {action.pk: [pk for pk in found.get(_same(action), ()) if pk != action.pk] for action in pending}


def _same(action: Action) -> tuple[str | None, str, str]:
    return action.agent_id, action.sandbox_id, action.digest


def settle(action: Action, verdict: str, *, by: Member, reason: str, via: str) -> None:
    """In the transaction that decided `action`, which holds the workspace, so that no further one comes between."""
    for twin in of(action):
        if verdict == "deny":
            _deny(twin, action, by=by, reason=reason, via=via)
        elif action.status == "approved":
            _merge(twin, action, by=by)


def _deny(twin: Action, action: Action, *, by: Member, reason: str, via: str) -> None:
    actor = audit.Actor("member", by.pk)
    if states.advance(
        twin, old="pending", new="denied", actor=actor, told={"same_as": action.pk}, decided_by="reviewer",
        decided_at=action.decided_at, end_reason=reason, retry_at=action.retry_at,
    ):  # fmt: skip
        votes.keep(twin, "deny", by=by, digest=twin.digest, reason=reason, via=via)


def _merge(twin: Action, action: Action, *, by: Member) -> None:
    why = f"This is the same call as {action.pk}, which was approved. It runs once: its outcome is that of {action.pk}."
    states.advance(
        twin, old="pending", new="superseded", actor=audit.Actor("member", by.pk), decided_by="reviewer",
        end_reason=why, error={"code": MERGED, "detail": why, "next_action": action.pk},
    )  # fmt: skip


def runs_as(action: Action) -> str:
    """The action whose outcome is this one's, where they were merged; empty for all others."""
    error = action.error or {}
    return str(error["next_action"]) if error.get("code") == MERGED else ""
