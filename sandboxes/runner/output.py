"""What a command printed, as far as it is kept: the first 64 KiB and the last 1 MiB, with true byte offsets.

Owns offsets and what was dropped. Must never grow past HEAD_BYTES + TAIL_BYTES + SLACK_BYTES.
"""

HEAD_BYTES = 64 << 10
TAIL_BYTES = 1 << 20
SLACK_BYTES = 256 << 10


class Output:
    """One stream. `total` counts every byte that was ever printed; `read` gives what is kept from an offset on."""

    __slots__ = ("total", "_forgotten", "_head", "_tail", "_tail_start")

    def __init__(self) -> None:
        self.total = 0
        self._forgotten = False
        self._head = bytearray()
        self._tail = bytearray()
        self._tail_start = 0

    def append(self, data: bytes) -> None:
        self.total += len(data)
        if self._forgotten:
            self._tail_start = self.total
            return
        room = HEAD_BYTES - self._tail_start
        if room > 0:
            self._head += data[:room]
            self._tail_start += min(room, len(data))
            data = data[room:]
        self._tail += data
        if len(self._tail) > TAIL_BYTES + SLACK_BYTES:
            self._cut(len(self._tail) - TAIL_BYTES)

    def _cut(self, n: int) -> None:
        del self._tail[:n]
        self._tail_start += n

    def read(self, offset: int, limit_bytes: int) -> tuple[int, bytes]:
        """The first kept bytes at or after `offset`, and where they begin."""
        if offset < len(self._head):
            return offset, bytes(self._head[offset : offset + limit_bytes])
        start = max(offset, self._tail_start)
        at = start - self._tail_start
        return start, bytes(self._tail[at : at + limit_bytes])

    @property
    def kept_bytes(self) -> int:
        return len(self._head) + len(self._tail)

    def forget(self) -> None:
        """Drops the bytes, and those still to come; goes on counting."""
        self._forgotten = True
        self._head.clear()
        self._tail.clear()
        self._tail_start = self.total
