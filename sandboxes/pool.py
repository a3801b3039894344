"""The warm pool: sandboxes that are started before anybody asks. Owned by the hub's loop; touched from nowhere else.

Fills in the background, one at a time and never while somebody waits for a sandbox; gives up what is old, what the
settings no longer want, and what died. Must never run anything in one, nor hold more than its workspaces wish.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from contextvars import Context
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, TypedDict

from django.conf import settings

from console.workspaces import db

from . import counters, pooled
from .engine import Box, BoxSpec, Engine, Found
from .errors import BoxGone, SandboxError
from .models import PooledSandbox, Sandbox
from .pooled import Wish

if TYPE_CHECKING:
    from .boxes import Boxes

log = logging.getLogger("sandgate.pool")
LOOK_AGAIN_S = 5
AFTER_FAILURE_S = 60
ANSWERS_WITHIN_S = 3


class Pool:
    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        self._held: dict[str, Box] = {}
        self._bell = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._quiet_until = 0.0

    def wake(self) -> None:
        """Something was taken out, or somebody is done waiting."""
        self._bell.set()

    def holds(self, sandbox_id: str) -> bool:
        return sandbox_id in self._held

    async def run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_S):
                    await self._bell.wait()
            self._bell.clear()
            try:
                await self._round()
            except SandboxError as error:
                self._quiet_until = monotonic() + AFTER_FAILURE_S
                log.warning("The pool was not filled, next try in a minute: %s", error.detail)
            except Exception:  # a boundary: without a pool sandboxes start cold, and nothing else is lost
                self._quiet_until = monotonic() + AFTER_FAILURE_S
                log.exception("The pool was not filled, next try in a minute.")

    async def _round(self) -> None:
        engine = self._boxes.engine
        if engine is None or self._boxes.stopping or monotonic() < self._quiet_until:
            return
        rows, wishes = await db.read(pooled.every), await self._wishes()
        images = {name: await engine.image_id(name) for name in {wish.profile.image for wish in wishes}}
        missing = await self._sorted_out(rows, wishes, images)
        if missing and not self._boxes.room.is_used:
            await self._make(engine, missing[0], images[missing[0].profile.image])
            self.wake()

    async def _wishes(self) -> list[Wish]:
        """As far as the host's own limit goes, the workspaces that used a sandbox last first."""
        left, found = settings.POOL_MOST, []
        for wish in await db.read(pooled.wishes, can_network=self._boxes.can_network):
            size = min(wish.size, left)
            left -= size
            if size:
                found.append(Wish(wish.workspace_id, wish.profile, size))
        return found

    async def _sorted_out(self, rows: list[PooledSandbox], wishes: list[Wish], images: dict[str, str]) -> list[Wish]:
        """Gives up what nobody wants any more; answers what is missing, once for each."""
        left = {wish.workspace_id: wish.size for wish in wishes}
        wanted = {wish.workspace_id: wish for wish in wishes}
        for row in rows:
            wish = wanted.get(row.workspace_id)
            fits = wish is not None and left[wish.workspace_id] > 0 and self.holds(row.pk)
            if wish is not None and fits and pooled.fits(row, wish, images[wish.profile.image]):
                left[wish.workspace_id] -= 1
            else:
                await self._give_up(row.pk)
        return [wish for wish in wishes for _ in range(left[wish.workspace_id])]

    async def _make(self, engine: Engine, wish: Wish, image_id: str) -> None:
        row = await db.write(pooled.begin, wish, image_id=image_id)
        try:
            box = await engine.create(spec_of(row))
            self._hold(box)
            made = await db.write(pooled.ready, row.pk, **facts_of(box))
        except BaseException:
            self._held.pop(row.pk, None)
            await asyncio.shield(db.write(pooled.forget, row.pk))
            raise
        if not made:
            await self._remove(row.pk)

    def _hold(self, box: Box) -> None:
        self._held[box.sandbox_id] = box
        box.on_lost = partial(self._lost, box.sandbox_id)

    def _lost(self, sandbox_id: str, reason: str) -> None:
        if self._held.pop(sandbox_id, None) is not None:
            task = asyncio.get_running_loop().create_task(self._give_up(sandbox_id), context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _give_up(self, sandbox_id: str) -> None:
        """The row first: who claims it at this moment has it, and finds out whether it still answers."""
        if await db.write(pooled.forget, sandbox_id):
            await self._remove(sandbox_id)

    async def _remove(self, sandbox_id: str) -> None:
        self._held.pop(sandbox_id, None)
        counters.reaped("pool")
        with suppress(SandboxError):  # Docker is away: what is left has no row, and goes as a stray
            await self._boxes.engine_there().erase(sandbox_id)
        self.wake()

    async def hand_over(self, sandbox: Sandbox) -> Box | None:
        """The box of one that was just claimed; None when it does not answer, and then nothing is left of it."""
        box = self._held.pop(sandbox.pk, None)
        if box is not None:
            box.on_lost, box.env = None, dict(sandbox.env)
            try:
                async with asyncio.timeout(ANSWERS_WITHIN_S):
                    await box.touch()
                return box
            except (SandboxError, TimeoutError) as error:
                log.warning("Pooled sandbox %s does not answer (%s); another is started.", sandbox.pk, error)
        await self._boxes.ready().erase(sandbox.pk)
        return None

    async def take_up(self, found: dict[str, Found]) -> None:
        """After a restart: what still runs, and was clean when we last knew it, is kept."""
        engine = self._boxes.ready()
        for row in await db.read(pooled.every):
            item = found.get(row.pk)
            try:
                if item is None or not item.running or row.ready_at is None:
                    raise BoxGone(f"Pooled sandbox {row.pk} is gone.")
                box = await engine.attach(row.pk, item.container_id, env={})
                if box.boot != row.boot:
                    raise BoxGone(f"Pooled sandbox {row.pk} was started anew.")
                self._hold(box)
            except BoxGone:
                await self._give_up(row.pk)

    async def close(self) -> None:
        for row in await db.read(pooled.every):
            await self._give_up(row.pk)


def spec_of(row: PooledSandbox | Sandbox) -> BoxSpec:
    """What a row says its sandbox is made of."""
    return BoxSpec(
        sandbox_id=row.pk,
        image=row.image_id,
        cpus=row.cpus,
        memory_mb=row.memory_mb,
        disk_mb=row.disk_mb,
        processes=row.processes,
        open_files=row.open_files,
        writable_root=isinstance(row, Sandbox) and row.writable_root,
        env=dict(row.env) if isinstance(row, Sandbox) else {},
        network="public" if row.network == "public" else "none",
    )


class Facts(TypedDict):
    container_id: str
    boot: str
    address: str | None


def facts_of(box: Box) -> Facts:
    """What a row keeps of a sandbox that runs."""
    return {"container_id": box.container_id, "boot": box.boot, "address": box.address}
