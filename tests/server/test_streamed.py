"""A body that a view takes as it comes: whole or never, and Django never sees it."""

import asyncio

import pytest

from console.streamed import PIECE_BYTES, Incoming, Streamed

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def receiving(*messages):
    left = list(messages)

    async def receive():
        if left:
            return left.pop(0)
        await asyncio.sleep(3600)

    return receive


def part(size, *, more=True):
    return {"type": "http.request", "body": bytes(size), "more_body": more}


GONE = {"type": "http.disconnect"}


async def test_small_chunks_come_together_and_django_is_given_an_empty_body_at_once():
    body = Incoming(receiving(*[part(60_000) for _ in range(10)], part(0, more=False), GONE))
    assert await body.for_django() == {"type": "http.request", "body": b"", "more_body": False}
    waiting = asyncio.create_task(body.for_django())
    sizes = [len(piece) async for piece in body.pieces()]
    assert sum(sizes) == 600_000
    assert min(sizes[:-1]) >= PIECE_BYTES
    assert await waiting == GONE  # what came after the body


async def test_a_body_that_breaks_off_never_ends_and_django_hears_that_the_client_has_left():
    body, got = Incoming(receiving(part(PIECE_BYTES), part(10), GONE)), []

    async def view():
        async for piece in body.pieces():
            got.append(len(piece))
        got.append("whole")

    await body.for_django()
    reading = asyncio.create_task(view())
    async with asyncio.timeout(5):
        assert await body.for_django() == GONE
    await asyncio.sleep(0.01)
    assert not reading.done()
    reading.cancel()
    assert got == [PIECE_BYTES]


async def test_an_empty_body_has_no_pieces():
    body = Incoming(receiving(part(0, more=False)))
    assert [piece async for piece in body.pieces()] == []


@pytest.mark.parametrize(("method", "streamed"), [("PUT", True), ("GET", False), ("HEAD", False), ("PATCH", False)])
async def test_only_what_has_a_body_is_streamed(method, streamed):
    seen = {}

    async def app(scope, receive, send):
        seen.update(scope=scope, receive=receive)

    receive = receiving()
    await Streamed(app)({"method": method}, receive, None)
    assert ("incoming" in seen["scope"]) == streamed
    assert (seen["receive"] is receive) != streamed
