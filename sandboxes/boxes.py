"""The sandboxes that run now, and the engine that runs them. Owned by the hub's loop; touched from nowhere else.

Makes sandboxes, takes them up again after a restart, and ends them when they are lost, overdue or deleted.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from functools import partial
from pathlib import Path
from time import monotonic

from console.workspaces import audit, db
from console.workspaces.keys import Caller

from . import lifecycle, profiles
from .engine import Box, BoxSpec, Engine, EngineConfig
from .errors import BoxGone, NoRuntime, SandboxError
from .models import Sandbox
from .profiles import NewSandbox

log = logging.getLogger("sandgate.boxes")
STOPPED = "Sandgate was stopped by its operator, and its sandboxes with it."
LOOKED_WITHIN_S = 35  # the clock looks each ten seconds or so
FIX = "Run `bin/up`, which sets gVisor up, or `manage.py doctor`, which says what is missing."


class Boxes:
    def __init__(self, var: Path, instance: str) -> None:
        self._var, self._instance = var, instance
        self.engine: Engine | None = None
        self.stopping = False
        self._boxes: dict[str, Box] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._looked_at = 0.0
        self._why_not = f"No gVisor runtime is set up here. {FIX}"

    async def open(self) -> None:
        """Raises NoRuntime; then `create` does too, until a later `open` succeeds."""
        try:
            engine = Engine(EngineConfig.load(self._var, self._instance))
            await engine.start()
        except SandboxError as error:
            self._why_not = f"{error.detail} {FIX}"
            raise NoRuntime(self._why_not) from error
        self.engine, self._looked_at = engine, monotonic()

    @property
    def is_answering(self) -> bool:
        """As of the last look: nobody who asks this often makes Docker busy."""
        return self.engine is not None and monotonic() - self._looked_at < LOOKED_WITHIN_S

    def ready(self) -> Engine:
        if self.engine is None:
            raise NoRuntime(self._why_not)
        return self.engine

    async def create(self, caller: Caller, new: NewSandbox) -> Sandbox:
        """A running sandbox. Whatever fails, nothing is left: no container, no live row."""
        engine = self.ready()
        profile = await db.read(profiles.resolve, caller, new, can_network=False)
        image_id = await engine.image_id(profile.image)
        sandbox = await db.write(lifecycle.make, caller, new, image_id=image_id, can_network=False)
        try:
            box = await engine.create(
                BoxSpec(
                    sandbox_id=sandbox.pk, image=image_id, cpus=sandbox.cpus, memory_mb=sandbox.memory_mb,
                    disk_mb=sandbox.disk_mb, processes=sandbox.processes, open_files=sandbox.open_files,
                    writable_root=sandbox.writable_root, env=dict(sandbox.env), network="none",
                )
            )  # fmt: skip
        except BaseException:
            await asyncio.shield(db.write(lifecycle.end, sandbox, "crashed", deleted=True))
            raise
        self._adopt(box)
        if not await db.write(lifecycle.started, sandbox, container_id=box.container_id, boot=box.boot):
            await self._drop(sandbox.pk, box.container_id, "deleted")
            raise BoxGone(f"Sandbox {sandbox.pk} was deleted while it started.", reason="deleted")
        return await db.read(Sandbox.objects.get, pk=sandbox.pk)

    def box(self, sandbox_id: str) -> Box:
        if found := self._boxes.get(sandbox_id):
            return found
        raise BoxGone(f"Sandbox {sandbox_id} is not running here. Create a new one.", reason="host_lost")

    def holds(self, sandbox_id: str) -> bool:
        return sandbox_id in self._boxes

    async def end(self, sandbox: Sandbox, reason: str, *, actor: audit.Actor, deleted: bool = False) -> bool:
        """Row first: from here on nothing new starts in it. Then the container, which ends what runs."""
        because = STOPPED if self.stopping else ""
        ended = await db.write(lifecycle.end, sandbox, reason, actor=actor, deleted=deleted, because=because)
        await self._drop(sandbox.pk, sandbox.container_id, reason)
        return ended

    async def end_overdue(self, *, divisor: float) -> None:
        for sandbox_id, reason in await db.read(lifecycle.overdue, divisor=divisor):
            if await db.write(lifecycle.end_if_still_idle, sandbox_id, reason, divisor=divisor):
                sandbox = await db.read(Sandbox.objects.get, pk=sandbox_id)
                await self._drop(sandbox_id, sandbox.container_id, reason)

    async def reconcile(self) -> None:
        """Both ways: a live row without its container ends, a container without a live row goes."""
        engine = self.ready()
        # Containers first: each has its row before it is made, so one whose row is not live is no newcomer.
        found = {item.sandbox_id: item for item in await engine.found()}
        self._looked_at = monotonic()
        rows = {sandbox.pk: sandbox for sandbox in await db.read(lambda: list(Sandbox.objects.live()))}
        for sandbox_id, item in found.items():
            if sandbox_id not in rows and not self.holds(sandbox_id):
                log.warning("Removing container %s: no live sandbox has it.", item.container_id[:12])
                await engine.remove(item.container_id)
        for sandbox in rows.values():
            # One that is held has come since we looked, or its channel tells of its loss.
            if sandbox.status != "starting" and sandbox.pk not in found and not self.holds(sandbox.pk):
                await self.end(sandbox, "host_lost", actor=audit.SYSTEM)

    async def take_up(self) -> None:
        """After a restart: every live row gets its channel back, or ends with the reason."""
        engine = self.ready()
        found = {item.sandbox_id: item for item in await engine.found()}
        for sandbox in await db.read(lambda: list(Sandbox.objects.live())):
            item = found.get(sandbox.pk)
            if sandbox.status == "starting" or item is None:
                reason = "crashed" if sandbox.status == "starting" else "host_lost"
                sandbox.container_id = item.container_id if item else ""
                await self.end(sandbox, reason, actor=audit.SYSTEM)
                continue
            await self._attach(engine, sandbox)
        await self.reconcile()

    async def _attach(self, engine: Engine, sandbox: Sandbox) -> None:
        try:
            box = await engine.attach(sandbox.pk, sandbox.container_id, env=sandbox.env)
        except BoxGone as error:
            await self.end(sandbox, error.reason, actor=audit.SYSTEM)
            return
        self._adopt(box)
        if box.boot != sandbox.boot:  # another runner: it knows none of our commands
            await self.end(sandbox, "crashed", actor=audit.SYSTEM)

    def _adopt(self, box: Box) -> None:
        self._boxes[box.sandbox_id] = box
        box.on_lost = partial(self._lost, box.sandbox_id)

    def _lost(self, sandbox_id: str, reason: str) -> None:
        if sandbox_id not in self._boxes:
            return
        # A context of its own: it is told by a connection that some request opened, and is no work of that request.
        task = asyncio.get_running_loop().create_task(self._end_lost(sandbox_id, reason), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end_lost(self, sandbox_id: str, reason: str) -> None:
        log.warning("Sandbox %s is gone: %s.", sandbox_id, reason)
        sandbox = await db.read(Sandbox.objects.get, pk=sandbox_id)
        await self.end(sandbox, reason, actor=audit.SYSTEM)

    async def _drop(self, sandbox_id: str, container_id: str, reason: str) -> None:
        """Whoever still waits for something in it gets BoxGone with `reason`."""
        box = self._boxes.pop(sandbox_id, None)
        container_id = box.container_id if box else container_id
        if container_id and self.engine:
            await self.engine.remove(container_id, reason=reason)

    async def close(self) -> None:
        """The console stops in good order: every sandbox that does not persist ends with it."""
        if self.engine is None:
            return
        self.stopping = True
        for sandbox in await db.read(lambda: list(Sandbox.objects.live().filter(persistent=False))):
            try:
                await self.end(sandbox, "host_lost", actor=audit.SYSTEM)
            except SandboxError as error:
                log.error("Sandbox %s could not be removed: %s", sandbox.pk, error.detail)
        await self.engine.close()
