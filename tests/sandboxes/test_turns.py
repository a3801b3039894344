"""Turns: never more at once than there are, none lost, whoever gives up and whenever."""

import asyncio
from concurrent.futures import Future

import pytest

from sandboxes import turns
from sandboxes.errors import NoCapacity
from sandboxes.turns import Turn, Turns

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def take(of, timeout_s=5):
    place = Future()
    await of.take(place, timeout_s=timeout_s)


async def is_free(of, count):
    """Whether just so many can be taken at once; gives them back."""
    for _ in range(count):
        await take(of, 0.05)
    with pytest.raises(NoCapacity):
        await take(of, 0.05)
    for _ in range(count):
        of.give_back()
    return True


async def test_one_more_waits_until_one_is_given_back_and_they_go_in_order():
    two, done = Turns(2), []
    await take(two)
    await take(two)

    async def later(name):
        await take(two)
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
    assert await is_free(two, 2)


async def test_whoever_gives_up_loses_no_turn_and_holds_none():
    one = Turns(1)
    await take(one)
    waiting = [asyncio.create_task(take(one)) for _ in range(5)]
    await asyncio.sleep(0.02)
    for task in waiting[:2]:
        task.cancel()
    one.give_back()  # in the same turn of the loop as the third is cancelled
    waiting[2].cancel()
    results = await asyncio.gather(*waiting[:3], return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    await waiting[3]
    one.give_back()
    await waiting[4]
    one.give_back()
    assert await is_free(one, 1)


async def test_a_wait_has_an_end_and_so_has_the_queue(monkeypatch):
    monkeypatch.setattr(turns, "WAITING", 1)
    one = Turns(1)
    await take(one)
    first = asyncio.create_task(take(one, 0.2))
    await asyncio.sleep(0.02)
    with pytest.raises(NoCapacity) as refusal:
        await take(one)
    assert refusal.value.retry_after
    with pytest.raises(NoCapacity):
        await first
    one.give_back()
    assert await is_free(one, 1)


async def test_a_turn_ends_when_its_answer_and_its_reading_have():
    one = Turns(1)
    for answer_first in (True, False):
        turn = Turn(one)
        with turn.held():
            await turn.take()
            await turn.take()
            if answer_first:
                turn.end()
            with pytest.raises(NoCapacity):
                await take(one, 0.02)
        if not answer_first:
            with pytest.raises(NoCapacity):
                await take(one, 0.02)
            turn.end()
        turn.end()
        assert await is_free(one, 1)


async def test_one_that_is_over_waits_no_more_and_one_that_took_none_gives_none_back():
    one = Turns(1)
    await take(one)
    turn = Turn(one)

    async def read():
        with turn.held():
            await turn.take()

    reading = asyncio.create_task(read())
    await asyncio.sleep(0.02)
    turn.end()
    with pytest.raises(NoCapacity):
        await reading
    small = Turn(one)
    with small.held():
        pass
    small.end()
    one.give_back()
    assert await is_free(one, 1)
