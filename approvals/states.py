"""The life of an action, on one screen. `advance()` alone writes a status: compare-and-swap, change row and audit row
in one transaction, announced after its commit. It must never be called outside a transaction of the act it belongs to.

    pending → approved → running → succeeded | failed | unknown
    pending, approved → denied | expired | cancelled | superseded
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from console.workspaces import audit, changes, ledger, rows

from . import counters, noted
from .errors import IllegalMove

if TYPE_CHECKING:
    from .models import Action

TABLE: dict[str, frozenset[str]] = {
    "pending": frozenset({"approved", "denied", "expired", "cancelled", "superseded"}),
    "approved": frozenset({"running", "denied", "expired", "cancelled", "superseded"}),
    "running": frozenset({"succeeded", "failed", "unknown"}),
    **{end: frozenset() for end in ("succeeded", "failed", "unknown", "denied", "expired", "cancelled", "superseded")},
}
ALL = tuple(TABLE)
OPEN = tuple(state for state, nexts in TABLE.items() if nexts)
ENDED = tuple(state for state, nexts in TABLE.items() if not nexts)
# What an agent may propose again as it is: nobody said no to it.
MAY_RETRY = frozenset({"expired", "superseded", "failed"})
# Save for an error of these: it is refused again until a person changes something.
LASTING = frozenset({"halted", "protected_path"})
# Reads that were let through are recorded, and are no links of the chain, save those that `noted` names.
UNAUDITED_TOOLS = frozenset({"read", "glob", "grep", "follow", "processes"})
# With what status an action is inserted that nobody was asked about, and what that was.
AT_ONCE = {"running": "approved", "denied": "denied"}


def advance(
    action: Action,
    *,
    old: str,
    new: str,
    actor: audit.Actor,
    where: Q | None = None,
    told: dict[str, Any] | None = None,
    **fields: Any,
) -> bool:
    """True when this call moved `action` from `old` to `new`; False when somebody else was first, or `where` failed.

    `fields` are written with the status, `told` goes into the audit row besides; `action` is left as it was read, so
    refresh it to see them.
    """
    if new not in TABLE[old]:
        raise IllegalMove(f"{old} → {new}")
    if new in ENDED:
        fields.setdefault("ended_at", timezone.now())
    with transaction.atomic(savepoint=False):  # what fails in it is the end of the whole act
        ledger.hold(action.workspace_id)
        if not _moved(action, old, {"status": new, **fields}, where):
            return False
        reason = {"reason": fields["end_reason"]} if "end_reason" in fields else {}
        announce(action, status=new, actor=actor, **reason, **(told or {}))
        if action.plan_id and new in ENDED:
            from .plans import order  # which moves others by this very function

            order.follow(action, old=old, new=new, actor=actor, fields=fields, told=told or {})
        if by := fields.get("decided_by"):
            seconds = (timezone.now() - action.created_at).total_seconds()
            counters.decided(new, decided_by=by, seconds=seconds if old == "pending" else None)
    return True


def _moved(action: Action, old: str, fields: dict[str, Any], where: Q | None) -> int:
    if where is None:  # nearly always, and each call does it
        return rows.update(type(action), fields, id=action.pk, status=old)
    return type(action).objects.filter(where, pk=action.pk, status=old).update(**fields)


def announce(action: Action, *, status: str, actor: audit.Actor, **data: Any) -> None:
    """The change row and the audit row of a status just written, in the caller's transaction."""
    with ledger.opened(action.workspace_id) as opened:
        changes.record(opened, subject="action", subject_id=action.pk, agent_id=action.agent_id or "", status=status)
        if action.tool not in UNAUDITED_TOOLS:
            if not action.asked and status in AT_ONCE:
                counters.decided(AT_ONCE[status], decided_by=action.decided_by)
            event, what = f"action.{status}", {"digest": action.digest, "tool": action.tool}
            audit.link(opened, actor=actor, event=event, subject_id=action.pk, **what, **data)
        elif status == "running" and noted.is_noted(action):
            read = {"action": action.pk, "path": action.arguments.get("path", ""), "digest": action.digest}
            audit.link(opened, actor=actor, event="file.read", subject_id=action.sandbox_id, **read)
