"""The task that tells people: looks what is due when something changes or a second has passed, and sends it.

A task of its own with threads of its own: no slow place holds up an action, a page, or another place. Must never end by
itself: what fails is told in the log and tried again.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings

from console.workspaces import bus, db

from . import planning, sending

log = logging.getLogger("sandgate.notices")
EVERY_S, GATHER_S = 5.0, 1.0  # what comes within a second is told together
AT_ONCE = 8
TOPIC = "notices"  # something was written down
FORGET_EVERY_S = 3600


class Teller:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="notice")
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._forgotten_at = 0.0

    async def run(self) -> None:
        try:
            with bus.listening("pending", TOPIC) as bell:
                while True:
                    try:
                        await self.round()
                    except Exception:  # a boundary: the next round tries again
                        log.exception("A round of notices failed, next try in a moment.")
                    await asyncio.sleep(GATHER_S / settings.TIMER_DIVISOR)
                    await bell.wait_s(EVERY_S / settings.TIMER_DIVISOR)
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def round(self) -> None:
        for hook, said in await db.read(planning.due):
            await db.write(planning.write_down, hook, said)
        for delivery_id in await db.read(sending.due):
            if delivery_id not in self._sending and len(self._sending) < AT_ONCE:
                self._sending[delivery_id] = asyncio.create_task(self._send(delivery_id))
        loop = asyncio.get_running_loop()
        if loop.time() - self._forgotten_at > FORGET_EVERY_S:
            self._forgotten_at = loop.time()
            await db.write(planning.forget_old)

    async def sent(self) -> None:
        """Until all that was begun is over. For tests."""
        await asyncio.gather(*self._sending.values())

    async def _send(self, delivery_id: str) -> None:
        try:
            if (claimed := await db.write(sending.claim, delivery_id)) is None:
                return
            outcome = await asyncio.get_running_loop().run_in_executor(self._threads, sending.attempt, claimed)
            await db.write(sending.record, delivery_id, outcome)
        except Exception:  # a boundary: its claim runs out, and it is due again
            log.exception("Delivery %s failed, and is tried again.", delivery_id)
        finally:
            self._sending.pop(delivery_id, None)


async def run() -> None:
    await Teller().run()
