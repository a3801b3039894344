"""Raw ASGI in front of the HTTP doors: what must be decided before a body is read.

Owns the request id, 401, 413, who the caller is (`scope["caller"]`), and how much may arrive or be parsed at once.
Django spools every body, to disk above 2.5 MB, before its first middleware runs: nothing may reach it that these have
not let through. Must never read a body itself, nor decide what a caller may do.
"""

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import structlog
from asgiref.sync import ThreadSensitiveContext
from django.conf import settings

from .standing import Over, Standing

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]
Authenticate = Callable[[str], Awaitable[Any | None]]

BIG_BODY_BYTES = 8 << 20
BIG_BODIES_ARRIVING = 8  # each may lie on disk until it is complete
BIG_BODIES_PARSED = 2  # each costs about twice its size in memory
BIG_BODY_S = 300  # a big body must be here by then: it holds one of few places
BEARER = (b"WWW-Authenticate", b"Bearer")
NOSNIFF = (b"X-Content-Type-Options", b"nosniff")
REQUEST_ID = re.compile(rb"[A-Za-z0-9-]{1,64}")

_log = logging.getLogger(__name__)


def doorman(
    app: App, *, limit_bytes: int, authenticate: Authenticate, over: Over | None = None, spools: bool = True
) -> App:
    """For a door that takes keys and blocks no thread: key, then length, then places for big bodies, then the door. One
    that takes its bodies as they come `spools` none, and needs no place for them. `over`: of the keys of calls that are
    under way; without, they are not looked at again."""
    inner: App = Sent(FewThreads(app))
    if spools and limit_bytes > BIG_BODY_BYTES:
        inner = BigBodies(inner)
    inner = Limited(inner, limit_bytes=limit_bytes)
    if over is not None:
        inner = Standing(inner, over=over, refuse=refuse_key)
    return Keyed(inner, authenticate=authenticate)


async def refuse_key(send: Send) -> None:
    detail = "This key is unknown, expired or revoked. Make a new one on the page Keys."
    await answer(send, 401, code="bad_key", detail=detail, headers=[BEARER])


async def answer(
    send: Send, status: int, *, code: str, detail: str, headers: Iterable[tuple[bytes, bytes]] = (), **fields: object
) -> None:
    body = json.dumps({"detail": detail, "code": code, **fields}).encode()
    all_headers = [(b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})


def last_header(scope: Scope, name: bytes) -> bytes:
    """Of several the last: a proxy appends its own to those that a client made up."""
    return next((value for key, value in reversed(scope["headers"]) if key == name), b"")


def header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")


class Tagged:
    """Outermost: every answer carries X-Request-Id and `nosniff`; what dies below without an answer is answered 500."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given, started = header(scope, b"x-request-id"), False
        own = (b"x-request-id", NOSNIFF[0].lower())
        request_id = given if REQUEST_ID.fullmatch(given) else str(uuid.uuid4()).encode()

        async def tagged(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                others = [each for each in message.get("headers", ()) if each[0].lower() not in own]
                message = {**message, "headers": [*others, (b"X-Request-Id", request_id), NOSNIFF]}
            await send(message)

        name = request_id.decode()
        with structlog.contextvars.bound_contextvars(request_id=name):
            try:
                await self.app({**scope, "request_id": name}, receive, tagged)
            except Exception:
                if started:
                    raise  # half an answer is out: the server logs it and cuts the connection
                _log.exception("Request %s failed before it was answered.", name)
                await answer(tagged, 500, code="internal", detail=f"The server failed; its log tells why at {name}.")


class Keyed:
    """401 after the headers alone. Keys come in headers only; a session cookie is no key."""

    def __init__(self, app: App, *, authenticate: Authenticate) -> None:
        self.app, self.authenticate = app, authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not (key := self._key(scope)):
            detail = "Send a key, as `X-API-Key: …` or `Authorization: Bearer …`."
            return await answer(send, 401, code="no_key", detail=detail, headers=[BEARER])
        if (caller := await self.authenticate(key)) is None:
            return await refuse_key(send)
        await self.app({**scope, "caller": caller}, receive, send)

    @staticmethod
    def _key(scope: Scope) -> str:
        if key := header(scope, b"x-api-key").strip():
            return key.decode("latin-1")
        scheme, _, key = header(scope, b"authorization").partition(b" ")
        return key.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""


class Limited:
    """413 after the headers alone when they tell the length; counts a body that does not."""

    def __init__(self, app: App, *, limit_bytes: int) -> None:
        self.app, self.limit_bytes = app, limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if int(header(scope, b"content-length") or 0) > self.limit_bytes:
            return await self._refuse(send)
        left, started = self.limit_bytes, False

        async def counted() -> Message:
            nonlocal left
            if left < 0:
                return {"type": "http.disconnect"}
            message = await receive()
            left -= len(message.get("body", b""))
            return message if left >= 0 else {"type": "http.disconnect"}  # every framework ends quietly on this

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, counted, watched)
        except Exception:
            if left >= 0:
                raise
        if left < 0 and not started:
            await self._refuse(send)

    async def _refuse(self, send: Send) -> None:
        detail = f"The body is larger than the {self.limit_bytes} bytes that this call takes. Send less, or in parts."
        await answer(send, 413, code="too_large", detail=detail, limit_bytes=self.limit_bytes)


class BigBodies:
    """Bounds how many big bodies lie on disk, and how many are parsed at once: the last piece of one is held back until
    there is a place. The door gives the place back by `body_parsed(scope)`; at the latest its answer's end does."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._arriving, self._parsed = asyncio.Semaphore(BIG_BODIES_ARRIVING), asyncio.Semaphore(BIG_BODIES_PARSED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        got, place, slow = 0, Place(), False

        async def bounded() -> Message:
            nonlocal got, slow
            try:
                async with asyncio.timeout_at(place.until if place.held is self._arriving else None):
                    message = await receive()
            except TimeoutError:
                slow = True
                return {"type": "http.disconnect"}
            got += len(message.get("body", b""))
            if got > BIG_BODY_BYTES and message["type"] == "http.request":
                await place.take(self._arriving if message.get("more_body") else self._parsed)
            return message

        try:
            await self.app({**scope, "body_parsed": place.give_back}, bounded, send)
        finally:
            place.give_back()
        if slow:
            detail = f"The body was not complete after {BIG_BODY_S} s. Send it faster, or in parts."
            await answer(send, 408, code="too_slow", detail=detail)


