"""Room for another sandbox on this host: how many are being made, and whether the machine has memory left.

Owns that count. Must never keep anybody waiting: who finds no room is told at once, and when to ask again.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import counters
from .errors import NoCapacity

AT_ONCE = 64  # the engine makes a few at a time, the others wait for their turn
MEMORY_LEFT_MB = 256
MEMORY = Path("/proc/meminfo")


class Room:
    def __init__(self) -> None:
        self._inside: set[asyncio.Task[object]] = set()

    @property
    def is_used(self) -> bool:
        """Somebody waits for a sandbox to be made."""
        return bool(self._inside)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Raises NoCapacity when there is none."""
        try:
            self._check()
        except NoCapacity:
            counters.created(how="cold", seconds=0, outcome="refused")
            raise
        task = asyncio.current_task()
        assert task is not None
        self._inside.add(task)
        try:
            yield
        finally:
            self._inside.discard(task)

    def _check(self) -> None:
        if len(self._inside) >= AT_ONCE:
            raise NoCapacity(f"{AT_ONCE} sandboxes are being made here already. Ask again in a moment.")
        if (left_mb := _memory_left_mb()) < MEMORY_LEFT_MB:
            raise NoCapacity(f"The host has {left_mb} MB of memory left, too little for a sandbox.", retry_after=30)

    async def clear(self, *, within_s: float) -> None:
        """Whoever is inside is cut off, and has undone what it had begun."""
        tasks = list(self._inside)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)


def _memory_left_mb() -> int:
    """Of this machine; a great many where that cannot be told."""
    try:
        lines = MEMORY.read_text().splitlines()
    except OSError:
        return 1 << 30
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("MemAvailable:")), 1 << 30)
