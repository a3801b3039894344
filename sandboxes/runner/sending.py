"""What goes to the host in pieces: a few facts first (INFO), then content as fast as it is acknowledged, then its hash.

Owns the window of a read and of a listing. Must never hold more than WINDOW_BYTES that nobody acknowledged.
"""

from collections import deque
from functools import partial

from . import frames
from .files import WINDOW_BYTES, Pool, Send, Transfer
from .hints import Any


class Outgoing(Transfer):
    """It has no id: whoever asks again gets another one."""

    def __init__(self, pool: Pool, ref: int, path: str) -> None:
        super().__init__(pool, "", ref, path)
        self._sent = 0
        self._acked = 0
        self._pieces: deque[tuple[int, bytes]] = deque()
        self._info: dict[str, Any] | None = None

    def next_piece(self) -> bytes:
        """On a file thread: up to CHUNK_BYTES more, empty at the end."""
        raise NotImplementedError

    def opened(self, info: dict[str, Any]) -> None:
        """On a file thread, once: what stands before the content."""
        self._pool.loop.post(lambda: self._tell(info))
        self._fill()

    def _tell(self, info: dict[str, Any]) -> None:
        self._info = info
        self._pool.changed()

    def _fill(self) -> None:
        """Ahead until the window is full; goes on when something was acknowledged."""
        while self._sent - self._acked < WINDOW_BYTES:
            if not (data := self.next_piece()):
                self._drop()
                self.end({"ok": {"size": self._sent, "sha256": self._sha256.hexdigest()}})
                return
            self._sha256.update(data)
            piece = (self._sent, data)
            self._sent += len(data)
            self._pool.loop.post(partial(self._pieces.append, piece))
            self._pool.loop.post(self._pool.changed)

    def acked(self, flag: int, offset: int) -> None:
        if self._acked < offset <= self._sent:
            self._acked = offset
            self.do(self._fill)

    def produce(self, send: Send) -> bool:
        if self.ref is None:
            return False
        if self._info is not None:
            send(frames.INFO, self._info, ref=self.ref)
            self._info = None
            return True
        if self._pieces:
            offset, data = self._pieces.popleft()
            send(frames.CONTENT, data, ref=self.ref, offset=offset)
            return True
        return super().produce(send)
