"""Turns: never more at once than there are, none lost, whoever gives up and whenever."""

import asyncio

import pytest

from sandboxes import turns
from sandboxes.errors import NoCapacity
from sandboxes.turns import Place, Turn, Turns

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Line:
    """Turns taken and given back by name; each owner is somebody else unless named."""

    def __init__(self, count, lying=turns.LYING):
        self.turns, self.held, self.count = Turns(count, lying), [], 0

    async def take(self, timeout_s=5, owner=None):
        self.count += 1
        place = Place(owner or f"owner {self.count}")
        await self.turns.take(place, timeout_s=timeout_s)
        self.held.append(place)

    def give_back(self, at=0):
        self.turns.give_back(self.held.pop(at))

    async def is_free(self, count):
        """Whether just so many can be taken at once; gives them back."""
        assert not self.held
        for _ in range(count):
            await self.take(0.05)
        with pytest.raises(NoCapacity):
            await self.take(0.05)
        for _ in range(count):
            self.give_back()
        return True


async def test_one_more_waits_until_one_is_given_back_and_they_go_in_order():
    two, done = Line(2), []
    await two.take()
    await two.take()

    async def later(name):
        await two.take()
        done.append(name)

    tasks = [asyncio.create_task(later(name)) for name in "abc"]
    await asyncio.sleep(0.05)
    assert done == []
    for expected in ("a", "ab", "abc"):
        two.give_back()
        await asyncio.sleep(0.02)
        assert "".join(done) == expected
    await asyncio.gather(*tasks)
    two.give_back()
    two.give_back()
    assert await two.is_free(2)


async def test_one_owner_has_one_turn_and_holds_up_nobody_else(monkeypatch):
    monkeypatch.setattr(turns, "WAITING", 2)
    two = Line(2)
    await two.take(owner="slow")
    waiting = [asyncio.create_task(two.take(owner="slow")) for _ in range(2)]
    await asyncio.sleep(0.02)
    with pytest.raises(NoCapacity):
        await two.take(owner="slow")
    for _ in range(3):
        await two.take(0.05, owner="quick")
        two.give_back(1)
    assert not any(task.done() for task in waiting)
    for task in waiting:
        two.give_back()
        await task
    two.give_back()
    assert await two.is_free(2)


async def test_contents_that_lie_on_disk_hold_up_nobody_but_their_owners():
    two = Line(2)
    stalled = [Turn(f"slow {n}", two.turns) for n in range(5)]
    for turn in stalled:
        await turn.take()
        turn.lay_down()
        turn.lay_down()
    again = Turn("slow 0", two.turns)
    waiting = asyncio.create_task(again.take())
    assert await two.is_free(2)
    assert not waiting.done()
    for turn in stalled:
        turn.end()
    await waiting
    again.end()
    again.lay_down()
    assert await two.is_free(2)


async def test_no_more_lie_on_disk_than_may(monkeypatch):
    two = Line(2, lying=1)
    turns_ = [Turn(f"slow {n}", two.turns) for n in range(3)]
    for turn in turns_:
        await turn.take()
        turn.lay_down()
    with pytest.raises(NoCapacity):
        await two.take(0.02)
    for turn in turns_:
        turn.end()
    assert await two.is_free(2)


async def test_one_that_took_no_turn_or_is_over_lays_nothing_down():
    one = Line(1)
    small = Turn("me", one.turns)
    small.lay_down()
    with small.held():
        await small.take()
        small.end()
        small.lay_down()
        with pytest.raises(NoCapacity):
            await one.take(0.02)
    assert await one.is_free(1)


async def test_whoever_gives_up_loses_no_turn_and_holds_none():
    one = Line(1)
    await one.take()
    waiting = [asyncio.create_task(one.take()) for _ in range(5)]
    await asyncio.sleep(0.02)
    for task in waiting[:2]:
        task.cancel()
    one.give_back()  # in the same turn of the loop as the third is cancelled
    waiting[2].cancel()
    results = await asyncio.gather(*waiting[:3], return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    for task in waiting[3:]:
        await task
        one.give_back()
    assert await one.is_free(1)


async def test_a_wait_has_an_end():
    one = Line(1)
    await one.take()
    with pytest.raises(NoCapacity) as refusal:
        await one.take(0.1)
    assert refusal.value.retry_after
    one.give_back()
    assert await one.is_free(1)


async def test_a_turn_ends_when_its_answer_and_its_reading_have():
    one = Line(1)
    for answer_first in (True, False):
        turn = Turn("me", one.turns)
        with turn.held():
            await turn.take()
            await turn.take()
            if answer_first:
                turn.end()
            with pytest.raises(NoCapacity):
                await one.take(0.02)
        if not answer_first:
            with pytest.raises(NoCapacity):
                await one.take(0.02)
            turn.end()
        turn.end()
        assert await one.is_free(1)


async def test_one_that_is_over_waits_no_more_and_one_that_took_none_gives_none_back():
    one = Line(1)
    await one.take()
    turn = Turn("me", one.turns)

    async def read():
        with turn.held():
            await turn.take()

    reading = asyncio.create_task(read())
    await asyncio.sleep(0.02)
    turn.end()
    with pytest.raises(NoCapacity):
        await reading
    small = Turn("me", one.turns)
    with small.held():
        pass
    small.end()
    one.give_back()
    assert await one.is_free(1)
