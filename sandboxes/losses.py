"""Sandboxes whose connection was given up: gone, or only out of reach with their Docker. Owned by the hub's loop.

Owns the search for those that may go on without us. Must never call one ended because Docker does not answer for a
moment: whoever waited has been told by then, and nobody else loses anything by waiting.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from contextvars import Context
from time import monotonic
from typing import TYPE_CHECKING

from console.workspaces import db

from . import lifecycle
from .errors import NoRuntime, SandboxError

if TYPE_CHECKING:
    from .boxes import Boxes
    from .engine import Box

log = logging.getLogger("sandgate.losses")
AWAY_FOR_S = 60
"""So long Docker may be away before what ran on it counts as lost."""
LOOK_AGAIN_S = 1


class Losses:
    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        self._away: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def is_away(self, sandbox_id: str) -> bool:
        """Lost with its Docker, and looked for: it may well go on."""
        return sandbox_id in self._away

    def note(self, sandbox_id: str, reason: str) -> None:
        """At the moment of the loss, so that who is told of it can ask `is_away` at once."""
        if reason == "host_lost":
            self._away.add(sandbox_id)
        # A context of its own: it is told by a connection that some request opened, and is no work of that request.
        task = asyncio.get_running_loop().create_task(self._after(sandbox_id, reason), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _after(self, sandbox_id: str, reason: str) -> None:
        log.warning("Sandbox %s is lost: %s.", sandbox_id, reason)
        try:
            if reason != "host_lost" or not await self._found_again(sandbox_id):
                await self._boxes.give_up(sandbox_id, reason)
        finally:
            self._away.discard(sandbox_id)

    async def _found_again(self, sandbox_id: str) -> bool:
        """Docker answered, and the row says what is true of it."""
        gone_at = monotonic() + AWAY_FOR_S
        while monotonic() < gone_at and not self._boxes.stopping:
            with suppress(NoRuntime):
                await self._boxes.attach(sandbox_id)
                return True
            await asyncio.sleep(LOOK_AGAIN_S)
        return False

    async def stop_commands(self, box: Box) -> None:
        """While it was away, commands in it were told to be lost. They do not go on behind everybody's back."""
        for action_id in await db.read(lifecycle.lost_commands, box.sandbox_id):
            with suppress(SandboxError):
                await box.stop(action_id)

    async def settled(self, *, within_s: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)
