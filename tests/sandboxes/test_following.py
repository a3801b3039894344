"""Rows of commands in the background: one end each, told by itself, and what a restarted server follows again."""

import asyncio

import pytest

from approvals.models import Action
from console.workspaces import bus
from console.workspaces.models import AuditEntry, Change
from sandboxes import commands, outputs
from sandboxes.engine import RunResult
from sandboxes.models import Command
from sandboxes.outputs import Outputs
from sandboxes.toolsets import run
from tests.api.conftest import make_sandbox
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db
ENDED = {"exit_code": 0, "timed_out": False, "stopped": False, "left_running": False, "duration_ms": 5}
SIZES = {"stdout_bytes": 3, "stderr_bytes": 0, "lost_bytes": 0}


@pytest.fixture
def sandbox(cast):
    return make_sandbox(cast.scout)


def begun(sandbox, action_id, **fields):
    return Command.objects.create(sandbox=sandbox, action_id=action_id, **{"background": True, **fields})


def result_of(action_id, **changes):
    return run.result(RunResult(**{**ENDED, **SIZES, **changes}), Outputs(action_id))


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "exited"),
        ({"exit_code": 139, "signalled": True}, "signalled"),
        ({"exit_code": 143, "signalled": True, "stopped": True}, "stopped"),
        ({"exit_code": 124, "signalled": True, "timed_out": True}, "timed_out"),
    ],
)
def test_how_it_ended_is_one_word(sandbox, changes, status):
    command = begun(sandbox, "act_1")
    commands.end_in_background("act_1", result_of("act_1", **changes))
    command.refresh_from_db()
    assert (command.status, command.exit_code, command.stdout_bytes) == (status, changes.get("exit_code", 0), 3)
    change = Change.objects.get(subject="command")
    assert (change.subject_id, change.status, change.agent_id) == (command.pk, status, sandbox.agent_id)


def test_what_came_first_stays(sandbox):
    command = begun(sandbox, "act_1")
    commands.lose_in_background("act_1", {"stdout": 7, "stderr": 0})
    commands.end_in_background("act_1", result_of("act_1"))
    command.refresh_from_db()
    assert (command.status, command.exit_code, command.stdout_bytes) == ("lost", None, 7)
    assert Change.objects.filter(subject="command").count() == 1


@pytest.mark.parametrize("end", ["exited", "lost"])
def test_input_that_waits_for_a_command_waits_no_longer_than_it_runs(sandbox, cast, end):
    command, other = begun(sandbox, "act_1"), begun(sandbox, "act_2")
    scout = cast.caller(cast.scout)
    waiting = [
        pending(scout, tool="stdin", sandbox_id=sandbox.pk, arguments={"id": each.pk, "data": "y\n", "eof": False})
        for each in (command, other)
    ]
    if end == "exited":
        commands.end_in_background("act_1", result_of("act_1"))
    else:
        commands.lose_in_background("act_1", {})
    for action in waiting:
        action.refresh_from_db()
    assert [action.status for action in waiting] == ["superseded", "pending"]
    assert waiting[0].error["code"] == "command_ended"


def test_killed_for_memory_is_said_in_the_row(sandbox):
    begun(sandbox, "act_1")
    commands.end_in_background("act_1", result_of("act_1", exit_code=1, reason="oom"))
    assert Command.objects.get().reason == "oom"


def test_a_restarted_server_follows_what_runs_or_left_something_and_not_what_is_yet_to_begin(sandbox, cast):
    begun(sandbox, "act_runs")
    begun(sandbox, "act_left", background=False, status="exited", left_running=True)
    begun(sandbox, "act_ended", status="exited")
    begun(sandbox, "act_foreground", background=False)
    begins = Action.objects.create(
        tool="run", digest="0" * 64, workspace=cast.workspace, sandbox_id=sandbox.pk, status="running",
        started_at=sandbox.created_at,
    )  # fmt: skip
    begun(sandbox, begins.pk)
    assert set(commands.to_follow()) == {("act_runs", sandbox.pk, False), ("act_left", sandbox.pk, True)}


def test_who_stopped_it_is_in_the_audit_log(sandbox, cast):
    command = begun(sandbox, "act_1")
    commands.record_stop(command, actor=cast.caller(cast.scout).actor, signal="TERM")
    entry = AuditEntry.objects.get(event="command.stop")
    assert (entry.actor_id, entry.subject_id, entry.data["signal"]) == (cast.scout.pk, command.pk, "TERM")


def test_followers_are_rung_at_once_and_then_at_most_ten_times_a_second(monkeypatch):
    rings = []
    monkeypatch.setattr(bus, "announce", rings.append)

    async def print_much():
        kept = Outputs("act_1")
        for number in range(500):
            await kept.put("stdout", number, b"x")
        first = list(rings)
        await asyncio.sleep(outputs.RING_EVERY_S * 2.5)
        later = len(rings)
        await asyncio.sleep(outputs.RING_EVERY_S * 2)
        return first, later, len(rings)

    first, later, last = asyncio.run(print_much())
    assert first == [outputs.topic("act_1")]
    assert (later, last) == (2, 2)
