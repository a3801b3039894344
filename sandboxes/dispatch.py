"""Executions: the only code that shows the engine a Pass. Owned by the hub; requests never run anything.

What was approved is taken from the table, woken by the bus. What was running when the server died is asked for by its
id, so that it runs at most once and its result is not lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from approvals import gate
from approvals.models import Action
from console.workspaces import bus, db

from . import lifecycle, reconciling
from .boxes import STOPPED, Boxes
from .engine import Box, Overdue
from .errors import BoxGone, FileError, SandboxError
from .models import Command
from .outputs import Outputs
from .toolsets import named
from .turns import Turn

log = logging.getLogger("sandgate.dispatch")
COMMAND_FIELDS = ("exit_code", "timed_out", "stdout_bytes", "stderr_bytes", "duration_ms")


# In one transaction each, for db.write: the gate's row and ours are both there, or neither.


@transaction.atomic
def submit(proposal: gate.Proposal) -> gate.Wait | gate.Pass:
    answer = gate.submit(proposal)
    lifecycle.touch(proposal.sandbox_id)
    if isinstance(answer, gate.Pass):
        _record_command(answer)
    return answer


@transaction.atomic
def begin(action_id: str) -> gate.Pass | None:
    pass_ = gate.start(action_id)
    if pass_ is not None:
        lifecycle.touch(pass_.sandbox_id)
        _record_command(pass_)
    return pass_


def _record_command(pass_: gate.Pass) -> None:
    if pass_.tool == "run":
        Command.objects.create(sandbox_id=pass_.sandbox_id, action_id=pass_.action_id)


@transaction.atomic
def succeed(pass_: gate.Pass, result: Mapping[str, Any]) -> bool:
    if pass_.tool == "run":
        _end_command(
            pass_,
            status="timed_out" if result["timed_out"] else "exited",
            **{name: result[name] for name in COMMAND_FIELDS},
        )
    lifecycle.touch(pass_.sandbox_id)
    return gate.finish(pass_.action_id, status="succeeded", result=result)


@transaction.atomic
def fail(pass_: gate.Pass, *, status: str, code: str, detail: str, began: bool = True) -> bool:
    """`began` is False when the sandbox refused it before anything ran: then there was no command."""
    if pass_.tool == "run" and began:
        _end_command(pass_, status="lost")
    elif pass_.tool == "run":
        Command.objects.filter(action_id=pass_.action_id).delete()
    return gate.finish(pass_.action_id, status=status, error={"code": code, "detail": detail})


def _end_command(pass_: gate.Pass, **fields: Any) -> None:
    Command.objects.filter(action_id=pass_.action_id, ended_at=None).update(ended_at=timezone.now(), **fields)


def approved() -> list[tuple[str, str]]:
    return list(Action.objects.filter(status="approved").order_by("decided_at").values_list("pk", "sandbox_id"))


def interrupted() -> list[tuple[str, str]]:
    return list(Action.objects.filter(status="running").values_list("pk", "sandbox_id"))


class Dispatcher:
    """Takes approved actions, and runs what it has a Pass for."""

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    async def run(self) -> None:
        with bus.listening("approved") as bell:
            while True:
                for action_id, sandbox_id in await db.read(approved):
                    if action_id not in self._tasks:
                        self._follow(action_id, self._start(action_id, sandbox_id))
                await bell.wait_s(1)

    async def submit(self, proposal: gate.Proposal) -> gate.Wait | gate.Pass:
        """On the hub's loop, for a request. A Pass is followed from here on, whether or not the request lives."""
        answer = await db.write(submit, proposal)
        if isinstance(answer, gate.Pass) and answer.tool != "read":
            self._follow(answer.action_id, self.execute(answer))
        return answer

    async def read(self, proposal: gate.Proposal, turn: Turn) -> tuple[str, bytearray, dict[str, Any]]:
        """A read is let through at once and answered here: action id, content, what it was."""
        pass_ = await db.write(submit, proposal)
        assert isinstance(pass_, gate.Pass)
        try:
            content, result = await named("read").execute(pass_, await self._boxes.ready_box(pass_.sandbox_id), turn)
        except SandboxError as error:
            await db.write(fail, pass_, status="failed", code=error.code, detail=error.detail)
            raise
        except BaseException:
            await asyncio.shield(db.write(fail, pass_, status="failed", code="interrupted", detail="The read was cut."))
            raise
        await db.write(succeed, pass_, result)
        return pass_.action_id, content, result

    async def recover(self) -> None:
        """After a restart, before anything new starts: sandboxes back, then what was running in them."""
        await reconciling.take_up(self._boxes)
        for action_id, sandbox_id in await db.read(interrupted):
            pass_ = await db.read(gate.again, action_id)
            if pass_ is None:
                continue
            if self._boxes.holds(sandbox_id):
                self._follow(action_id, self.execute(pass_, resume=True))
            else:
                why = f"It was running in {sandbox_id} when that sandbox was lost, and its end is not known."
                await db.write(fail, pass_, status="unknown", code="sandbox_gone", detail=why)

    async def close(self) -> None:
        """After the sandboxes have ended: each execution has heard of that, and still has to write its end."""
        if self._tasks:
            _, left = await asyncio.wait(self._tasks.values(), timeout=5)
            for task in left:
                task.cancel()

    def _follow(self, action_id: str, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=action_id)
        self._tasks[action_id] = task  # the reference also keeps the task alive
        task.add_done_callback(partial(self._done, action_id))

    def _done(self, action_id: str, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(action_id, None)
        if not task.cancelled() and (error := task.exception()):
            log.error("Following action %s failed.", action_id, exc_info=error)

    async def _start(self, action_id: str, sandbox_id: str) -> None:
        try:
            box = await self._boxes.ready_box(sandbox_id)
        except SandboxError as error:  # it stays approved, and is tried again until its time is over
            log.warning("Approved action %s waits for its sandbox: %s", action_id, error.detail)
            return
        if await self._went_stale(action_id, box):
            return
        if pass_ := await db.write(begin, action_id):
            await self.execute(pass_)

    async def _went_stale(self, action_id: str, box: Box) -> bool:
        """Whether this cannot start now: superseded when a file is not what was seen, tried again when out of reach."""
        action = await db.read(Action.objects.get, pk=action_id)
        for path, base in action.bases.items():
            try:
                now = await _hash_of(box, path)
            except SandboxError:
                return True
            if now != base:
                why = f"{path} is no longer the version this write was made for. Nothing was written."
                await db.write(gate.supersede, action, why, code="stale_edit")
                return True
        return False

    async def execute(self, pass_: gate.Pass, *, resume: bool = False) -> None:
        """Runs it and writes its end, whatever that is. Without a Pass there is no way in here."""
        tool = named(pass_.tool)
        try:
            box = await self._boxes.ready_box(pass_.sandbox_id)
            outputs = Outputs(pass_.action_id)
            ended = await box.resume(pass_, outputs, have=outputs.sizes) if resume else None
            # The runner never heard of it: it was committed as running and the server died before sending. It is the
            # same runner (its boot id says so) and it runs an id once, so sending now cannot run it twice.
            result = tool.result(ended, outputs) if ended else await tool.execute(pass_, box, outputs)
        except SandboxError as error:
            await self._end_badly(pass_, error)
        except Exception:
            log.exception("Action %s could not be followed to its end.", pass_.action_id)
            detail = "The console could not follow this to its end. It may have run."
            await db.write(fail, pass_, status="unknown", code="lost", detail=detail)
        else:
            await db.write(succeed, pass_, result)
            box.settled(pass_.action_id)  # only now: until it is stored, the runner's copy is the only one

    async def _end_badly(self, pass_: gate.Pass, error: SandboxError) -> None:
        gone, silent = isinstance(error, BoxGone), isinstance(error, Overdue)
        detail = STOPPED if gone and self._boxes.stopping else error.detail
        status = "unknown" if silent else "failed"
        await db.write(fail, pass_, status=status, code=error.code, detail=detail, began=gone or silent)


async def _hash_of(box: Box, path: str) -> str | None:
    """None when nothing is there; something that is no hash when what is there is no file, or may not be read."""
    try:
        seen = await box.look(path)
    except FileError as error:
        return error.code
    return seen.sha256 if seen else None
