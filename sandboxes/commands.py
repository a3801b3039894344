"""Rows of commands: recorded, ended, lost, and clear of what they left. Plain ORM code for `db.read` and `db.write`.

Owns every word that is written into one. A row has one end, and what came first stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from approvals import gate
from approvals.models import Action
from console.workspaces import audit, changes, ledger, rows
from console.workspaces.errors import NotFound
from console.workspaces.keys import Caller

from . import lifecycle, outputs, protection
from .models import Command, Sandbox

if TYPE_CHECKING:
    from approvals.gate import Pass

# What a row takes from a result.
FIELDS = (
    "status", "exit_code", "timed_out", "left_running", "reason", "stdout_bytes", "stderr_bytes", "duration_ms"
)  # fmt: skip
Sizes = Mapping[Any, int]


def record(pass_: Pass) -> Command:
    background = bool(pass_.arguments.get("background"))
    return rows.insert(Command(sandbox_id=pass_.sandbox_id, action_id=pass_.action_id, background=background))


def find(caller: Caller, sandbox_id: str, command_id: str) -> Command:
    found = lifecycle.find(caller, sandbox_id).commands.select_related("sandbox").filter(pk=command_id).first()
    if found is None:
        raise NotFound("command", command_id)
    return found


def of_caller(caller: Caller, command_id: str) -> Command:
    """In whichever sandbox of theirs."""
    visible = Sandbox.objects.visible_to(caller)
    found = Command.objects.select_related("sandbox").filter(pk=command_id, sandbox__in=visible).first()
    if found is None:
        raise NotFound("command", command_id)
    return found


def of_sandbox(sandbox_id: str, command_id: str) -> Command:
    found = Command.objects.select_related("sandbox").filter(pk=command_id, sandbox_id=sandbox_id).first()
    if found is None:
        raise NotFound("command", command_id)
    return found


def not_over(sandbox_id: str) -> list[Command]:
    """Those that run, and those that left something running; the oldest first."""
    there = Q(status="running") | Q(left_running=True)
    return list(Command.objects.filter(there, sandbox_id=sandbox_id).order_by("pk"))


def as_it_is(command: Command) -> Command:
    """A row learns its sizes when the command ends; until then the files know them."""
    if command.status == "running":
        for name, size in outputs.Outputs(command.action_id).sizes.items():
            setattr(command, f"{name}_bytes", size)
    return command


def of_action(action_id: str) -> Command | None:
    try:
        return Command.objects.get(action_id=action_id)
    except Command.DoesNotExist:
        return None


def runs(command_id: str) -> bool:
    return Command.objects.filter(pk=command_id, ended_at=None).exists()


def end(action_id: str, result: Mapping[str, Any], row: Command | None = None) -> bool:
    """`row`: that of whoever recorded it, which learns what is written."""
    fields = {name: result[name] for name in FIELDS if name in result}
    if row is not None:
        vars(row).update(fields)
    return _end(action_id, **fields)


def lose(action_id: str, sizes: Sizes | None = None) -> bool:
    """Its end will never be known. `sizes`: how much of its output is here."""
    return _end(action_id, status="lost", **{f"{name}_bytes": size for name, size in (sizes or {}).items()})


def never_began(action_id: str) -> None:
    Command.objects.filter(action_id=action_id).delete()


def emptied(action_id: str) -> None:
    """Nothing that it started is left."""
    Command.objects.filter(action_id=action_id).update(left_running=False)


def _end(action_id: str, **fields: Any) -> bool:
    return bool(rows.update(Command, {"ended_at": timezone.now(), **fields}, action_id=action_id, ended_at=None))


# In the background no action ends with the command: its end is told by itself.


@transaction.atomic
def end_in_background(action_id: str, result: Mapping[str, Any]) -> None:
    _hold(action_id)
    if end(action_id, result):
        protection.record_in_background(action_id, result)
        _tell_end(action_id)


@transaction.atomic
def lose_in_background(action_id: str, sizes: Sizes) -> None:
    _hold(action_id)
    if lose(action_id, sizes):
        _tell_end(action_id)


def _hold(action_id: str) -> None:
    """Before its row is locked."""
    found = Command.objects.filter(action_id=action_id).values_list("sandbox__workspace_id", flat=True).first()
    if found:
        ledger.hold(found)


def _tell_end(action_id: str) -> None:
    command = Command.objects.select_related("sandbox").get(action_id=action_id)
    lifecycle.touch(command.sandbox_id)
    for waiting in Action.objects.pending().filter(tool="stdin", sandbox_id=command.sandbox_id):
        if waiting.arguments["id"] == command.pk:
            gate.supersede(
                waiting, f"{command.pk} ended before this was decided. Nothing was sent.", code="command_ended"
            )
    sandbox = command.sandbox
    with ledger.opened(sandbox.workspace_id) as opened:
        changes.record(
            opened, subject="command", subject_id=command.pk, agent_id=sandbox.agent_id or "", status=command.status
        )


@transaction.atomic
def record_stop(command: Command, *, actor: audit.Actor, signal: str) -> None:
    """Stopping never asks, so this is all there is of who did it."""
    sandbox = command.sandbox
    audit.append(
        workspace_id=sandbox.workspace_id, actor=actor, event="command.stop", subject_id=command.pk,
        sandbox=sandbox.pk, signal=signal,
    )  # fmt: skip


def record_stop_by(action_id: str, command: Command, *, signal: str) -> None:
    """By the tool, whose action says who."""
    action = Action.objects.get(pk=action_id)
    who = audit.Actor("agent", action.agent_id) if action.agent_id else audit.Actor("key", action.key_id or "")
    record_stop(command, actor=who, signal=signal)


def to_follow() -> list[tuple[str, str, bool]]:
    """(action, sandbox, whether it has ended) of what a restarted server follows again. What was about to begin is not
    among them: its action still runs, and whoever takes that up goes on from there."""
    about_to_begin = Action.objects.filter(pk=OuterRef("action_id"), status="running")
    found = Command.objects.filter(Q(status="running", background=True) | Q(left_running=True))
    rows = found.exclude(Exists(about_to_begin)).values_list("action_id", "sandbox_id", "status")
    return [(action_id, sandbox_id, status != "running") for action_id, sandbox_id, status in rows]
