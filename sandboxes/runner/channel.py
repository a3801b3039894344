"""The runner's end of the wire: stdin and stdout of PID 1.

Owns what waits to be sent. Must never hold more than HIGH_BYTES of it plus one frame per sender: senders ask
`has_room` first, and what they would send stays in rings and windows until there is room.
"""

import os
from collections import deque
from collections.abc import Callable

from . import frames
from .hints import Any
from .loop import Loop

HIGH_BYTES = 512 << 10
READ_BYTES = 256 << 10


class Channel:
    def __init__(self, loop: Loop, on_frame: Callable[[frames.Frame], None], on_room: Callable[[], None]) -> None:
        self._loop = loop
        self._on_frame = on_frame
        self._on_room = on_room
        self._in, self._out = 0, 1
        self._parser = frames.Parser(limit_bytes=frames.FROM_HOST_LIMIT)
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._done = 0
        self._blocked = False
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        loop.when_readable(self._in, self._readable)

    @property
    def tag(self) -> bytes | None:
        """Names the session: another client, another tag."""
        return self._parser.tag

    @property
    def has_room(self) -> bool:
        return self._waiting_bytes < HIGH_BYTES

    def send(
        self, kind: int, payload: bytes | dict[str, Any], *, ref: int = 0, offset: int = 0, flags: int = 0
    ) -> None:
        tag = self._parser.tag
        if tag is None:  # nobody has said hello
            return
        if isinstance(payload, dict):
            frame = frames.pack_message(tag, kind, payload, ref=ref)
        else:
            frame = frames.pack(tag, kind, payload, ref=ref, offset=offset, flags=flags)
        self._waiting.append(frame)
        self._waiting_bytes += len(frame)

    def start_over(self) -> None:
        """A new client: what waited was for the old one. A frame half out is finished, the client skips it."""
        half = self._waiting[0] if self._done else b""
        self._waiting.clear()
        if half:
            self._waiting.append(half)
        self._waiting_bytes = len(half)

    def flush(self) -> None:
        try:
            while self._waiting:
                frame = self._waiting[0]
                self._done += os.write(self._out, memoryview(frame)[self._done :])  # may be short
                if self._done == len(frame):
                    self._waiting.popleft()
                    self._waiting_bytes -= len(frame)
                    self._done = 0
        except BlockingIOError:
            if not self._blocked:
                self._blocked = True
                self._loop.when_writable(self._out, self._writable)

    def _writable(self) -> None:
        """Comes after each time that the way was blocked, even when a flush in between got everything out: senders who
        found no room wait for nothing else."""
        self.flush()
        if not self._waiting:
            self._blocked = False
            self._loop.forget(self._out)
        if self.has_room:
            self._on_room()

    def _readable(self) -> None:
        try:
            data = os.read(self._in, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            os._exit(0)  # PID 1's stdin is never closed while the sandbox is meant to live
        for frame in self._parser.feed(data):
            self._on_frame(frame)
