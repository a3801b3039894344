"""What a command printed, as far as it is kept: the first 64 KiB and at least the last 2 MiB, with true byte offsets.

Owns offsets and what was dropped. Must never grow past HEAD_BYTES + TAIL_BYTES + BLOCK_BYTES.
"""

from collections import deque

HEAD_BYTES = 64 << 10
TAIL_BYTES = 2 << 20
BLOCK_BYTES = 128 << 10
"""The tail is in blocks: one buffer that loses its beginning is copied whole, again and again, as it grows."""


class Output:
    """One stream. `total` counts every byte that was ever printed; `read` gives what is kept from an offset on."""

    __slots__ = ("total", "_forgotten", "_head", "_blocks", "_tail_start")

    def __init__(self) -> None:
        self.total = 0
        self._forgotten = False
        self._head = bytearray()
        self._blocks: deque[bytearray] = deque()  # all but the last are full
        self._tail_start = 0

    def append(self, data: bytes) -> None:
        self.total += len(data)
        if self._forgotten:
            self._tail_start = self.total
            return
        rest = memoryview(data)
        if (room := HEAD_BYTES - self._tail_start) > 0:
            self._head += rest[:room]
            self._tail_start += min(room, len(data))
            rest = rest[room:]
        while rest:
            if not self._blocks or len(self._blocks[-1]) == BLOCK_BYTES:
                self._blocks.append(bytearray())
            room = BLOCK_BYTES - len(self._blocks[-1])
            self._blocks[-1] += rest[:room]
            rest = rest[room:]
        while self.total - self._tail_start > TAIL_BYTES + BLOCK_BYTES:
            self._tail_start += len(self._blocks.popleft())

    def read(self, offset: int, limit_bytes: int) -> tuple[int, bytes]:
        """The first kept bytes at or after `offset`, and where they begin. Not always as many as there are: none only
        where nothing is kept from there on."""
        if offset < len(self._head):
            return offset, bytes(self._head[offset : offset + limit_bytes])
        start = max(offset, self._tail_start)
        number, at = divmod(start - self._tail_start, BLOCK_BYTES)
        if number >= len(self._blocks):
            return start, b""
        return start, bytes(memoryview(self._blocks[number])[at : at + limit_bytes])

    @property
    def kept_bytes(self) -> int:
        return len(self._head) + sum(map(len, self._blocks))

    def forget(self) -> None:
        """Drops the bytes, and those still to come; goes on counting."""
        self._forgotten = True
        self._head.clear()
        self._blocks.clear()
        self._tail_start = self.total
