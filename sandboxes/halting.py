"""The host's part in a halt: what a halt has ended is cut off and taken down, within seconds. On the hub's loop.

Owns that loop. The rows say what is to be done, so that a host which dies half-way goes on where it was. Must never
wait for one sandbox before it has begun with the next.
"""

import asyncio
import logging
from time import monotonic

from console.workspaces import bus, db

from . import quarantine
from .boxes import Boxes
from .errors import SandboxError

LOOK_EVERY_S = 1.0
log = logging.getLogger("sandgate.halting")


async def run(boxes: Boxes) -> None:
    with bus.listening("halted") as bell:
        while True:
            try:
                await enforce(boxes)
            except SandboxError as error:
                log.error("A halt could not be carried out yet, next try in a moment: %s", error.detail)
            except Exception:  # a boundary: the next round must come, whatever this one met
                log.exception("A halt could not be carried out yet, next try in a moment.")
            await bell.wait_s(LOOK_EVERY_S)


async def enforce(boxes: Boxes) -> None:
    """Everything that a halt has ended is down when this returns, or an error says what is not. Without Docker nobody
    can; it is done when that is back."""
    if boxes.engine is None or not (found := await db.read(quarantine.running)):
        return
    engine = boxes.engine
    began_at = monotonic()
    await engine.cut_off(found, reason="halted")
    dead_s = monotonic() - began_at
    ends = await asyncio.gather(*(_take_down(boxes, sandbox_id) for sandbox_id in found), return_exceptions=True)
    faults = [each for each in ends if isinstance(each, BaseException)]
    took_s = monotonic() - began_at
    down = f"{len(found) - len(faults)} of {len(found)}"
    log.warning("Halted: all is dead after %.1f s, %s sandboxes are down after %.1f s.", dead_s, down, took_s)
    if faults:
        raise faults[0]


async def _take_down(boxes: Boxes, sandbox_id: str) -> None:
    await boxes.discard(sandbox_id, "halted")
    await db.write(quarantine.down, sandbox_id, is_kept=boxes.engine_there().keeps(sandbox_id))


async def expire(boxes: Boxes) -> None:
    """Files whose quarantine is over go, those that are being read a moment later. What fails here is a stray from
    then on."""
    for sandbox_id in await db.read(quarantine.due):
        if not boxes.is_at_work_on(sandbox_id):
            await db.write(quarantine.end, sandbox_id)
            await boxes.discard(sandbox_id, "halted")
