"""Rows and what Docker has, made to agree: at start, and every few seconds. Both ways.

A row whose sandbox is gone ends with the reason, or is stopped when its files are there; a container or a disk without
a live row goes, save the disk of one in quarantine. Must never judge while Docker is away, nor take for a stray what is
just being made: Docker is looked at first, since each container and each disk has its row before it is made.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from console.workspaces import audit, db

from . import counters, pooled, quarantine
from .engine import Found
from .errors import SandboxError
from .models import Sandbox

if TYPE_CHECKING:
    from .boxes import Boxes

STARTS_WITHIN = timedelta(seconds=30)  # once nobody is at work on it
log = logging.getLogger("sandgate.reconciling")


async def take_up(boxes: Boxes) -> None:
    """After a restart: every live row gets its channel back, waits stopped, or ends with the reason."""
    found = await _containers(boxes)
    await boxes.pool.take_up(found)
    for sandbox in await db.read(_live):
        if sandbox.status == "starting":
            await boxes.end(sandbox, "crashed", actor=audit.SYSTEM)
        elif sandbox.status == "running":
            await _take_up(boxes, sandbox.pk, found.get(sandbox.pk))
    await reconcile(boxes)


async def _take_up(boxes: Boxes, sandbox_id: str, container: Found | None) -> None:
    if container is None:
        await boxes.give_up(sandbox_id, "host_lost")
    else:
        await boxes.attach(sandbox_id)


async def reconcile(boxes: Boxes) -> None:
    containers, disks = await _containers(boxes), await boxes.engine_there().disks()
    known = {row.pk for row in await db.read(pooled.every)}  # before the others: a claim moves a row from here to there
    rows = {sandbox.pk: sandbox for sandbox in await db.read(_live)}
    strays = (containers.keys() | disks) - rows.keys() - known
    work = [_remove_stray(boxes, sandbox_id, containers.get(sandbox_id)) for sandbox_id in strays]
    work += [_agree(boxes, sandbox, containers.get(sandbox.pk)) for sandbox in rows.values()]
    for each in work:
        try:
            await each
        except SandboxError as error:  # one that cannot be helped now keeps none of the others from it
            log.error("A sandbox could not be put right, next try in a moment: %s", error.detail)


async def _remove_stray(boxes: Boxes, sandbox_id: str, container: Found | None) -> None:
    if boxes.is_at_work_on(sandbox_id) or boxes.holds(sandbox_id) or boxes.pool.holds(sandbox_id):
        return
    if await db.read(quarantine.holds, sandbox_id):
        if container is not None:
            await boxes.discard(sandbox_id, "halted")
        return
    log.warning("Removing what is left of %s: no live sandbox has it.", sandbox_id)
    counters.reaped("stray")
    await boxes.engine_there().erase(sandbox_id)


async def _agree(boxes: Boxes, sandbox: Sandbox, container: Found | None) -> None:
    if boxes.is_at_work_on(sandbox.pk):
        return
    if sandbox.status == "starting" and sandbox.created_at < timezone.now() - STARTS_WITHIN:
        await boxes.end(sandbox, "crashed", actor=audit.SYSTEM)  # whoever made it is gone
    elif sandbox.status == "stopped" and not boxes.engine_there().keeps(sandbox.pk):
        await boxes.end(sandbox, "host_lost", actor=audit.SYSTEM)  # its files went behind our back
    elif sandbox.status == "stopped" and container is not None:
        await boxes.set_down(sandbox.pk)
    elif sandbox.status == "running" and not boxes.holds(sandbox.pk):
        await _take_up(boxes, sandbox.pk, container)  # its connection was given up, or it is gone: Docker tells which


async def _containers(boxes: Boxes) -> dict[str, Found]:
    found = {item.sandbox_id: item for item in await boxes.engine_there().found()}
    boxes.docker_answered()
    return found


def _live() -> list[Sandbox]:
    return list(Sandbox.objects.live())
