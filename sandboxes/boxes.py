"""The sandboxes that run now, and the engine that runs them. Owned by the hub's loop; touched from nowhere else.

Makes sandboxes, starts stopped ones when they are needed, and stops or ends them. Whoever changes whether a sandbox
runs holds its lock meanwhile, and writes its row first.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from weakref import WeakValueDictionary

from django.db import IntegrityError

from console.workspaces import audit, db
from console.workspaces.keys import Caller

from . import counters, exceptions, lifecycle, overdue, profiles, quarantine, reconciling
from .engine import Box, CreateFailed, Engine, EngineConfig
from .errors import BoxGone, NoRuntime, OutOfReach, SandboxError, Silent
from .losses import Losses
from .models import Sandbox
from .outputs import SEGMENT_BYTES
from .pool import Pool, facts_of, spec_of
from .profiles import NewSandbox
from .protection import Policy
from .room import Room

log = logging.getLogger("sandgate.boxes")
STOPPED = "Sandgate was stopped by its operator, and its sandboxes with it."
LOOKED_WITHIN_S = 35  # the clock looks each few seconds
JUST_USED_S = 5
CLOSE_AT_ONCE = 4
FIX = "Run `bin/up`, which sets gVisor up, or `manage.py doctor`, which says what is missing."


class Boxes:
    def __init__(self, var: Path, instance: str) -> None:
        self._var, self._instance = var, instance
        self.engine: Engine | None = None
        self.stopping = False
        self.room, self.pool, self.losses = Room(), Pool(self), Losses(self)
        self._boxes: dict[str, Box] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._used_at: dict[str, float] = {}
        self._output_mb: dict[str, int] = {}
        self._protection: dict[str, Policy] = {}
        self._looked_at = 0.0
        self._why_not = f"No gVisor runtime is set up here. {FIX}"

    async def open(self) -> None:
        """Raises NoRuntime; then `create` does too, until a later `open` succeeds."""
        try:
            engine = Engine(EngineConfig.load(self._var, self._instance))
            engine.openings = partial(db.read, exceptions.for_sandboxes)
            await engine.start()
        except SandboxError as error:
            self._why_not = f"{error.detail} {FIX}"
            raise NoRuntime(self._why_not) from error
        self.engine = engine
        self.docker_answered()

    def docker_answered(self) -> None:
        self._looked_at = monotonic()

    @property
    def is_answering(self) -> bool:
        """As of the last look: nobody who asks this often makes Docker busy."""
        return self.engine is not None and monotonic() - self._looked_at < LOOKED_WITHIN_S

    def ready(self) -> Engine:
        if self.engine is None or self.stopping:
            raise NoRuntime(STOPPED if self.stopping else self._why_not)
        return self.engine

    @property
    def can_network(self) -> bool:
        """Whether a sandbox may have more than `none` here; `create` says why not when it comes to it."""
        return self.engine is not None and self.engine.can_network

    @property
    def network_block(self) -> str:
        """All addresses that sandboxes here get; empty without an engine, or a jail."""
        return self.engine.network.block if self.engine else ""

    @property
    def can_stop(self) -> bool:
        """Whether files outlive a stop here."""
        return self.engine is not None and self.engine.disk_kind == "loop"

    # --- one sandbox -------------------------------------------------------------------------------------------------

    def holds(self, sandbox_id: str) -> bool:
        return sandbox_id in self._boxes

    def output_mb(self, sandbox_id: str) -> int:
        """What is kept of each stream of a command in it."""
        return self._output_mb.get(sandbox_id, 2 * SEGMENT_BYTES >> 20)

    def protection(self, sandbox_id: str) -> Policy | None:
        """What its agent's settings said at its last call; None when it has not called since this host began."""
        return self._protection.get(sandbox_id)

    def protect(self, sandbox_id: str, policy: Policy | None) -> None:
        """From any thread. Holds from the next act there on. None: a call of somebody else's, which changes nothing."""
        if policy is not None:
            self._protection[sandbox_id] = policy

    def is_at_work_on(self, sandbox_id: str) -> bool:
        """It is being made, started, stopped or removed at this moment."""
        return self.lock(sandbox_id).locked()

    def lock(self, sandbox_id: str) -> asyncio.Lock:
        return self._locks.setdefault(sandbox_id, asyncio.Lock())

    def box(self, sandbox_id: str) -> Box:
        """Of one that runs; nothing is started for it."""
        if box := self._boxes.get(sandbox_id):
            return box
        if self.losses.is_away(sandbox_id):
            raise OutOfReach(sandbox_id)
        raise BoxGone(f"Sandbox {sandbox_id} does not run. What ran in it is gone.", reason="host_lost")

    async def ready_box(self, sandbox_id: str) -> Box:
        """Started first when it was stopped, connected again when its connection had been given up. Raises BoxGone when
        it has ended, NoRuntime while Docker is away."""
        box = None if self.is_at_work_on(sandbox_id) else self._boxes.get(sandbox_id)
        box = box or await self._made_ready(sandbox_id)
        self._used_at[sandbox_id] = monotonic()
        return box

    async def _made_ready(self, sandbox_id: str) -> Box:
        async with self.lock(sandbox_id):
            if box := self._boxes.get(sandbox_id):
                return box
            sandbox = await self._row(sandbox_id)
            if sandbox.status == "running":
                sandbox = await self._attach(sandbox)
            if sandbox.status == "stopped":
                await self._start_again(sandbox)
            if box := self._boxes.get(sandbox_id):
                return box
            lifecycle.check_live(sandbox)
            raise BoxGone(f"Sandbox {sandbox_id} did not start. Create a new one.", reason="crashed")

    async def _row(self, sandbox_id: str) -> Sandbox:
        return await db.read(Sandbox.objects.get, pk=sandbox_id)

    async def attach(self, sandbox_id: str) -> None:
        """To one that runs as far as we know. When it does not, its row says what became of it. NoRuntime while Docker
        is away."""
        async with self.lock(sandbox_id):
            sandbox = await self._row(sandbox_id)
            if sandbox.status == "running" and not self.holds(sandbox_id):
                await self._attach(sandbox)

    async def _attach(self, sandbox: Sandbox) -> Sandbox:
        try:
            box = await self.ready().attach(sandbox.pk, sandbox.container_id, env=sandbox.env)
            if box.boot != sandbox.boot:  # another runner: it knows none of our commands
                raise BoxGone(f"Sandbox {sandbox.pk} was restarted from outside.", reason="crashed")
        except BoxGone as error:
            if isinstance(error, Silent) and self.losses.is_away(sandbox.pk):  # paused, say: it is asked again
                raise NoRuntime(error.detail) from error
            # A daemon that stopped took the sandbox with it, whatever exit code that then shows.
            reason = "host_lost" if self.losses.is_away(sandbox.pk) and error.reason == "crashed" else error.reason
            await self._lost_for_good(sandbox, reason)
            return await self._row(sandbox.pk)
        box.forget_protection()
        self._adopt(box, sandbox)
        if self.losses.is_away(sandbox.pk):
            await self.losses.stop_commands(box)
        return sandbox

    async def _start_again(self, sandbox: Sandbox) -> None:
        engine = self.ready()
        if not engine.keeps(sandbox.pk):
            await self._end(sandbox, "host_lost", actor=audit.SYSTEM)
            raise BoxGone(f"The disk of sandbox {sandbox.pk} is not there any more.", reason="host_lost")
        if not await engine.has_image(sandbox.image_id):  # another was built or pulled since, and this one removed
            await db.write(lifecycle.image_replaced, sandbox, await engine.image_id(sandbox.image))
        try:
            box = await engine.create(spec_of(sandbox), kept=True)
        except CreateFailed as error:
            raise NoRuntime(f"Sandbox {sandbox.pk} did not start again, try once more. {error.detail}") from error
        if await db.write(lifecycle.started, sandbox, **facts_of(box)):
            self._adopt(box, sandbox)
            await self._open_up(sandbox)
        else:
            await self._drop(sandbox.pk, "deleted")
            raise await db.read(lifecycle.ended_meanwhile, sandbox.pk)

    async def _open_up(self, sandbox: Sandbox) -> None:
        if sandbox.agent_id and sandbox.network == "public":
            await self.engine_there().open_up(sandbox.pk)

    def _adopt(self, box: Box, sandbox: Sandbox) -> None:
        self._boxes[box.sandbox_id] = box
        self._output_mb[sandbox.pk] = sandbox.output_mb
        box.on_lost = partial(self._lost, box.sandbox_id)

    # --- made --------------------------------------------------------------------------------------------------------

    async def create(self, caller: Caller, new: NewSandbox) -> Sandbox:
        """A running sandbox. Whatever fails, nothing is left: no container, no live row."""
        engine, began_at = self.ready(), monotonic()
        with self.room.entered():
            if new.persistent and not self.can_stop:
                raise NoRuntime("This host cannot keep a sandbox's files over a stop. Leave `persistent` out.")
            profile = await db.read(profiles.resolve, caller, new, can_network=self.can_network)
            image_id = await engine.image_id(profile.image)
            sandbox = await self._row_of(caller, new, image_id)
            async with self.lock(sandbox.pk):
                how = await self._make(engine, sandbox)
            await self._open_up(sandbox)
        counters.created(how=how, seconds=monotonic() - began_at)
        self.pool.wake()
        return await self._row(sandbox.pk)

    async def _row_of(self, caller: Caller, new: NewSandbox, image_id: str) -> Sandbox:
        """A write that was begun is committed whoever waits for it: cut off here, its row is not left behind."""
        writing = asyncio.ensure_future(
            db.write(lifecycle.make, caller, new, image_id=image_id, can_network=self.can_network)
        )
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing])
            if writing.exception() is None:
                await self._undo(writing.result())
            raise

    async def _make(self, engine: Engine, sandbox: Sandbox) -> counters.How:
        """Its lock is held, so who deletes it meanwhile comes after: the row is ended then, and everything goes."""
        how: counters.How = "cold"
        try:
            box = await self.pool.hand_over(sandbox) if sandbox.pooled else None
            if box is not None:
                how = "pooled"
            else:
                if sandbox.pooled:
                    await db.write(lifecycle.starts_cold, sandbox)
                box = await engine.create(spec_of(sandbox))
            if not await db.write(lifecycle.started, sandbox, **facts_of(box)):
                raise await db.read(lifecycle.ended_meanwhile, sandbox.pk)
            self._adopt(box, sandbox)
        except BaseException:
            counters.created(how=how, seconds=0, outcome="failed")
            await asyncio.shield(self._undo(sandbox))
            raise
        return how

    async def _undo(self, sandbox: Sandbox) -> None:
        await db.write(lifecycle.end, sandbox, "crashed", deleted=True)
        try:
            await self._drop(sandbox.pk, "deleted")
        except SandboxError as error:  # the reconciler goes on with it
            log.warning("What was made of sandbox %s is still there: %s", sandbox.pk, error.detail)

    async def for_conversation(self, caller: Caller, conversation: str, new: NewSandbox) -> Sandbox:
        """The one that this conversation has; made when it has none. Two calls at once get the same."""
        whose = caller.agent_id or caller.member_id
        async with self.lock(f"{whose} {conversation}"):
            found = await db.read(lifecycle.of_conversation, caller, conversation)
            if found is not None:
                return found
            try:
                return await self.create(caller, replace(new, conversation=conversation))
            except IntegrityError:  # another process made it
                if found := await db.read(lifecycle.of_conversation, caller, conversation):
                    return found
                raise

    # --- stopped and ended -------------------------------------------------------------------------------------------

    async def end(self, sandbox: Sandbox, reason: str, *, actor: audit.Actor, deleted: bool = False) -> bool:
        """Row first: from here on nothing new starts in it. Then the container, which ends what runs."""
        ended = await self._end_row(sandbox, reason, actor=actor, deleted=deleted)
        await self.discard(sandbox.pk, reason)
        return ended

    async def discard(self, sandbox_id: str, reason: str) -> None:
        """What is left of one whose row has ended."""
        async with self.lock(sandbox_id):
            await self._drop(sandbox_id, reason)

    async def _end_row(self, sandbox: Sandbox, reason: str, *, actor: audit.Actor, deleted: bool = False) -> bool:
        because = STOPPED if self.stopping else ""
        ended = await db.write(lifecycle.end, sandbox, reason, actor=actor, deleted=deleted, because=because)
        if ended:
            counters.reaped(reason)
        return ended

    async def _end(self, sandbox: Sandbox, reason: str, *, actor: audit.Actor) -> None:
        await self._end_row(sandbox, reason, actor=actor)
        await self._drop(sandbox.pk, reason)

    async def act_on_time(self, *, divisor: float) -> None:
        """Ends and stops what is past its time. What is being started or was used a moment ago comes later."""
        for due in await db.read(overdue.due, can_stop=self.can_stop, divisor=divisor):
            just_used = monotonic() - self._used_at.get(due.sandbox_id, float("-inf")) < JUST_USED_S / divisor
            if self.is_at_work_on(due.sandbox_id) or (just_used and due.reason == "idle"):
                continue
            async with self.lock(due.sandbox_id):
                if not await db.write(overdue.act, due, can_stop=self.can_stop, divisor=divisor):
                    continue
                if due.becomes == "stopped":
                    await self._set_down(due.sandbox_id, due.reason)
                else:
                    counters.reaped(due.reason)
                    await self._drop(due.sandbox_id, due.reason)

    async def set_down(self, sandbox_id: str) -> None:
        """What is left of one whose row is stopped."""
        async with self.lock(sandbox_id):
            if (await self._row(sandbox_id)).status == "stopped":
                await self._set_down(sandbox_id, "crashed")

    async def _set_down(self, sandbox_id: str, reason: str) -> None:
        self._let_go(sandbox_id)
        await self.engine_there().set_down(sandbox_id, reason=reason)

    async def _drop(self, sandbox_id: str, reason: str) -> None:
        """Whoever still waits for something in it gets BoxGone with `reason`. What is in quarantine keeps its disk."""
        self._let_go(sandbox_id)
        if self.engine is None:
            return
        is_kept = self.engine.keeps(sandbox_id) and await db.read(quarantine.holds, sandbox_id)
        await (self.engine.set_down if is_kept else self.engine.erase)(sandbox_id, reason=reason)

    def _let_go(self, sandbox_id: str) -> Box | None:
        self._used_at.pop(sandbox_id, None)
        self._output_mb.pop(sandbox_id, None)
        self._protection.pop(sandbox_id, None)
        return self._boxes.pop(sandbox_id, None)

    def engine_there(self) -> Engine:
        assert self.engine is not None
        return self.engine

    # --- lost --------------------------------------------------------------------------------------------------------

    def _lost(self, sandbox_id: str, reason: str) -> None:
        if self._let_go(sandbox_id) is not None:
            self.losses.note(sandbox_id, reason)

    async def give_up(self, sandbox_id: str, reason: str) -> None:
        """It runs no more, as far as anybody can tell."""
        async with self.lock(sandbox_id):
            sandbox = await self._row(sandbox_id)
            if sandbox.status == "running" and not self.holds(sandbox_id) and not self.stopping:
                await self._lost_for_good(sandbox, reason)

    async def _lost_for_good(self, sandbox: Sandbox, reason: str) -> None:
        """A persistent one loses what ran in it, and not its files."""
        try:
            if sandbox.persistent and self.engine_there().keeps(sandbox.pk):
                await db.write(lifecycle.stop, sandbox, reason)
                counters.reaped(reason)
                await self._set_down(sandbox.pk, reason)
            else:
                await self._end(sandbox, reason, actor=audit.SYSTEM)
        except NoRuntime as error:  # the row is written; the reconciler goes on with the rest
            log.warning("What is left of sandbox %s is still there: %s", sandbox.pk, error.detail)

    # --- the console stops -------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """In good order: a persistent sandbox is stopped, every other one ends with the console."""
        if self.engine is None:
            return
        self.stopping = True
        await self.room.clear(within_s=10)
        await self.losses.settled(within_s=10)
        turns = asyncio.Semaphore(CLOSE_AT_ONCE)
        rows = await db.read(lambda: list(Sandbox.objects.live()))
        await asyncio.gather(self.pool.close(), *(self._close(sandbox, turns) for sandbox in rows))
        with suppress(SandboxError):  # Docker is away: the next start does it
            await reconciling.reconcile(self)  # what was being made when its maker was cut off
        await self.engine.close()

    async def _close(self, sandbox: Sandbox, turns: asyncio.Semaphore) -> None:
        async with turns:
            try:
                if not (sandbox.persistent and self.can_stop):
                    await self.end(sandbox, "host_lost", actor=audit.SYSTEM)
                    return
                async with self.lock(sandbox.pk):
                    if await db.write(lifecycle.stop, sandbox, "console_stopped"):
                        await self._set_down(sandbox.pk, "host_lost")
            except SandboxError as error:
                log.error("Sandbox %s could not be removed: %s", sandbox.pk, error.detail)
