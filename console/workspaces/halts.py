"""Halts: a person stops an agent, or a whole workspace, at once; lifting it is another act, by who manages agents.

Owns the rows and the question whether one is in force, which is asked inside the transaction of whatever would begin
something. Must never need more than `approvals:review` to halt, nor be kept from it by a reason that is missing.
"""

from functools import cache

from django.db import IntegrityError, transaction
from django.utils import timezone

from . import audit, changes, ledger, permissions, rows
from .errors import Halted, Invalid, PermissionDenied
from .members import by_need
from .models import Agent, Halt, Member, Workspace

NO_REASON = "No reason given"
MOST_REASON = 500


def current(workspace_id: str, agent_id: str | None) -> Halt | None:
    """What keeps this agent, or with None this workspace's own keys, from beginning anything; the workspace's first."""
    found = rows.ask(_question(), [workspace_id, agent_id]).fetchone()
    return Halt.objects.select_related("agent", "workspace", "halted_by__user").get(pk=found[0]) if found else None


@cache
def _question() -> str:
    """As text: each call of each key asks it, and Django would write it anew each time."""
    return (
        f"SELECT id FROM {Halt._meta.db_table} WHERE workspace_id = %s AND lifted_at IS NULL "
        "AND (agent_id IS NULL OR agent_id = %s) ORDER BY agent_id IS NOT NULL LIMIT 1"
    )


def check(workspace_id: str, agent_id: str | None) -> None:
    """Raises Halted while one is in force."""
    if halt := current(workspace_id, agent_id):
        raise Halted(
            f"{said(halt)} Nothing was run. A member with `agents:manage` can lift it in the console.", halt=halt.pk
        )


def said(halt: Halt) -> str:
    """`scout is halted by Ines since 2026-03-14 10:10:00 UTC: “Unknown uploads”.`"""
    at = f"{halt.halted_at:%Y-%m-%d %H:%M:%S} UTC"
    return f"{halt.agent or halt.workspace} is halted by {halt.halted_by} since {at}: “{halt.reason}”."


@transaction.atomic
def declare(
    workspace: Workspace, agent: Agent | None, *, by: Member, reason: str = "", via: str = "page"
) -> tuple[Halt, bool]:
    """The halt in force from here on, and whether this call declared it: another's stays as it was said."""
    _need(by, permissions.APPROVALS_REVIEW, workspace)
    reason = reason.strip()[:MOST_REASON] or NO_REASON
    made = Halt(workspace=workspace, agent=agent, reason=reason, halted_by=by, via=via)
    try:
        with transaction.atomic():
            made.save(force_insert=True)
    except IntegrityError:
        return Halt.objects.current().get(workspace=workspace, agent=agent), False
    _tell(made, "halted", by, reason=reason, via=via)
    return made, True


@transaction.atomic
def lift(halt: Halt, *, by: Member, reason: str) -> bool:
    """False when somebody was first. What was ended and cancelled stays so. That `by` has just proved who they are is
    seen to by the page, which alone can lift."""
    _need(by, permissions.AGENTS_MANAGE, halt.workspace)
    if not (reason := reason.strip()[:MOST_REASON]):
        raise Invalid("Say why it may go on. It is kept in the audit log.", field="reason")
    lifted = Halt.objects.current().filter(pk=halt.pk)
    if not lifted.update(lifted_at=timezone.now(), lifted_by=by, lift_reason=reason):
        return False
    _tell(halt, "lifted", by, reason=reason)
    return True


def _need(by: Member, permission: str, workspace: Workspace) -> None:
    by_need(by, permission)
    if by.workspace_id != workspace.pk:
        raise PermissionDenied(f"{by} is no member of {workspace}.")


def _tell(halt: Halt, status: str, by: Member, **data: str) -> None:
    about = "agent" if halt.agent_id else "workspace"
    with ledger.opened(halt.workspace_id) as opened:
        changes.record(opened, subject="halt", subject_id=halt.pk, agent_id=halt.agent_id or "", status=status)
        audit.link(
            opened, actor=audit.Actor("member", by.pk), event=f"{about}.{status}",
            subject_id=halt.agent_id or halt.workspace_id, halt=halt.pk, **data,
        )  # fmt: skip
