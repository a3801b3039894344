"""Doorbells. `announce`, from any thread, rings every waiter of a topic on the waiter's own loop.

Owns who waits for what in this process. Carries no data: who is rung reads the database. Must never be the only way
that news travels: `follow` rings for every new change of any process once a second, and waiters re-read now and then.
"""

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from random import uniform
from typing import TypeVar

T = TypeVar("T")

FOLLOW_EVERY_S = 1.0
REREAD_S = (8.0, 12.0)  # spread, so that waiters who came together do not read together for ever

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_bells: defaultdict[str, set["Bell"]] = defaultdict(set)
_closing = threading.Event()


class Bell(asyncio.Event):
    """One waiter's bell, bound to the loop that it was made on."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.get_running_loop()

    async def wait_s(self, timeout_s: float) -> None:
        """Until it rings, at most `timeout_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):  # wait_for would swallow a cancel that comes with a ring (3.11)
                await self.wait()
        self.clear()  # before the caller reads: a ring from here on is for the next read


def announce(*topics: str) -> None:
    """Ring all who listen to any of `topics`. From any thread; never blocks, never raises."""
    with _lock:
        bells = {bell for topic in topics for bell in _bells.get(topic, ())}
    for bell in bells:
        with suppress(RuntimeError):  # its loop has closed
            bell.loop.call_soon_threadsafe(bell.set)


@contextmanager
def listening(*topics: str) -> Iterator[Bell]:
    """Listen first, read then: what changes between the two rings."""
    bell = Bell()
    with _lock:
        for topic in topics:
            _bells[topic].add(bell)
    try:
        yield bell
    finally:
        with _lock:
            for topic in set(topics):
                _bells[topic].discard(bell)
                if not _bells[topic]:
                    del _bells[topic]


async def wait_for(read: Callable[[], Awaitable[T | None]], *topics: str, timeout_s: float) -> T | None:
    """What `read` answers, once it is not None; None after `timeout_s` or when the server stops.

    `read` is called at least once, after each ring, each 8 to 12 s without one, and once more when the time is over.
    """
    now = asyncio.get_running_loop().time
    end = now() + timeout_s
    with listening(*topics) as bell:
        while (found := await read()) is None and now() < end and not _closing.is_set():
            await bell.wait_s(min(end - now(), uniform(*REREAD_S)))
        return found


async def follow(newer: Callable[[int], Awaitable[tuple[int, set[str]]]]) -> None:
    """Ring for every change in the table, whichever process made it, at most a second late. Runs until cancelled.

    `newer(last)` answers the last change's number and the topics of what came after `last`; -1 means "from now on".
    """
    last: int | None = None
    while True:
        try:
            if last is None:
                last, topics = await newer(-1)
            else:
                last, topics = await newer(last)
            announce(*topics)
        except Exception:  # a boundary: a bell must not take its process down, and the next second tries again
            _log.exception("The table of changes could not be read; waiters re-read by themselves until it can.")
        await asyncio.sleep(FOLLOW_EVERY_S)


def close() -> None:
    """The server is stopping: each wait ends with what it has, and no new one begins."""
    _closing.set()
    with _lock:
        topics = list(_bells)
    announce(*topics)


def is_closing() -> bool:
    """For loops of their own around a bell (sockets, event streams): end when this is true."""
    return _closing.is_set()
