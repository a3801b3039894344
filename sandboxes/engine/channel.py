"""One session with one runner: hello, calls, acknowledgements, pings.

Owns the session's tag and who waits for which answer. What comes from the sandbox is hostile input: a frame that does
not fit ends the session, and no call may make the server hold more than CALL_LIMIT_BYTES.
"""

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

from sandboxes.runner import frames

from .attach import Attached, attach

log = logging.getLogger("sandgate.channel")
HELLO_AGAIN_S = 1.0
LOOK_S = 0.5
PING_S, PING_WAITED_S = 5.0, 1.0
"""When nobody waits for an answer, and when somebody does."""
DOUBT_S = 1.5
"""Without an answer to a ping, while somebody waits: then the daemon is asked what is the matter."""
SILENT_S = 15.0
CALL_LIMIT_BYTES = 2 << 20
STRAY_LIMIT_BYTES = 1 << 20


class ChannelLost(Exception):
    """The session ended before the answer came. What it asked for may still go on, and can be asked for again."""


class Call:
    """One request and the frames that answer it, in order."""

    def __init__(self, ref: int) -> None:
        self.ref = ref
        self.finished = False
        self._frames: deque[frames.Frame] = deque()
        self._held_bytes = 0
        self._lost = False
        self._wake: asyncio.Future[None] | None = None

    def deliver(self, frame: frames.Frame) -> None:
        if self.finished:
            raise frames.BrokenFrame("a frame after the result")
        self._held_bytes += len(frame.payload) + frames.HEAD_BYTES
        if self._held_bytes > CALL_LIMIT_BYTES:
            raise frames.BrokenFrame("more than the window allows")
        self.finished = frame.kind == frames.RESULT
        self._frames.append(frame)
        self._ring()

    def lose(self, *, broken: bool = False) -> None:
        """What came before still counts, unless it came from somebody who breaks the protocol."""
        self._lost = True
        if broken:
            self._frames.clear()
        self._ring()

    def _ring(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def poll(self) -> frames.Frame | None:
        """The next frame if it is here; what came before the channel broke still counts."""
        if self._frames:
            frame = self._frames.popleft()
            self._held_bytes -= len(frame.payload) + frames.HEAD_BYTES
            return frame
        if self._lost:
            raise ChannelLost
        return None

    async def next(self) -> frames.Frame:
        while (frame := self.poll()) is None:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return frame


class Channel:
    """Made by `connect`, of use after `hello`. `on_lost` is called once, unless it was closed first; `on_doubt` at each
    time that it does not answer while somebody waits: a busy sandbox may, too."""

    def __init__(self, marker: bytes, on_lost: Callable[[], None], on_doubt: Callable[[], None] = lambda: None) -> None:
        self._marker = marker
        self._on_doubt = on_doubt
        self._on_lost: Callable[[], None] | None = on_lost
        self._tag = os.urandom(frames.TAG_BYTES)
        self._parser = frames.Parser(limit_bytes=frames.FROM_RUNNER_LIMIT, tag=self._tag)
        self._stream: Attached | None = None
        self._stderr = bytearray()
        self._welcome: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._calls: dict[int, Call] = {}
        self._last_ref = 0
        self._strays_left_bytes = STRAY_LIMIT_BYTES
        self._heard_at = self._pinged_at = time.monotonic()
        self._unanswered_at: float | None = None
        self._doubted = False
        self._pings: asyncio.Task[None] | None = None
        self.broken = False

    async def connect(self, docker_host: str, container_id: str) -> None:
        self._stream = await attach(docker_host, container_id, self._data, self._ended)
        self._stderr = self._stream.stderr

    async def hello(self, *, timeout_s: float) -> dict[str, Any]:
        """The runner's welcome. Said again each second: late bytes of an older client may have cut the first one."""
        message: dict[str, Any] = {"version": frames.VERSION}
        async with asyncio.timeout(timeout_s):
            while not self._welcome.done():
                self.send(frames.pack_hello(self._tag, self._marker, message))
                await asyncio.wait([self._welcome], timeout=HELLO_AGAIN_S)
        self._pings = asyncio.create_task(self._ping(), context=Context())  # it outlives the request that opens this
        return self._welcome.result()

    @property
    def stderr(self) -> str:
        """The last that PID 1 said on its stderr."""
        return self._stderr.decode("utf-8", "replace").strip()

    @property
    def silent_s(self) -> float:
        """How long the oldest ping without an answer is ago; 0 when it has said anything since."""
        return 0.0 if self._unanswered_at is None else time.monotonic() - self._unanswered_at

    @property
    def tag(self) -> bytes:
        return self._tag

    def send(self, frame: bytes) -> None:
        if self._stream is not None:
            self._stream.write(frame)

    async def drain(self) -> None:
        if self._stream is not None:
            await self._stream.drain()

    def call(self) -> Call:
        self._last_ref += 1
        call = self._calls[self._last_ref] = Call(self._last_ref)
        if self._stream is None:
            call.lose()
        return call

    def release(self, call: Call) -> None:
        """The caller is done with it, or gives up: then the runner is told to stop sending."""
        if self._calls.pop(call.ref, None) is not None and not call.finished:
            self._strays_left_bytes += CALL_LIMIT_BYTES  # a window of it may be on its way
            self.send(frames.pack(self._tag, frames.CANCEL, ref=call.ref))

    def ack(self, call: Call, offset: int, flags: int = 0) -> None:
        self.send(frames.pack(self._tag, frames.ACK, ref=call.ref, offset=offset, flags=flags))

    def _data(self, data: bytes) -> None:
        self._heard_at = time.monotonic()
        self._unanswered_at, self._doubted = None, False
        try:
            for frame in self._parser.feed(data):
                self._take(frame)
        except frames.BrokenFrame as error:
            log.warning("A runner broke the protocol, so its sandbox ends: %s.", error)
            self.broken = True
            self._ended()

    def _take(self, frame: frames.Frame) -> None:
        if frame.kind == frames.WELCOME and not self._welcome.done():
            self._welcome.set_result(frame.message())
        elif frame.kind in (frames.RESULT, frames.OUT, frames.INFO, frames.CONTENT, frames.CREDIT):
            call = self._calls.get(frame.ref)
            if call is not None:
                call.deliver(frame)
            else:  # it was released while this was on its way
                self._stray(frame)
        elif frame.kind in (frames.WELCOME, frames.PONG):
            self._stray(frame)
        else:
            raise frames.BrokenFrame(f"kind {frame.kind}")

    def _stray(self, frame: frames.Frame) -> None:
        """Nobody waits for it. A runner that says only such things would keep this loop from its other sandboxes."""
        self._strays_left_bytes -= len(frame.payload) + frames.HEAD_BYTES
        if self._strays_left_bytes < 0:
            raise frames.BrokenFrame("more than was asked for")

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            now = time.monotonic()
            if now - self._heard_at > SILENT_S:
                return self.give_up()
            if self._calls and self.silent_s > DOUBT_S and not self._doubted:
                self._doubted = True
                self._on_doubt()
            if now - self._pinged_at >= (PING_WAITED_S if self._calls else PING_S):
                self._pinged_at = now
                self._unanswered_at = self._unanswered_at or now
                self._strays_left_bytes += frames.HEAD_BYTES
                self.send(frames.pack(self._tag, frames.PING))

    def give_up(self) -> None:
        """It is of no use any more."""
        self._ended()

    def _ended(self) -> None:
        if self.stderr:
            log.warning("Before it went, PID 1 of a sandbox said: %.2000r", self.stderr)
        on_lost, self._on_lost = self._on_lost, None
        self.close()
        if on_lost is not None:
            on_lost()

    def close(self) -> None:
        """Every call that still waits gets ChannelLost."""
        self._on_lost = None
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._pings is not None:
            self._pings.cancel()
            self._pings = None
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.lose(broken=self.broken)
        if not self._welcome.done():
            self._welcome.set_exception(ChannelLost())
            self._welcome.exception()  # nobody may be waiting for it
