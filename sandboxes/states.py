"""The life of a sandbox, on one screen. `advance()` alone writes a status: compare-and-swap, change row and audit row
in one transaction, announced after its commit.

    starting → running ⇄ stopped
    starting, running, stopped → ended
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from console.workspaces import audit, changes, ledger

from .errors import IllegalMove

if TYPE_CHECKING:
    from .models import Sandbox

TABLE: dict[str, frozenset[str]] = {
    "starting": frozenset({"running", "ended"}),
    "running": frozenset({"stopped", "ended"}),
    "stopped": frozenset({"running", "ended"}),
    "ended": frozenset(),
}
ALL = tuple(TABLE)
LIVE = tuple(state for state, nexts in TABLE.items() if nexts)
ENDED_REASONS = (
    "deleted", "idle", "max_lifetime", "oom", "process_limit", "disk_limit", "crashed", "host_lost", "halted",
)  # fmt: skip


@transaction.atomic
def advance(
    sandbox: Sandbox, *, old: str, new: str, actor: audit.Actor, reason: str = "", because: str = "", **fields: Any
) -> bool:
    """True when this call moved `sandbox`; False when somebody else was first. Refresh it to see what was written.
    `reason` goes into the audit row, with `because`, which says more; that of an end is kept in the row as well."""
    if new not in TABLE[old]:
        raise IllegalMove(f"{old} → {new}")
    if new == "ended":
        fields |= {"ended_at": timezone.now(), "ended_reason": reason}
    ledger.hold(sandbox.workspace_id)
    if not type(sandbox).objects.filter(pk=sandbox.pk, status=old).update(status=new, **fields):
        return False
    said = {"reason": reason, "because": because}
    announce(sandbox, status=new, actor=actor, **{name: value for name, value in said.items() if value})
    return True


def announce(sandbox: Sandbox, *, status: str, actor: audit.Actor, **data: Any) -> None:
    """The change row and the audit row of a status just written, in the caller's transaction."""
    with ledger.opened(sandbox.workspace_id) as opened:
        changes.record(opened, subject="sandbox", subject_id=sandbox.pk, agent_id=sandbox.agent_id or "", status=status)
        audit.link(opened, actor=actor, event=f"sandbox.{status}", subject_id=sandbox.pk, **data)
