"""Reads under way: let through by the gate, recorded, and answered to whoever asked, nobody else. Owned by the hub.

Must never outlive who asked by more than a piece, and never say that all came when it did not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from approvals import gate
from console.workspaces import db

from .boxes import Boxes
from .dispatch import fail, submit, succeed
from .engine import FileRead
from .errors import FileError, SandboxError
from .passage import Passage
from .toolsets import named, read
from .turns import Turn


@asynccontextmanager
async def _recorded(pass_: gate.Pass) -> AsyncIterator[None]:
    """Whatever ends it badly is written down."""
    try:
        yield
    except SandboxError as error:
        await db.write(fail, pass_, status="failed", code=error.code, detail=error.detail)
        raise
    except BaseException:
        await asyncio.shield(db.write(fail, pass_, status="failed", code="interrupted", detail="The read was cut."))
        raise


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
        await db.write(succeed, pass_, result)
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

    async def close(self) -> None:
        """After the sandboxes have ended: each has heard of that, and still has to write its end."""
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=5)
            for task in left:
                task.cancel()

    async def _let_through(self, proposal: gate.Proposal) -> gate.Pass:
        pass_ = await db.write(submit, proposal)
        assert isinstance(pass_, gate.Pass), "a read never waits"
        return pass_

    async def _send(self, pass_: gate.Pass, file: FileRead, passage: Passage) -> None:
        try:
            async with _recorded(pass_):
                result = await read.send(file, passage)
            await db.write(succeed, pass_, result)  # before its end is told: what was answered is recorded
            passage.end()
        except SandboxError as error:
            passage.end(error)
        finally:
            await file.close()
            passage.end(FileError("interrupted", f"Reading {file.path} was cut.", path=file.path))
