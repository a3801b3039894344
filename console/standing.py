"""Calls that outlive their key: what goes on for seconds is looked at again, and is cut off once its key is over, as it
is when its member was removed.

Owns that look: one question for all that are under way, each two seconds. Must never cost a short call a question, nor
cut one because the database did not answer. To the door a cut is a client that left: it ends the wait, nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from django.conf import settings

if TYPE_CHECKING:
    from .doorman import App, Message, Receive, Scope, Send

Over = Callable[[set[str]], Awaitable[set[str]]]
"""Which of these keys, by their ids, are over."""

LOOK_EVERY_S = 2.0
_log = logging.getLogger(__name__)


class Standing:
    """Right behind the doorman's look at the key. `refuse` answers what had not been answered yet."""

    def __init__(self, app: App, *, over: Over, refuse: Callable[[Send], Awaitable[None]]) -> None:
        self.app, self._over, self._refuse = app, over, refuse
        self._watches: WeakKeyDictionary[asyncio.AbstractEventLoop, Watch] = WeakKeyDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        if (watch := self._watches.get(loop)) is None:
            watch = self._watches[loop] = Watch(self._over)
        call = Call(scope["caller"].key_id, receive, send)
        watch.add(call)
        try:
            await self.app(scope, call.receive, call.send)
        except Exception:
            if not call.is_over:
                raise
        finally:
            watch.calls.discard(call)
        if call.is_over:
            await self._end(call, send)

    async def _end(self, call: Call, send: Send) -> None:
        if not call.has_begun:
            await self._refuse(send)
        elif call.is_open_ended:
            await send({"type": "http.response.body", "body": b""})
        elif not call.has_ended:
            raise ConnectionAbortedError("The key of this call is over, and half of its answer was out.")


class Watch:
    """Of one loop. Its timer stands only while something is under way."""

    def __init__(self, over: Over) -> None:
        self.calls: set[Call] = set()
        self._over = over
        self._timer: asyncio.TimerHandle | None = None
        self._look_task: asyncio.Task[None] | None = None

    def add(self, call: Call) -> None:
        self.calls.add(call)
        if self._timer is None:
            after_s = LOOK_EVERY_S / getattr(settings, "TIMER_DIVISOR", 1)
            self._timer = asyncio.get_running_loop().call_later(after_s, self._begin, context=Context())

    def _begin(self) -> None:
        self._timer = None
        if self.calls:
            self._look_task = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        try:
            over = await self._over({call.key_id for call in self.calls})
        except Exception:  # a boundary: the next look is two seconds away
            _log.exception("The keys of calls that are under way could not be looked at, next try in a moment.")
            over = set()
        for call in list(self.calls):
            if call.key_id in over:
                call.cut()
        for call in self.calls:  # any one sets the timer
            return self.add(call)


class Call:
    def __init__(self, key_id: str, receive: Receive, send: Send) -> None:
        self.key_id = key_id
        self.is_over = self.has_begun = self.has_ended = False
        self._receive, self._send = receive, send
        self._is_sized = False
        self._listening: asyncio.Timeout | None = None

    @property
    def is_open_ended(self) -> bool:
        """Half of an answer is out that did not say how long it would be."""
        return self.has_begun and not self.has_ended and not self._is_sized

    def cut(self) -> None:
        self.is_over = True
        if self._listening:
            self._listening.reschedule(asyncio.get_running_loop().time())

    async def receive(self) -> Message:
        if not self.is_over:
            with suppress(TimeoutError):
                try:
                    async with asyncio.timeout(None) as self._listening:
                        return await self._receive()
                finally:
                    self._listening = None
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.is_over:
            return
        if message["type"] == "http.response.start":
            self.has_begun = True
            self._is_sized = any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self.has_ended = not message.get("more_body")
        await self._send(message)