class Place:
    """The one place that a request holds: among those arriving, then among those parsed, then none."""

    def __init__(self) -> None:
        self.held: asyncio.Semaphore | None = None
        self.until = 0.0

    async def take(self, places: asyncio.Semaphore) -> None:
        if self.held is places:
            return
        self.give_back()
        await places.acquire()
        self.held, self.until = places, asyncio.get_running_loop().time() + BIG_BODY_S

    def give_back(self) -> None:
        if self.held:
            self.held.release()
        self.held = None


def body_parsed(scope: Scope) -> None:
    """The door has what it needs of the body and has dropped the rest: the next big one may be parsed."""
    if give_back := scope.get("body_parsed"):
        give_back()


def at_end(scope: Scope, act: Callable[[], None]) -> None:
    """Runs `act` once this request is over, however it ended: for what must be given back."""
    scope["at_end"].append(act)


class Sent:
    """Runs what the door has put into `scope["after_send"]` (functions that return an awaitable) once its whole
    answer has gone to a client that was still there, before anything that this client can ask next. A client that left
    gets none of it run."""

    _running: set[asyncio.Future[None]] = set()

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        after: list[Callable[[], Awaitable[None]]] = []
        gone = False

        async def watched() -> Message:
            nonlocal gone
            message = await receive()
            gone = gone or message["type"] == "http.disconnect"
            return message

        async def sent(message: Message) -> None:
            last = message["type"] == "http.response.body" and not message.get("more_body")
            if last and after:
                await asyncio.sleep(0)  # that the client has left may be in the queue, not read yet
                if gone:
                    after.clear()
            await send(message)
            while last and after:  # no look at `gone` here: the server also sends a disconnect after each whole answer
                self._go(after.pop(0))

        ending: list[Callable[[], None]] = []
        try:
            await self.app({**scope, "after_send": after, "at_end": ending}, watched, sent)
        finally:
            for act in ending:
                act()

    def _go(self, act: Callable[[], Awaitable[None]]) -> None:
        """As a task of its own: a client that closes at once after its answer must not cancel it."""
        task = asyncio.ensure_future(act())
        self._running.add(task)
        task.add_done_callback(self._running.discard)


class FewThreads:
    """Bounds Django's own threads: left alone, each open request holds one until it ends, even if it never touches the
    ORM. Only for doors that never block a thread: a slow synchronous view here stalls each request that drew the same
    one. Pages keep Django's thread per request."""

    _threads = cycle([ThreadPoolExecutor(1, thread_name_prefix=f"sync-{n}") for n in range(settings.SYNC_THREADS)])

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with ThreadSensitiveContext(executor=next(self._threads)):
            await self.app(scope, receive, send)
