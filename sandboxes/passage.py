"""Bytes from one task to another, piece by piece, whole or with an error at the end. On the hub's loop alone: a request
puts and takes through `hub.ask`, and says through `hub.soon` that it is gone.

Owns how much is under way. Must never leave one side waiting when the other has gone.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

HELD_BYTES = 512 << 10
"""Put and not yet taken, at most, and one piece more."""


class Passage:
    """May be made on any thread. Whoever makes it for a request also sees to its end, so that a request that is
    cancelled half-way leaves nobody waiting."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._held_bytes = 0
        self._news = asyncio.Event()
        self._ended = self._left = False
        self._error: Exception | None = None

    async def put(self, data: bytes) -> bool:
        """False when nobody takes it any more."""
        while self._held_bytes >= HELD_BYTES and not self._left:
            await self._news.wait()
        if self._left:
            return False
        self._pieces.append(data)
        self._held_bytes += len(data)
        self._ring()
        return True

    async def take(self) -> bytes:
        """All that is here, as soon as something is; empty at the end. Raises what it ended with."""
        while not self._pieces and not self._ended:
            await self._news.wait()
        if not self._pieces and self._error is not None:
            raise self._error
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._held_bytes = 0
        self._ring()
        return data

    async def pieces(self) -> AsyncIterator[bytes]:
        while data := await self.take():
            yield data

    def end(self, error: Exception | None = None) -> None:
        """From the side that puts. The first word counts."""
        if not self._ended:
            self._ended, self._error = True, error
            self._ring()

    def leave(self) -> None:
        """From the side that takes: it wants no more."""
        self._left = True
        self._pieces.clear()
        self._ring()

    def _ring(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
