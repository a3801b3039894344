"""Bodies that a view takes as they come: neither spooled nor held, and read at the pace of whoever gets them.

Stands between the doorman and Django, which would spool a whole body before its first view. Must never let a request be
taken for complete that is not: a client that leaves half-way cancels its view, as everywhere.
"""

import asyncio
from collections.abc import AsyncIterator

from .doorman import App, Message, Receive, Scope, Send

PIECE_BYTES = 256 << 10


class Streamed:
    """The view finds its body in `scope["incoming"]`. Only for methods that have one: others pass as they are."""

    def __init__(self, app: App, *, methods: frozenset[str] = frozenset({"PUT"})) -> None:
        self.app, self.methods = app, methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in self.methods:
            return await self.app(scope, receive, send)
        body = Incoming(receive)
        await self.app({**scope, "incoming": body}, body.for_django, send)


class Incoming:
    """One request's body. `pieces()` once; until it has been read to its end, a client that leaves is noticed by nobody
    but its reader."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._begun = False
        self._over = asyncio.Event()
        self._left = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Of PIECE_BYTES and a little more, the last one shorter. Ends only where the body ends."""
        piece, more = bytearray(), True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                await self._lost()
            piece += message.get("body", b"")
            more = message.get("more_body", False)
            if piece and (len(piece) >= PIECE_BYTES or not more):
                yield bytes(piece)
                piece.clear()
        self._over.set()

    async def for_django(self) -> Message:
        """First an empty body, at once; then, when the real one has been read, whatever comes after it."""
        if not self._begun:
            self._begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._over.wait()
        return {"type": "http.disconnect"} if self._left else await self._receive()

    async def _lost(self) -> None:
        """Django, which waits in `for_django`, now cancels the view; it must not go on in between."""
        self._left = True
        self._over.set()
        await asyncio.get_running_loop().create_future()
