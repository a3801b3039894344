"""Which of the protocol's sessions are open, by key, and what is under way in each; in this process only.

Raw ASGI in front of the SDK, which knows one limit for all and takes a request id that is in use. A key with many gives
up its own: no other is ever refused because of it. Must never end a session in which something is under way.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count

from approvals.errors import TooMany
from console.doorman import App, Message, Receive, Scope, Send, header

from . import bodies

PER_KEY = 50  # more than a key may have waits open, so that one of them is idle
MOST = 1000
INVALID_REQUEST = -32600
End = Callable[[str, str], Awaitable[None]]


class Session:
    __slots__ = ("calls", "key_id", "requests")

    def __init__(self, key_id: str) -> None:
        self.key_id, self.calls = key_id, 0
        self.requests: set[str] = set()


class Sessions:
    """`end` is called with a key's id and that of a session of it, which is then no longer counted."""

    def __init__(self, app: App, *, end: End) -> None:
        self.app, self._end = app, end
        self._open: dict[str, Session] = {}  # the least recently used first
        self._numbers = count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises TooMany where a session is to be opened and something is under way in all that there may be."""
        key_id, session_id = scope["caller"].key_id, header(scope, b"mcp-session-id").decode("latin-1")
        if not session_id:
            return await self._opening(key_id, scope, receive, send)
        session = self._open.get(session_id)
        if session is None or session.key_id != key_id:
            return await self._passed(scope, receive, send)  # the SDK says that there is none
        await self._in(session_id, session, scope, receive, send)

    def is_open(self, session_id: str) -> bool:
        return session_id in self._open

    async def _passed(self, scope: Scope, receive: Receive, send: Send) -> None:
        if body := await bodies.whole(scope, receive):
            await self.app(scope, body.again, send)

    async def _opening(self, key_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        if not (body := await bodies.whole(scope, receive)):
            return
        async with self._place(key_id) as opened:

            async def watched(message: Message) -> None:
                if message["type"] == "http.response.start" and message["status"] < 400:
                    opened(dict(message["headers"]).get(b"mcp-session-id", b"").decode("latin-1"))
                await send(message)

            await self.app(scope, body.again, watched)

    @asynccontextmanager
    async def _place(self, key_id: str) -> AsyncIterator[Callable[[str], None]]:
        """Taken before the session has its id; given back when it gets none."""
        opening = f" {next(self._numbers)}"
        victim = self._to_end(key_id)
        session = self._open[opening] = Session(key_id)
        session.calls = 1

        def opened(session_id: str) -> None:
            if session_id:
                del self._open[opening]
                self._open[session_id] = session

        try:
            if victim:
                await self._end(*victim)
            yield opened
        finally:
            session.calls -= 1
            self._open.pop(opening, None)

    def _to_end(self, key_id: str) -> tuple[str, str] | None:
        """Of this key, where it has all that it may; of the key that has the most, where there are no more."""
        held = Counter(session.key_id for session in self._open.values())
        if held[key_id] >= PER_KEY:
            return self._idle(key_id, f"This key has {PER_KEY} sessions open, the most there may be, all with calls.")
        if held.total() >= MOST:
            full = f"The server has {MOST} sessions open, the most there may be, all with calls."
            return self._idle(held.most_common(1)[0][0], full)
        return None

    def _idle(self, key_id: str, detail: str) -> tuple[str, str]:
        for session_id, session in self._open.items():
            if session.key_id == key_id and not session.calls:
                del self._open[session_id]
                return key_id, session_id
        raise TooMany(f"{detail} Go on in one of them, or end one.", retry_after=5)

    async def _in(self, session_id: str, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        self._open[session_id] = self._open.pop(session_id)
        session.calls += 1

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and (message["status"] == 404 or scope["method"] == "DELETE"):
                self._open.pop(session_id, None)
            await send(message)

        try:
            if body := await bodies.whole(scope, receive):
                await self._once(session, body, scope, watched)
        finally:
            session.calls -= 1

    async def _once(self, session: Session, body: bodies.Body, scope: Scope, send: Send) -> None:
        """The SDK would give one call's answer to another that came with the same id."""
        if (request_id := body.request_id()) is None:
            return await self.app(scope, body.again, send)
        if request_id in session.requests:
            return await _refuse(send, request_id)
        session.requests.add(request_id)
        try:
            await self.app(scope, body.again, send)
        finally:
            session.requests.discard(request_id)


async def _refuse(send: Send, request_id: str) -> None:
    detail = f"A request with the id {request_id[:60]} is under way in this session. Send this one with another id."
    error = {"code": INVALID_REQUEST, "message": detail}
    content = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = [(b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": 409, "headers": headers})
    await send({"type": "http.response.body", "body": content})
