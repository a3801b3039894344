"""Commands that outlive the call that began them: in the background, or what one in the foreground left behind.

Owns one task of the hub for each, from its start, or the server's, to its end; no request has a part in it. Must never
begin a command: it follows what a Pass has begun.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from console.workspaces import db

from . import commands, counters
from .boxes import Boxes
from .errors import BoxGone, SandboxError
from .outputs import Name, Outputs
from .toolsets import run

log = logging.getLogger("sandgate.following")
AGAIN_S = 5.0
AWAY_AGAIN_S = 0.5
FREE_BYTES = 64 << 20
PACE_BYTES_S = 8 << 20


class Paced:
    """Output on its way into the files. What prints without end, as `yes` does, is slowed down, so that it cannot keep
    the hub and the disk busy for hours: its pipe is read no faster than PACE_BYTES_S once FREE_BYTES are in."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._free_at = monotonic()
        self._free_bytes = FREE_BYTES

    async def put(self, stream: Name, offset: int, data: bytes) -> None:
        await self._outputs.put(stream, offset, data)
        if self._free_bytes > 0:
            self._free_bytes -= len(data)
            return
        self._free_at = max(self._free_at, monotonic()) + len(data) / PACE_BYTES_S
        await asyncio.sleep(self._free_at - monotonic())


class Following:
    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def follow(self, action_id: str, sandbox_id: str) -> None:
        """A command in the background, until it has ended and its output is in."""
        self._keep(action_id, self._to_its_end(action_id, sandbox_id))

    def watch(self, action_id: str, sandbox_id: str) -> None:
        """A command that has ended, until nothing is left of what it started."""
        self._keep(action_id, self._until_empty(action_id, sandbox_id))

    async def take_up(self) -> None:
        """After a restart, when the sandboxes are back."""
        for action_id, sandbox_id, has_ended in await db.read(commands.to_follow):
            if action_id not in self._tasks:
                (self.watch if has_ended else self.follow)(action_id, sandbox_id)

    async def told(self, action_id: str, *, within_s: float) -> None:
        """Returns when the row of a command whose tree is gone says so; at the latest after `within_s`."""
        if task := self._tasks.get(action_id):
            await asyncio.wait([task], timeout=within_s)

    async def close(self) -> None:
        """After the sandboxes have ended: each has heard of that, and still has to write it."""
        if self._tasks:
            _, left = await asyncio.wait(self._tasks.values(), timeout=5)
            for task in left:
                task.cancel()

    def _keep(self, action_id: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"following {action_id}")
        self._tasks[action_id] = task
        task.add_done_callback(partial(self._done, action_id))

    def _done(self, action_id: str, task: asyncio.Task[Any]) -> None:
        if self._tasks.get(action_id) is task:
            del self._tasks[action_id]
        if not task.cancelled() and (error := task.exception()):
            log.error("Following the command of %s failed.", action_id, exc_info=error)

    async def _to_its_end(self, action_id: str, sandbox_id: str) -> None:
        while True:
            outputs = Outputs(action_id, self._boxes.output_mb(sandbox_id))
            try:
                box = self._boxes.box(sandbox_id)
                ended = await box.follow(action_id, Paced(outputs), have=outputs.sizes)
            except BoxGone:
                if self._boxes.losses.is_away(sandbox_id):  # nobody waits for an answer here
                    await asyncio.sleep(AWAY_AGAIN_S)
                    continue
                ended = None
            except (SandboxError, OSError) as error:  # a full disk here, too: the runner keeps what it can meanwhile
                log.error("The command of %s is followed again in %g s: %s", action_id, AGAIN_S, error)
                await asyncio.sleep(AGAIN_S)
                continue
            break
        if ended is None:
            await db.write(commands.lose_in_background, action_id, outputs.sizes)
            counters.command_ended("lost")
            return
        result = run.result(ended, outputs)
        await db.write(commands.end_in_background, action_id, result)
        counters.command_ended(result["status"])
        box.settled(action_id)  # only now: until it is stored, the runner's copy is the only one
        if ended.left_running:
            await self._until_empty(action_id, sandbox_id)

    async def _until_empty(self, action_id: str, sandbox_id: str) -> None:
        while True:
            with suppress(BoxGone):  # and with the sandbox all that was left
                await self._boxes.box(sandbox_id).emptied(action_id)
            if not self._boxes.losses.is_away(sandbox_id):
                break
            await asyncio.sleep(AWAY_AGAIN_S)
        await db.write(commands.emptied, action_id)
