"""What is written to the root of a sandbox that has a writable one: it lies in Docker's folder on the host's disk, and
neither Docker nor this gVisor caps it. So it is looked at, and a sandbox that wrote too much is ended.

Owns those looks, a task for each such sandbox. Must never let one run that cannot be looked at.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from contextvars import Context
from pathlib import Path

from sandboxes.errors import NoRuntime

from .daemon import Daemon

log = logging.getLogger("sandgate.roots")
LOOK_S = 1.0
LIMIT = "disk_limit"


class Roots:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._looks: dict[str, asyncio.Task[None]] = {}

    async def watch(self, container_id: str, *, limit_mb: int, end: Callable[[str], None]) -> None:
        """From now until `forget`. `end` is called with why, once, when it has grown beyond `limit_mb`. Raises
        NoRuntime when Docker keeps what is written where nobody here can look."""
        self.forget(container_id)
        folder = await self._folder(container_id)
        work = _look(folder, limit_mb << 20, end)
        self._looks[container_id] = asyncio.create_task(work, context=Context())

    def forget(self, container_id: str) -> None:
        if (look := self._looks.pop(container_id, None)) is not None:
            look.cancel()

    def close(self) -> None:
        for container_id in list(self._looks):
            self.forget(container_id)

    async def _folder(self, container_id: str) -> Path:
        found = await self._daemon.call(lambda client: client.api.inspect_container(container_id))
        upper = ((found.get("GraphDriver") or {}).get("Data") or {}).get("UpperDir") or ""
        if not upper or not os.path.isdir(upper):
            raise NoRuntime(
                "This Docker keeps what a sandbox writes to its system where its size cannot be seen, so none with a "
                "`writable_root` is started. Use a Docker on this machine with the storage driver overlay2."
            )
        return Path(upper)


async def _look(folder: Path, limit_bytes: int, end: Callable[[str], None]) -> None:
    while True:
        try:
            used = await asyncio.to_thread(used_bytes, folder, enough=limit_bytes)
        except OSError as error:
            log.error("How much a sandbox wrote to its root could not be seen: %s.", error)
            used = 0
        if used > limit_bytes:
            log.warning("A sandbox wrote more than %d MB to its root, and ends.", limit_bytes >> 20)
            return end(LIMIT)
        await asyncio.sleep(LOOK_S)


def used_bytes(folder: Path, *, enough: int) -> int:
    """Of the disk, by all that lies in `folder`; not counted on beyond `enough`. gVisor keeps a whole root in one file,
    most of which is a hole: its size says nothing."""
    used, left = 0, [str(folder)]
    while left and used <= enough:
        try:
            entries = os.scandir(left.pop())
        except FileNotFoundError:  # it went while it was looked at, or its container did
            continue
        with entries:
            for entry in entries:
                try:
                    used += entry.stat(follow_symlinks=False).st_blocks * 512
                except FileNotFoundError:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
    return used
