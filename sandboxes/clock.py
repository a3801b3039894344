"""What happens because time passed: proposals expire, sandboxes idle out, strays go. Reads before it writes: an idle
console must not hold the write lock."""

import asyncio
import logging
from time import monotonic

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from approvals import escalating, gate
from approvals.leftovers import Leftovers
from approvals.models import Action
from console.workspaces import db

from . import artifacts, halting, reconciling
from .boxes import Boxes
from .dispatch import Dispatcher
from .errors import NoRuntime, SandboxError

log = logging.getLogger("sandgate.clock")
RECONCILE_EVERY = 5  # ticks of a second
LEFTOVERS_EVERY, LEFTOVERS_FIRST = 600, 20
STUCK_AFTER_S = 60  # a tick that removes sandboxes may well take half of it


def something_is_due() -> bool:
    late = Q(status="pending", expires_at__lte=Now()) | Q(status="approved", start_by__lte=Now())
    return Action.objects.filter(late).exists()


class Clock:
    def __init__(self, boxes: Boxes, dispatcher: Dispatcher) -> None:
        self._boxes, self._dispatcher = boxes, dispatcher
        self._ticked_at = monotonic()
        self._leftovers = Leftovers()

    @property
    def is_ticking(self) -> bool:
        return monotonic() - self._ticked_at < STUCK_AFTER_S

    async def run(self) -> None:
        tick = 0
        while True:
            tick, self._ticked_at = tick + 1, monotonic()
            try:
                await self._actions()
                if tick % LEFTOVERS_EVERY == LEFTOVERS_FIRST and (removed := await self._leftovers.round()):
                    log.info("Removed %d kept contents that no action names.", removed)
                if tick % LEFTOVERS_EVERY == LEFTOVERS_FIRST and (removed := await artifacts.sweep()):
                    log.info("Removed %d artifacts that had expired or were never whole.", removed)
                await self._sandboxes(tick)
            except SandboxError as error:
                log.error("A round of the clock failed, next try in a moment: %s", error.detail)
            except Exception:  # a boundary: one odd container must not take every sandbox of the host down with it
                log.exception("A round of the clock failed, next try in a moment.")
            await asyncio.sleep(1)

    async def _actions(self) -> None:
        if await db.read(something_is_due):
            await db.write(gate.expire)
        if await db.read(gate.outdated):
            await db.write(gate.supersede_outdated)
        for action_id in await db.read(escalating.due):
            await db.write(escalating.escalate, action_id)

    async def _sandboxes(self, tick: int) -> None:
        if self._boxes.engine is None:
            if tick % RECONCILE_EVERY == 0:
                await self._try_again()
            return
        await self._boxes.act_on_time(divisor=settings.TIMER_DIVISOR)
        await halting.expire(self._boxes)
        if tick % RECONCILE_EVERY == 0:
            await reconciling.reconcile(self._boxes)

    async def _try_again(self) -> None:
        try:
            await self._boxes.open()
        except NoRuntime:
            return
        log.info("The sandbox runtime is there now.")
        await self._dispatcher.recover()
