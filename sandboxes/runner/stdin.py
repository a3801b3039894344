"""The pipe into one command: what came with its request, then what is sent to it, until its end is asked for.

Owns that pipe's one open end. Must never wait for the command to read, and never hold more than HELD_BYTES of what was
sent later: a program that does not read is told of to whoever sends, not paid for by the sandbox.
"""

import os
from collections import deque

from .loop import Loop

WRITE_BYTES = 64 << 10
HELD_BYTES = 4 << 20


class Full(Exception):
    """The command has not read what was sent before."""


class Closed(Exception):
    """Its end was asked for, or nobody reads it any more."""


class Stdin:
    def __init__(self, loop: Loop, fd: int, data: bytes, *, stays_open: bool) -> None:
        self._loop = loop
        self._fd: int | None = fd
        self._waiting: deque[memoryview] = deque([memoryview(data)] if data else [])
        self._held_bytes = len(data)
        self._ends = not stays_open
        self._watched = False
        if self._waiting:  # not now: its reader may not have been told what to run
            self._watch(True)
        elif self._ends:
            self.close()

    def put(self, data: bytes, *, end: bool) -> None:
        """All of `data` or nothing of it. Raises Full or Closed."""
        if self._fd is None or self._ends:
            raise Closed
        if self._held_bytes and self._held_bytes + len(data) > HELD_BYTES:
            raise Full
        if data:
            self._waiting.append(memoryview(data))
            self._held_bytes += len(data)
        self._ends = end
        if not self._feed():
            raise Closed

    def close(self) -> None:
        self._waiting.clear()
        self._held_bytes = 0
        if self._fd is not None:
            self._watch(False)
            os.close(self._fd)
            self._fd = None

    def _feed(self) -> bool:
        """As much as the pipe takes; False when it takes nothing ever again."""
        if self._fd is None:
            return False
        try:
            while self._waiting:
                piece = self._waiting[0]
                done = os.write(self._fd, piece[:WRITE_BYTES])
                self._held_bytes -= done
                if done < len(piece):
                    self._waiting[0] = piece[done:]
                else:
                    self._waiting.popleft()
        except BlockingIOError:
            self._watch(True)
            return True
        except OSError:  # the command closed its end
            self.close()
            return False
        self._watch(False)
        if self._ends:
            self.close()
        return True

    def _watch(self, wanted: bool) -> None:
        if self._fd is None or wanted == self._watched:
            return
        self._watched = wanted
        if wanted:
            self._loop.when_writable(self._fd, self._writable)
        else:
            self._loop.forget(self._fd)

    def _writable(self) -> None:
        self._feed()
