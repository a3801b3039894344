"""Each execution that is followed gets an end in the table, also where what it came to cannot be stored."""

import asyncio
from types import SimpleNamespace

import pytest
from django.db import DataError, OperationalError

from approvals.models import Action
from sandboxes import answers, dispatch, ends, reads
from sandboxes.errors import FileError, NotStored, SandboxError
from sandboxes.models import Command
from tests.api.conftest import make_sandbox
from tests.approvals import proposals

pytestmark = pytest.mark.anyio
RESULT = {
    "status": "exited", "exit_code": 0, "timed_out": False, "left_running": False, "duration_ms": 5, "stdout_bytes": 0,
    "stderr_bytes": 0, "truncated": False,
}  # fmt: skip


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def proposal(committed_cast):
    sandbox = make_sandbox(committed_cast.scout)
    return proposals.run(committed_cast.caller(committed_cast.alice), sandbox_id=sandbox.pk)


@pytest.fixture
def begun(proposal):
    return dispatch.submit(proposal)


def refusing(error, *, times=1):
    """In place of what writes: refuses so often, and then writes."""

    def put(monkeypatch, name):
        write, left = getattr(ends, name), [error] * times

        def refused(*given, **more):
            if left:
                raise left.pop()
            return write(*given, **more)

        monkeypatch.setattr(ends, name, refused)

    return put


def end_of(begun):
    return Action.objects.get(pk=begun.pass_.action_id), Command.objects.get(action_id=begun.pass_.action_id)


@pytest.fixture
def ended(begun):
    async def found():
        return await asyncio.to_thread(end_of, begun)

    return found


async def test_an_answer_that_no_row_takes_is_a_failure_that_says_so(begun, ended, monkeypatch, caplog):
    refusing(DataError("no such text"))(monkeypatch, "succeed")
    assert await ends.told(begun.pass_, RESULT, begun.command) is False
    action, command = await ended()
    assert (action.status, action.error["code"], command.status) == ("failed", "not_stored", "lost")
    assert action.outcome()["executed"] is True
    assert begun.pass_.action_id in caplog.text


async def test_an_answer_that_this_machine_has_no_room_for_is_one_too(begun, ended, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(answers, "keep", full)
    assert await ends.told(begun.pass_, {**RESULT, "stdout": "x" * 5000}, begun.command) is False
    action, _ = await ended()
    assert (action.status, action.error["code"]) == ("failed", "not_stored")


async def test_a_read_that_cannot_be_recorded_is_not_answered_as_if_it_were(begun, ended, monkeypatch):
    refusing(DataError("no such text"))(monkeypatch, "succeed")
    with pytest.raises(NotStored, match=begun.pass_.action_id):
        await reads._stored(begun.pass_, RESULT)
    assert (await ended())[0].error["code"] == "not_stored"


async def test_an_end_waits_for_a_database_that_is_away(begun, ended, monkeypatch):
    monkeypatch.setattr(ends, "AGAIN_S", 0.01)
    refusing(OperationalError("away"), times=4)(monkeypatch, "fail")
    await ends.told_failure(begun.pass_, status="failed", code="channel_lost", detail="It was lost.", began=False)
    action = await asyncio.to_thread(Action.objects.get)
    assert (action.status, action.error["code"]) == ("failed", "not_stored")
    assert action.outcome()["executed"] is False
    assert not await asyncio.to_thread(Command.objects.exists)


@pytest.mark.database
async def test_whatever_is_said_of_a_failure_it_has_an_end(begun, ended):
    more = {"path": "a\0b"}
    await ends.told_failure(begun.pass_, status="failed", code="bad_path", detail="a\0b: none.", fields=more)
    action, command = await ended()
    assert (action.status, command.status) == ("failed", "lost")
    assert action.error["code"] in ("bad_path", "not_stored")


class Tool:
    """In place of an act: `answer` is what it came to."""

    KIND = "command"

    def __init__(self, answer):
        self.answer = answer

    async def execute(self, *_):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Box:
    """Of a sandbox that does what it is told; `stopped`: which commands it was told to end."""

    def __init__(self):
        self.stopped, self.settled = [], lambda _: None

    async def stop(self, action_id, _):
        self.stopped.append(action_id)


def dispatcher(box):
    async def ready_box(_):
        return box

    known = SimpleNamespace(
        ready_box=ready_box, output_mb=lambda _: 1, protection=lambda _: None, holds=lambda _: True, box=lambda _: box,
        stopping=False,
    )  # fmt: skip
    return dispatch.Dispatcher(known)


async def test_a_command_whose_beginning_cannot_be_stored_does_not_go_on_unseen(begun, ended, monkeypatch):
    box = Box()
    refusing(DataError("no such text"))(monkeypatch, "succeed")
    monkeypatch.setattr(dispatch, "named", lambda *_: Tool({**RESULT, "background": True}))
    await dispatcher(box).execute(begun.pass_, command=begun.command)
    action, _ = await ended()
    assert (action.status, box.stopped) == ("failed", [begun.pass_.action_id])


@pytest.mark.parametrize("answer", [RESULT, SandboxError("no"), FileError("bad_path", "no", path="x"), ValueError("x")])
@pytest.mark.parametrize("by_host", [True, False])
async def test_no_execution_is_left_running(begun, ended, monkeypatch, answer, by_host):
    for name in ("succeed", "fail"):
        refusing(DataError("no such text"))(monkeypatch, name)
    monkeypatch.setattr(ends, "AGAIN_S", 0.01)
    monkeypatch.setattr(dispatch, "named", lambda *_: Tool(answer))
    monkeypatch.setattr(dispatch, "is_by_host", lambda *_: by_host)
    await dispatcher(Box()).execute(begun.pass_, command=begun.command)
    action = await asyncio.to_thread(Action.objects.get)
    assert (action.is_open, action.error["code"]) == (False, "not_stored")


def test_what_begins_when_the_hub_has_closed_ends_at_once_and_never_ran(proposal):
    async def made():
        return dispatcher(Box())

    found = asyncio.run(made())._submit(proposal, None)
    action = Action.objects.get()
    assert (action.status, action.error["code"], action.outcome()["executed"]) == ("failed", "interrupted", False)
    assert found.ended.status == "failed"
    assert not Command.objects.exists()


async def test_a_fault_of_a_proposal_is_in_the_log_and_a_refusal_is_not(proposal, monkeypatch, caplog):
    for error in (SandboxError("no"), ValueError("a fault")):
        monkeypatch.setattr(dispatch, "submit", lambda _, error=error: (_ for _ in ()).throw(error))
        with pytest.raises(type(error)):
            await dispatcher(Box()).submit(proposal)
    (said,) = (record for record in caplog.records if record.name == "sandgate.dispatch")
    assert said.exc_info[1].args == ("a fault",)
