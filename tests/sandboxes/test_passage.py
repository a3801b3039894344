"""Bytes between two tasks: in order, bounded, and neither side waits for one that has gone."""

import asyncio

import pytest

from sandboxes.passage import HELD_BYTES, Passage

pytestmark = pytest.mark.anyio
PIECE = bytes(100_000)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_what_is_put_comes_out_in_order_and_then_its_end() -> None:
    passage = Passage()

    async def put() -> None:
        for n in range(100):
            assert await passage.put(bytes([n]) * 50_000)
        passage.end()

    putting = asyncio.create_task(put())
    assert b"".join([piece async for piece in passage.pieces()]) == b"".join(bytes([n]) * 50_000 for n in range(100))
    await putting
    assert await passage.take() == b""


async def test_who_puts_waits_for_who_does_not_take() -> None:
    passage, taken = Passage(), 0

    async def put_for_ever() -> None:
        nonlocal taken
        while await passage.put(PIECE):
            taken += len(PIECE)

    putting = asyncio.create_task(put_for_ever())
    await asyncio.sleep(0.02)
    assert HELD_BYTES <= taken < HELD_BYTES + len(PIECE)
    assert len(await passage.take()) == taken
    await asyncio.sleep(0.02)
    assert taken > HELD_BYTES + len(PIECE)
    passage.leave()
    async with asyncio.timeout(5):
        await putting


async def test_an_end_with_an_error_comes_after_what_was_put() -> None:
    passage = Passage()
    await passage.put(b"begin")
    passage.end(RuntimeError("the other side failed"))
    passage.end()
    assert await passage.take() == b"begin"
    with pytest.raises(RuntimeError, match="the other side"):
        await passage.take()


async def test_who_waits_to_take_is_told_of_an_end() -> None:
    passage = Passage()
    taking = asyncio.create_task(passage.take())
    await asyncio.sleep(0)
    passage.end()
    async with asyncio.timeout(5):
        assert await taking == b""


async def test_one_that_was_left_before_it_began_takes_nothing() -> None:
    passage = Passage()
    passage.leave()
    assert not await passage.put(b"x")
