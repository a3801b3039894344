"""One stream of a command: its pipe, what is kept of it, and how far the one who follows it is.

Owns the window towards the follower. Must never send more than WINDOW_BYTES that nobody acknowledged.
"""

from . import frames
from .loop import Timer
from .output import TAIL_BYTES, Output

READ_BYTES = 64 << 10
WINDOW_BYTES = 1 << 20
"""Sent and not yet acknowledged, at most: what the host must be able to hold."""
BEHIND_BYTES = TAIL_BYTES - READ_BYTES
"""So far may a reader be behind before the pipe waits for it."""


class Stream:
    """One pipe of a command, what was kept of it, and how far its follower is."""

    __slots__ = ("fd", "flag", "output", "sent", "acked", "lost", "end", "open", "paused", "losing", "timer")

    def __init__(self, fd: int, flag: int) -> None:
        self.fd = fd
        self.flag = flag
        self.output = Output()
        self.sent = self.acked = self.lost = 0
        self.end: int | None = None
        self.open = True
        self.paused = False
        self.losing = False
        self.timer: Timer | None = None

    @property
    def behind(self) -> bool:
        return self.end is None and not self.losing and self.output.total - self.acked >= BEHIND_BYTES

    def follow_from(self, offset: int) -> None:
        self.sent = self.acked = min(offset, self.output.total)
        self.lost = 0

    def next_piece(self) -> tuple[int, bytes] | None:
        """What the follower gets next; None when it has all there is, or has enough unacknowledged."""
        end = self.output.total if self.end is None else self.end
        while self.sent < end and self.sent - self.acked < WINDOW_BYTES:
            start, data = self.output.read(self.sent, min(frames.CHUNK_BYTES, end - self.sent))
            start = min(start, end)
            data = data[: end - start]
            self.lost += start - self.sent
            self.sent = start + len(data)
            if data:
                return start, data
        return None

    @property
    def told(self) -> bool:
        return self.end is not None and self.sent >= self.end
