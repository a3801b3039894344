"""Reads under way: let through by the gate, recorded, and answered to whoever asked, nobody else. Owned by the hub.

Must never outlive who asked by more than a piece, and never say that all came when it did not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from approvals import gate
from console.workspaces import db
from console.workspaces.errors import Halted

from . import ends
from .begun import Begun
from .boxes import Boxes
from .dispatch import submit
from .engine import FileRead
from .errors import Busy, FileError, NotStored, SandboxError, is_halt
from .passage import Passage
from .toolsets import named, read
from .turns import Turn

log = logging.getLogger("sandgate.reads")
ARCHIVE_S = 1800
TAKEN_WITHIN_S = 60
"""How long a piece of an archive waits for whoever asked: who left before its first byte says so to nobody."""


@asynccontextmanager
async def _recorded(pass_: gate.Pass) -> AsyncIterator[None]:
    """Whatever ends it badly is written down."""
    try:
        yield
    except SandboxError as error:
        code = "halted" if is_halt(error) else error.code
        await ends.told_failure(pass_, status="failed", code=code, detail=error.detail)
        if is_halt(error):
            raise Halted(error.detail, **error.fields) from error
        raise
    except BaseException:
        await asyncio.shield(ends.told_failure(pass_, status="failed", code="interrupted", detail="The read was cut."))
        raise


async def _stored(pass_: gate.Pass, result: Mapping[str, Any]) -> None:
    if not await ends.told(pass_, result):
        raise NotStored(f"That {pass_.action_id} read this could not be stored by this server. See its log.")


class Reads:
    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        self._tasks: set[asyncio.Task[None]] = set()

    async def whole(self, proposal: gate.Proposal, turn: Turn) -> tuple[Any, dict[str, Any]]:
        """What was asked for, in memory, and what the row keeps of it."""
        pass_ = await self._let_through(proposal)
        async with _recorded(pass_):
            found, result = await named(pass_.tool, pass_.tool_version).execute(
                pass_, await self._boxes.ready_box(pass_.sandbox_id), turn
            )
        await _stored(pass_, result)
        return found, result

    async def stream(self, proposal: gate.Proposal, passage: Passage) -> FileRead:
        """The file, open; its content goes into `passage` as fast as it is taken there."""
        pass_ = await self._let_through(proposal)
        async with _recorded(pass_):
            file = await read.open_part(pass_, await self._boxes.ready_box(pass_.sandbox_id))
        task = asyncio.get_running_loop().create_task(self._send(pass_, file, passage), name=pass_.action_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return file

    async def archive(self, sandbox_id: str, passage: Passage) -> None:
        """`/work` of one in quarantine, as a tar, through `passage`. One at a time, and not for ever: meanwhile nobody
        else can do anything to it."""
        if self._boxes.is_at_work_on(sandbox_id):
            raise Busy(f"The files of sandbox {sandbox_id} are being read already. Try again in a moment.")
        task = asyncio.get_running_loop().create_task(self._pack(sandbox_id, passage), name=f"archive {sandbox_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pack(self, sandbox_id: str, passage: Passage) -> None:
        try:
            packing = aclosing(self._boxes.ready().archive(sandbox_id))
            async with self._boxes.lock(sandbox_id), asyncio.timeout(ARCHIVE_S), packing as packed:
                async for piece in packed:
                    async with asyncio.timeout(TAKEN_WITHIN_S):
                        is_taken = await passage.put(piece)
                    if not is_taken:
                        break
            passage.end()
        except SandboxError as error:
            passage.end(error)
        except TimeoutError:
            log.warning("Nobody took the files of sandbox %s in time; reading them was cut.", sandbox_id)
        finally:  # cut short it is never taken for whole
            passage.end(FileError("interrupted", f"Reading the files of sandbox {sandbox_id} was cut.", path="/work"))

    async def close(self) -> None:
        """After the sandboxes have ended: each has heard of that, and still has to write its end."""
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=5)
            for task in left:
                task.cancel()

    async def _let_through(self, proposal: gate.Proposal) -> gate.Pass:
        answer = await db.write(submit, proposal)
        assert isinstance(answer, Begun), "a read never waits"
        return answer.pass_

    async def _send(self, pass_: gate.Pass, file: FileRead, passage: Passage) -> None:
        try:
            async with _recorded(pass_):
                result = await read.send(file, passage)
            await _stored(pass_, result)  # before its end is told: what was answered is recorded
            passage.end()
        except SandboxError as error:
            passage.end(error)
        finally:
            await file.close()
            passage.end(FileError("interrupted", f"Reading {file.path} was cut.", path=file.path))
