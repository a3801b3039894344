"""Commands in the background over REST, as far as they are rows, proposals and files. What runs is in tests/gvisor."""

import asyncio
import json
from datetime import timedelta

import pytest
from django.utils import timezone

from console.api import waits
from console.workspaces import bus, db
from console.workspaces.models import Key
from sandboxes.models import Command
from sandboxes.outputs import Stream, _directory

from .conftest import the_action

pytestmark = pytest.mark.anyio


@pytest.fixture
def running(place):
    return Command.objects.create(sandbox=place.sandbox, action_id="act_bg", background=True)


def at(place, command=None, tail=""):
    return f"/sandboxes/{place.sandbox.pk}/commands" + (f"/{command.pk}{tail}" if command else "")


def printed(command, text, *, name="stdout", offset=0):
    Stream(_directory(command.action_id), name).put(offset, text.encode())
    bus.announce(f"output:{command.action_id}")


async def end(command, **fields):
    await db.write(Command.objects.filter(pk=command.pk).update, **{"status": "exited", "exit_code": 0, **fields})
    bus.announce(f"command:{command.pk}")


async def streaming():
    """Returns once a stream has its place."""
    async with asyncio.timeout(10):
        while not waits._waiting:  # noqa: ASYNC110  (a counter rings no event)
            await asyncio.sleep(0.01)


def events(answer):
    """(event, id, data) of a whole stream."""
    blocks = [block for block in answer.text.split("\n\n") if block and not block.startswith(":")]
    fields = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    return [(each["event"], each["id"], json.loads(each["data"])) for each in fields]


async def test_in_the_background_nothing_ends_it_unless_said(ask, place, hub, settings):
    settings.GATED_CALL_S = 0.2
    body = {"command": "make serve", "background": True}
    answer = await ask.post(at(place), body, key=place.scouts)
    assert (answer.status_code, answer.json()["code"]) == (409, "pending_approval")
    action = await the_action(pk=answer.json()["action_id"])
    assert (action.arguments["background"], action.arguments["timeout_s"]) == (True, None)
    again = await ask.post(at(place), body, key=place.scouts)
    assert again.json()["action_id"] == action.pk
    foreground = await ask.post(at(place), {"command": "make serve"}, key=place.scouts)
    assert foreground.json()["action_id"] != action.pk


@pytest.mark.parametrize(("background", "timeout", "passes"), [
    (True, 86400, True), (True, 86401, False), (False, 3600, True), (False, 3601, False), (True, 0, False),
])  # fmt: skip
async def test_a_timeout_has_its_limits(ask, place, hub, settings, background, timeout, passes):
    settings.GATED_CALL_S = 0.2
    body = {"command": "x", "background": background, "timeout": timeout}
    answer = await ask.post(at(place), body, key=place.scouts)
    assert answer.json()["code"] == ("pending_approval" if passes else "validation")


async def test_input_by_an_agent_waits_for_a_person_bound_to_its_command_and_bytes(ask, place, hub, settings, running):
    settings.GATED_CALL_S = 0.2
    answer = await ask.post(at(place, running, "/stdin"), {"data": "rm x\n", "reason": "y"}, key=place.scouts)
    assert (answer.status_code, answer.json()["code"]) == (409, "pending_approval")
    action = await the_action(pk=answer.json()["action_id"])
    assert (action.tool, action.arguments) == ("stdin", {"id": running.pk, "data": "rm x\n", "eof": False})
    other = await ask.post(at(place, running, "/stdin"), {"data": "rm y\n"}, key=place.scouts)
    assert other.json()["action_id"] != action.pk


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "data"),
        ({"data": "x" * ((1 << 20) + 1)}, "data"),
        ({"data": "=x", "encoding": "base64"}, "data"),
        ({"data": "\ud800"}, "data"),
    ],
)
async def test_bad_input_is_named(ask, place, hub, running, body, field):
    answer = await ask(
        "POST", at(place, running, "/stdin"), key=place.alices, content=json.dumps(body),
        headers={"content-type": "application/json"},
    )  # fmt: skip
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_what_has_ended_or_runs_in_the_foreground_takes_no_input_and_what_has_ended_no_stop(ask, place, hub):
    for method, tail, more in (("POST", "/stdin", {"json": {"data": "x"}}), ("DELETE", "", {})):
        answer = await ask(method, at(place, place.command, tail), key=place.alices, **more)
        assert (answer.status_code, answer.json()["code"]) == (409, "command_ended")
    foreground = await db.write(Command.objects.create, sandbox=place.sandbox, action_id="act_fg")
    answer = await ask.post(at(place, foreground, "/stdin"), {"data": "x"}, key=place.alices)
    assert (answer.status_code, answer.json()["code"]) == (409, "stdin_closed")
    odd = await ask("DELETE", at(place, foreground), key=place.alices, params={"signal": "STOP"})
    assert (odd.status_code, odd.json()["field"]) == (422, "signal")


async def test_a_running_one_tells_how_much_it_has_printed(ask, place, running):
    printed(running, "12345")
    found = (await ask.get(at(place), key=place.scouts, status="running")).json()["items"]
    assert [(row["id"], row["stdout_bytes"], row["left_running"]) for row in found] == [(running.pk, 5, [])]


