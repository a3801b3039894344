"""What a request is told of its own execution in memory is what the table says, and never sooner than the table."""

import pytest
from django.db import transaction

from approvals import gate
from approvals.models import Action
from console.workspaces import db
from sandboxes import acts, dispatch, ends
from sandboxes.models import Command
from tests.api.conftest import make_sandbox
from tests.approvals import proposals

RESULT = {
    "status": "exited", "exit_code": 3, "timed_out": False, "left_running": True, "duration_ms": 5, "stdout_bytes": 0,
    "stderr_bytes": 0, "truncated": False,
}  # fmt: skip


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def fields(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.fixture
def begun(committed_cast):
    sandbox = make_sandbox(committed_cast.scout)
    caller = committed_cast.caller(committed_cast.alice)
    found = dispatch.submit(proposals.run(caller, sandbox_id=sandbox.pk))
    assert isinstance(found, dispatch.Begun)
    return found


def test_the_end_that_is_handed_over_is_the_one_in_the_table(begun):
    assert begun.ended is None
    ends.succeed(begun.pass_, RESULT, begun.command)
    assert fields(begun.ended) == fields(Action.objects.get())
    told, stored = fields(begun.command), fields(Command.objects.get())
    assert told | {"ended_at": stored["ended_at"]} == stored


def test_a_failure_is_handed_over_with_its_error(begun):
    ends.fail(begun.pass_, status="failed", code="channel_lost", detail="It was lost.")
    assert fields(begun.ended) == fields(Action.objects.get())
    assert begun.ended.error["code"] == "channel_lost"


def test_an_end_that_is_not_committed_is_told_to_nobody(begun):
    with transaction.atomic():
        ends.succeed(begun.pass_, RESULT, begun.command)
        assert begun.ended is None
        transaction.set_rollback(True)
    assert begun.ended is None
    assert Action.objects.get().status == "running"


def test_an_end_that_somebody_else_wrote_is_left_to_the_table(begun):
    assert gate.finish(gate.again(begun.pass_.action_id), status="unknown", error={"code": "lost", "detail": "Lost."})
    assert not ends.succeed(begun.pass_, RESULT, begun.command)
    assert begun.ended is None


@pytest.mark.anyio
async def test_who_waits_for_what_it_began_reads_no_table(begun, committed_cast, monkeypatch):
    def read_again(*_):
        raise AssertionError("what was just written was read")

    await db.write(ends.succeed, begun.pass_, RESULT, begun.command)
    monkeypatch.setattr(acts, "_find_ended", read_again)
    monkeypatch.setattr(acts.commands, "of_action", read_again)
    found = await acts.settled(None, begun.pass_.action_id, wait_s=5, begun=begun)
    assert found is begun.ended
    assert (await acts.output(found, begun.command)).command is begun.command
