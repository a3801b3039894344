"""The runner's event loop: one thread, one selector, timers, and a way in for the file threads.

Owns the order in which things happen. Must never block: what can block belongs to a file thread or to a keeper.
"""

import heapq
import itertools
import os
import selectors
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress


class Timer:
    __slots__ = ("at", "call")

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Loop:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self._posted: deque[Callable[[], None]] = deque()
        self._rung = False
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_r, False)
        os.set_blocking(self._wake_w, False)
        self.wake_fd = self._wake_w
        self.on_wake: Callable[[], None] = lambda: None
        self.when_readable(self._wake_r, self._woken)

    def when_readable(self, fd: int, call: Callable[[], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, call)

    def when_writable(self, fd: int, call: Callable[[], None]) -> None:
        self._selector.register(fd, selectors.EVENT_WRITE, call)

    def forget(self, fd: int) -> None:
        self._selector.unregister(fd)

    def later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        timer = Timer(time.monotonic() + delay_s, call)
        heapq.heappush(self._timers, (timer.at, next(self._count), timer))
        return timer

    def post(self, call: Callable[[], None]) -> None:
        """From any thread: `call` runs on the loop."""
        self._posted.append(call)
        if not self._rung:  # else the loop has yet to come to an earlier one, and then finds this too
            self._rung = True
            with suppress(BlockingIOError):  # full of signals: the loop will look
                os.write(self._wake_w, b"\0")

    def run(self) -> None:
        while True:
            for key, _ in self._selector.select(self._wait_s()):
                # an earlier callback of this turn may have closed it, or put another file in its place
                current = self._selector.get_map().get(key.fd)
                if current is not None and current.data is key.data:
                    key.data()
            self._fire()

    def _wait_s(self) -> float | None:
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _fire(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.call is not None:
                timer.call()

    def _woken(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake_r, 4096)
        self._rung = False  # before it looks: what is posted from here on rings anew
        while self._posted:
            self._posted.popleft()()
        self.on_wake()