async def test_a_wait_ends_with_more_output_and_not_with_half_a_character(ask, place, running):
    printed(running, "old")
    call = asyncio.create_task(ask.get(at(place, running), key=place.scouts, wait=20, stdout_from=3))
    await asyncio.sleep(0.2)
    Stream(_directory("act_bg"), "stdout").put(3, "é".encode()[:1])
    bus.announce("output:act_bg")
    await asyncio.sleep(0.2)
    assert not call.done()
    Stream(_directory("act_bg"), "stdout").put(4, "é".encode()[1:])
    bus.announce("output:act_bg")
    async with asyncio.timeout(3):
        found = (await call).json()
    assert (found["stdout"], found["status"], found["next"]["stdout"]) == ("é", "running", 5)


async def test_events_come_as_it_prints_and_end_with_it(ask, place, running):
    call = asyncio.create_task(ask.get(at(place, running, "/events"), key=place.scouts))
    await asyncio.sleep(0.2)
    printed(running, "one\n")
    await asyncio.sleep(0.2)
    printed(running, "oops", name="stderr")
    await asyncio.sleep(0.2)
    await end(running, stdout_bytes=4, stderr_bytes=4)
    async with asyncio.timeout(3):
        answer = await call
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store"
    first, second, last = events(answer)
    assert first == ("stdout", "4-0", {"offset": 0, "data": "one\n", "encoding": "utf-8"})
    assert second == ("stderr", "4-4", {"offset": 0, "data": "oops", "encoding": "utf-8"})
    assert (last[:2], last[2]["id"], last[2]["status"]) == (("exit", "4-4"), running.pk, "exited")


async def test_events_from_an_id_on_are_those_after_it_also_when_it_has_ended(ask, place, running):
    text = "".join(f"line {n} ü\n" for n in range(20_000))
    printed(running, text)
    await end(running, stdout_bytes=len(text.encode()))
    whole = events(await ask.get(at(place, running, "/events"), key=place.scouts))
    assert len(whole) > 3
    assert "".join(data["data"] for _, _, data in whole[:-1]) == text
    for place_id in (whole[0][1], whole[-2][1]):
        again = await ask("GET", at(place, running, "/events"), key=place.scouts, headers={"Last-Event-ID": place_id})
        assert events(again) == whole[[event[1] for event in whole].index(place_id) + 1 :]


@pytest.mark.parametrize("never_given", ["999-0", "999-999", "4-7"])
async def test_an_id_beyond_the_end_is_told_and_what_comes_then_is_not_missed(ask, place, running, never_given):
    printed(running, "one\n")
    headers = {"Last-Event-ID": never_given}
    call = asyncio.create_task(ask("GET", at(place, running, "/events"), key=place.scouts, headers=headers))
    await streaming()
    await asyncio.sleep(0.2)
    printed(running, "two\n", offset=4)
    await end(running, stdout_bytes=8)
    async with asyncio.timeout(5):
        first, second, last = events(await call)
    assert first == ("reset", "4-0", {"stdout": 4, "stderr": 0})
    assert second == ("stdout", "8-0", {"offset": 4, "data": "two\n", "encoding": "utf-8"})
    assert last[:2] == ("exit", "8-0")


async def test_an_end_whose_output_is_not_kept_any_more_is_no_id_beyond_it(ask, place, running):
    await end(running, stdout_bytes=8)
    again = await ask("GET", at(place, running, "/events"), key=place.scouts, headers={"Last-Event-ID": "8-0"})
    assert [event[:2] for event in events(again)] == [("exit", "8-0")]


async def test_a_page_beyond_the_end_says_at_once_where_the_end_is(ask, place, running):
    printed(running, "one\n")
    async with asyncio.timeout(5):
        found = (await ask.get(at(place, running), key=place.scouts, wait=20, stdout_from=999)).json()
    assert (found["stdout"], found["next"], found["lost_bytes"]["stdout"]) == ("", {"stdout": 4, "stderr": 0}, 0)


async def test_a_gap_is_an_offset_and_bytes_that_are_no_text_are_base64(ask, place, running):
    Stream(_directory("act_bg"), "stdout").put(100, b"\xff\x00")
    await end(running)
    ((_, where, data), _) = events(await ask.get(at(place, running, "/events"), key=place.scouts))
    assert (where, data) == ("102-0", {"offset": 100, "data": "/wA=", "encoding": "base64"})


async def test_streams_are_counted_with_a_keys_waits_and_given_back(ask, place, running, settings):
    settings.WAITS_PER_KEY = 1
    first = asyncio.create_task(ask.get(at(place, running, "/events"), key=place.scouts))
    await streaming()
    refused = await ask.get(at(place, running, "/events"), key=place.scouts)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    assert (await ask.get(at(place, running), key=place.scouts)).status_code == 200
    await end(running)
    async with asyncio.timeout(3):
        await first
    assert (await ask.get(at(place, running, "/events"), key=place.scouts)).status_code == 200


async def test_a_stream_ends_with_its_key(ask, place, running, settings):
    settings.TIMER_DIVISOR = 60
    call = asyncio.create_task(ask.get(at(place, running, "/events"), key=place.scouts))
    await streaming()
    await asyncio.sleep(0.6)
    assert not call.done()
    await db.write(Key.objects.filter(agent=place.scout).update, revoked_at=timezone.now() - timedelta(seconds=1))
    async with asyncio.timeout(5):
        answer = await call
    assert answer.text.count(": still here") >= 1
    assert events(answer) == []
