"""Turns for answers that take much memory: so many at once, the others wait. Any thread, any loop.

Owns the counts and the queue. The memory of a turn is taken from before the content is read until it lies on disk, or
its answer is out, and nobody reads: it must never be given back while somebody still holds the content. Its owner has
the turn until the answer is out: at most one content of each lies on disk, and LYING of all.
"""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from .errors import NoCapacity

LARGE_BYTES = 8 << 20  # up to here an answer takes no turn
LARGE_AT_ONCE = 2  # each takes about its size, and pieces
LYING = 20  # on disk, for clients that have yet to take them
WAITING = 16  # of one owner: each holds a window of its file
WAIT_S = 60.0


class Place(Future[None]):
    """Where one waits. Done: it is its turn."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self.owner = owner
        self.lies = False  # on disk: it takes no memory any more
        self.set_running_or_notify_cancel()  # it cannot be cancelled: whoever gives up leaves the queue


class Turns:
    """In order of arrival, and one at a time for each owner: whoever takes long over theirs holds up nobody else."""

    def __init__(self, count: int, lying: int = LYING) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._room = count + lying  # each that has a turn may come to lie
        self._busy: set[str] = set()
        self._queue: list[Place] = []

    async def take(self, place: Place, *, timeout_s: float) -> None:
        """Raises NoCapacity when its owner has too many waiting, or it is not its turn in time."""
        self._join(place)
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.wrap_future(place)
        except TimeoutError:
            self._leave(place)
            raise _none_free() from None
        except BaseException:
            self._leave(place)
            raise

    def give_back(self, place: Place) -> None:
        with self._lock:
            self._free += not place.lies
            self._room += 1
            self._busy.remove(place.owner)
            self._next()

    def lay_down(self, place: Place) -> None:
        """Its memory is free for the next, its owner is not."""
        with self._lock:
            self._free += not place.lies
            place.lies = True
            self._next()

    def withdraw(self, place: Place) -> None:
        """Whoever waits there gets NoCapacity. When it is its turn already, nothing happens."""
        with self._lock:
            if place in self._queue:
                self._queue.remove(place)
                place.set_exception(_none_free())

    def _join(self, place: Place) -> None:
        with self._lock:
            if sum(other.owner == place.owner for other in self._queue) >= WAITING:
                raise _none_free()
            self._queue.append(place)
            self._next()

    def _leave(self, place: Place) -> None:
        with self._lock:
            if place in self._queue:
                return self._queue.remove(place)
            if place.exception():
                return None  # withdrawn
        self.give_back(place)  # it was given in the same moment

    def _next(self) -> None:
        """Holding the lock: whose turn it is now."""
        for place in list(self._queue):
            if self._free and self._room and place.owner not in self._busy:
                self._queue.remove(place)
                self._free -= 1
                self._room -= 1
                self._busy.add(place.owner)
                place.set_result(None)


def _none_free() -> NoCapacity:
    return NoCapacity(f"Too many answers over {LARGE_BYTES} bytes are under way. Ask again in a moment.")


large_answers = Turns(LARGE_AT_ONCE)


class Turn:
    """One answer's. Held by its request until `end`, and by whoever reads for it."""

    def __init__(self, owner: str, turns: Turns = large_answers) -> None:
        self._turns = turns
        self._lock = threading.Lock()
        self._holders = 1
        self._taken = False
        self._place = Place(owner)
        self.is_over = False

    async def take(self) -> None:
        """While held. Waits until it is this one's turn; has no more to wait for once it was."""
        if not self._taken:
            await self._turns.take(self._place, timeout_s=WAIT_S)
            self._taken = True

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            self._holders += 1
        try:
            yield
        finally:
            self._let_go()

    def lay_down(self) -> None:
        """The content lies on disk and is held by nobody any more. For one that has taken its turn, and not ended."""
        if self._taken and not self.is_over:
            self._turns.lay_down(self._place)

    def end(self) -> None:
        """The answer is out, or nobody wants it any more. A second time does nothing."""
        if not self.is_over:
            self.is_over = True
            self._turns.withdraw(self._place)
            self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            self._holders -= 1
            last = not self._holders and self._taken
        if last:
            self._turns.give_back(self._place)
