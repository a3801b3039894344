"""Calls under way whose key ends: cut off within seconds, as a removed member's are; each other call goes on."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from django.utils import timezone

from approvals import leaving
from console import standing
from console.api import events
from console.doorman import doorman
from console.workspaces import bus, db, permissions
from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Key
from sandboxes.models import Command
from sandboxes.outputs import Stream, _directory
from tests.approvals import proposals

pytestmark = pytest.mark.anyio
WITHIN_S = 5.0


@pytest.fixture
def bobs(place) -> str:
    return place.workspace_key(place.bob, permissions.APPROVALS_REVIEW)


def _pending(place):
    return proposals.pending(place.caller(place.scout), "echo hi", sandbox_id=place.sandbox.pk)


def removed(place) -> None:
    leaving.remove(place.bob, by=place.alice, heirs={})


def revoked(place) -> None:
    Key.objects.filter(member=place.bob).update(revoked_at=timezone.now())


def over(place) -> None:
    Key.objects.filter(member=place.bob).update(expires_at=timezone.now())


@pytest.mark.parametrize("ends", [removed, revoked, over])
async def test_a_wait_under_way_ends_with_its_key_and_anothers_goes_on(ask, place, bobs, ends):
    made = await db.write(_pending, place)
    at = f"/actions/{made.pk}"
    call, other = (asyncio.create_task(ask.get(at, key=key, wait=30)) for key in (bobs, place.scouts))
    await asyncio.sleep(0.3)
    assert not call.done()
    began_at = time.monotonic()
    await db.write(ends, place)
    async with asyncio.timeout(WITHIN_S):
        answer = await call
    print(f"cut after {time.monotonic() - began_at:.2f} s")
    assert (answer.status_code, answer.json()["code"]) == (401, "bad_key")
    assert answer.headers["www-authenticate"] == "Bearer"
    await asyncio.sleep(2 * standing.LOOK_EVERY_S - (time.monotonic() - began_at))
    assert not other.done()
    other.cancel()


async def test_a_stream_that_never_rests_ends_with_the_agent_of_its_key(ask, place, monkeypatch):
    told, event = asyncio.Event(), events._event
    monkeypatch.setattr(events, "_event", lambda *given: told.set() or event(*given))
    command = await db.write(Command.objects.create, sandbox=place.sandbox, action_id="act_loud", background=True)
    call = asyncio.create_task(ask.get(f"/sandboxes/{place.sandbox.pk}/commands/{command.pk}/events", key=place.scouts))
    printing = asyncio.create_task(_print_for_ever("act_loud"))
    async with asyncio.timeout(20):
        await told.wait()
    await db.write(Agent.objects.filter(pk=place.scout.pk).update, archived_at=timezone.now())
    async with asyncio.timeout(WITHIN_S):
        answer = await call
    assert not printing.done(), printing.exception()
    printing.cancel()
    assert answer.status_code == 200
    assert "event: stdout" in answer.text
    assert "event: exit" not in answer.text


async def _print_for_ever(action_id: str) -> None:
    stream, at = Stream(_directory(action_id), "stdout"), 0
    while True:
        stream.put(at, b"on\n")
        bus.announce(f"output:{action_id}")
        at += 3
        await asyncio.sleep(0.05)


class Door:
    """Behind the doorman, by keys that are whoever they say. `over`: those that have ended, or what the look meets."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.over: set[str] | Exception = set()
        self.asked: list[set[str]] = []
        self.sent: list[dict] = []
        self.app = doorman(app, limit_bytes=100, authenticate=self._caller, over=self._over)

    async def _caller(self, key: str) -> Caller:
        return Caller(key, "w", agent_id=None, member_id="m", permissions=frozenset())

    async def _over(self, key_ids: set[str]) -> set[str]:
        self.asked.append(key_ids)
        if isinstance(self.over, Exception):
            raise self.over
        return self.over & key_ids

    async def call(self, key: str = "k") -> None:
        messages: asyncio.Queue[dict] = asyncio.Queue()
        messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})

        async def send(message: dict) -> None:
            self.sent.append(message)

        headers = [(b"x-api-key", key.encode())]
        await self.app({"type": "http", "method": "GET", "path": "/", "headers": headers}, messages.get, send)


async def heard(receive: Callable[[], Awaitable[dict]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def answering(*headers: tuple[bytes, bytes], late: bool = False) -> Callable[..., Awaitable[None]]:
    async def app(scope: dict, receive: Callable[[], Awaitable[dict]], send: Callable[[dict], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        await heard(receive)
        if late:
            await send({"type": "http.response.body", "body": b"secret", "more_body": True})

    return app


async def test_half_an_answer_of_no_said_length_is_brought_to_an_end_and_nothing_more_is_told(settings):
    settings.TIMER_DIVISOR = 20
    door = Door(answering(late=True))
    door.over = {"k"}
    async with asyncio.timeout(3):
        await door.call()
    assert [each.get("body") for each in door.sent] == [None, b"half", b""]


async def test_half_an_answer_that_said_its_length_is_no_whole_one(settings):
    settings.TIMER_DIVISOR = 20
    door = Door(answering((b"Content-Length", b"9")))
    door.over = {"k"}
    with pytest.raises(ConnectionAbortedError):
        async with asyncio.timeout(3):
            await door.call()


async def test_calls_under_way_are_asked_for_together_and_short_ones_never(settings):
    settings.TIMER_DIVISOR = 20
    short, long = Door(_nothing), Door(answering())
    for _ in range(9):
        await short.call()
    calls = [asyncio.create_task(long.call(f"k{each}")) for each in range(9)]
    await asyncio.sleep(0.35)
    assert not short.asked
    assert 2 <= len(long.asked) <= 4
    assert set(map(len, long.asked)) == {9}
    for each in calls:
        each.cancel()
    await asyncio.sleep(0.3)
    rests = len(long.asked)
    await asyncio.sleep(0.3)
    assert len(long.asked) == rests, "nobody is asked for where nothing is under way"


async def _nothing(scope: object, receive: object, send: object) -> None:
    pass


async def test_a_look_that_fails_cuts_nobody_and_the_next_one_does(settings):
    settings.TIMER_DIVISOR = 20
    door = Door(answering())
    door.over = OSError("the database is away")
    call = asyncio.create_task(door.call())
    await asyncio.sleep(0.35)
    assert not call.done()
    assert len(door.asked) >= 2
    door.over = {"k"}
    async with asyncio.timeout(3):
        await call
