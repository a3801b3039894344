"""Sandboxes whose time is over: which ones, what is to become of them, and why. Plain ORM code for the clock.

Owns idle times and lifetimes. Must never act on what it read a moment ago: `act` looks again inside the transaction
that writes, so that activity just before it keeps a sandbox as it is.

    running, past its lifetime     → ended (persistent: stopped)
    running, idle                  → ended (persistent: stopped; an action of it waits for a person: stopped)
    stopped, past its lifetime     → ended
    stopped, idle, nothing waits   → ended (persistent: only when not used for long)

A command that runs is activity, and so is an action that was approved. Where a disk does not outlive a stop, nothing is
stopped: what should be waits on, running, for its lifetime to end.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from approvals.models import Action
from console.workspaces import audit, ledger

from . import lifecycle
from .models import Command, Sandbox


@dataclass(frozen=True)
class Due:
    """`becomes`: stopped or ended."""

    sandbox_id: str
    becomes: str
    reason: str


def due(*, can_stop: bool, divisor: float = 1) -> list[Due]:
    found = (_verdict(sandbox, can_stop=can_stop, divisor=divisor) for sandbox in _candidates(divisor))
    return [each for each in found if each is not None]


def act(due: Due, *, can_stop: bool, divisor: float = 1) -> bool:
    """True when it was still so, and the row says it now."""
    with transaction.atomic():
        sandbox = Sandbox.objects.get(pk=due.sandbox_id)
        ledger.hold(sandbox.workspace_id)
        sandbox.refresh_from_db()
        if _verdict(sandbox, can_stop=can_stop, divisor=divisor) != due:
            return False
        change = lifecycle.stop if due.becomes == "stopped" else lifecycle.end
        return change(sandbox, due.reason, actor=audit.CLOCK)


def _candidates(divisor: float) -> list[Sandbox]:
    """Those that had no sign of life for their idle time, or are past their lifetime: few, each second."""
    now = timezone.now()
    return [
        sandbox
        for sandbox in Sandbox.objects.live().filter(status__in=["running", "stopped"])
        if _is_old(sandbox, now, divisor) or _is_past(sandbox.last_activity_at, sandbox.idle_timeout_s, now, divisor)
    ]


def _verdict(sandbox: Sandbox, *, can_stop: bool, divisor: float) -> Due | None:
    now = timezone.now()
    if not sandbox.is_live:
        return None
    if sandbox.status == "running":
        becomes, reason = _of_running(sandbox, now, divisor)
    elif sandbox.status == "stopped":
        becomes, reason = _of_stopped(sandbox, now, divisor)
    else:
        return None
    possible = becomes == "ended" or (becomes == "stopped" and can_stop)
    return Due(sandbox.pk, becomes, reason) if possible else None


def _of_running(sandbox: Sandbox, now: datetime, divisor: float) -> tuple[str, str]:
    waits = set(Action.objects.open().filter(sandbox_id=sandbox.pk).values_list("status", flat=True))
    if _is_old(sandbox, now, divisor):
        return ("stopped" if sandbox.persistent else "ended"), "max_lifetime"
    if waits - {"pending"} or Command.objects.filter(sandbox=sandbox, status="running").exists():
        return "", ""
    if not _is_idle(sandbox, now, divisor):
        return "", ""
    return ("stopped" if sandbox.persistent or waits else "ended"), "idle"


def _of_stopped(sandbox: Sandbox, now: datetime, divisor: float) -> tuple[str, str]:
    if sandbox.persistent:
        over = _is_past(sandbox.last_activity_at, _lifetime_s(sandbox), now, divisor)
        return ("ended", "idle") if over else ("", "")
    if _is_old(sandbox, now, divisor):
        return "ended", "max_lifetime"
    if Action.objects.open().filter(sandbox_id=sandbox.pk).exists() or not _is_idle(sandbox, now, divisor):
        return "", ""
    return "ended", "idle"


def _is_old(sandbox: Sandbox, now: datetime, divisor: float) -> bool:
    """A persistent one may run for so long at a stretch; another one may live for so long."""
    if sandbox.persistent:
        return sandbox.status == "running" and _is_past(
            sandbox.started_at or sandbox.created_at, sandbox.max_lifetime_s, now, divisor
        )
    return _is_past(sandbox.created_at, (sandbox.expires_at - sandbox.created_at).total_seconds(), now, divisor)


def _lifetime_s(sandbox: Sandbox) -> float:
    return (sandbox.expires_at - sandbox.last_activity_at).total_seconds()


def _is_idle(sandbox: Sandbox, now: datetime, divisor: float) -> bool:
    """Since its last use or the end of its last action: who is told of a denial gets the time to do something else."""
    if not _is_past(sandbox.last_activity_at, sandbox.idle_timeout_s, now, divisor):
        return False
    ended_at = Action.objects.filter(sandbox_id=sandbox.pk).aggregate(last=Max("ended_at"))["last"]
    return ended_at is None or _is_past(ended_at, sandbox.idle_timeout_s, now, divisor)


def _is_past(since: datetime, seconds: float, now: datetime, divisor: float) -> bool:
    return since + timedelta(seconds=seconds / divisor) < now
