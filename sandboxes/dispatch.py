"""Executions: the only code that shows the engine a Pass. Owned by the hub; requests never run anything.

What was approved is taken from the table, woken by the bus. What was running when the server died is asked for by its
id, so that it runs at most once and its result is not lost.
"""

from __future__ import annotations

import asyncio
import logging
import os
import posixpath
import signal
from collections.abc import Coroutine, Mapping
from functools import partial
from time import monotonic
from types import ModuleType
from typing import Any

from django.db import transaction

from approvals import again, gate, payloads, told
from approvals.models import Action
from approvals.plans import order
from console.workspaces import bus, db
from console.workspaces.errors import SandgateError

from . import (
    commands,
    counters,
    drafting,
    ends,
    lifecycle,
    reconciling,
    script_files,
)
from .begun import Begun
from .boxes import STOPPED, Boxes
from .engine import Box, Overdue
from .errors import BoxGone, FileError, SandboxError, is_halt
from .following import Following
from .models import Command
from .outputs import Outputs
from .passage import Passage
from .toolsets import COMMANDS, is_by_host, named, unseal
from .toolsets.two import edit

log = logging.getLogger("sandgate.dispatch")
LINKED = "bad_path"
STOPPING = "The server was stopping. Nothing ran."
STOP_TRIES, STOP_AGAIN_S, STOP_TOLD_S = 50, 0.1, 5.0


# In one transaction each, for db.write: the gate's row and ours are both there, or neither.


@transaction.atomic
def submit(proposal: gate.Proposal) -> gate.Wait | Begun:
    answer = gate.submit(proposal)
    lifecycle.touch(proposal.sandbox_id)
    return _begun(answer) if isinstance(answer, gate.Pass) else answer


def _begun(pass_: gate.Pass) -> Begun:
    return Begun(pass_, commands.record(pass_) if pass_.tool in COMMANDS else None)


@transaction.atomic
def begin(action_id: str) -> gate.Pass | None:
    pass_ = gate.start(action_id)
    if pass_ is not None:
        lifecycle.touch(pass_.sandbox_id)
        _begun(pass_)
    return pass_


def approved() -> list[tuple[str, str]]:
    found = Action.objects.filter(order.in_turn(), status="approved")
    return list(found.order_by("decided_at").values_list("pk", "sandbox_id"))


def interrupted() -> list[tuple[str, str]]:
    return list(Action.objects.filter(status="running").values_list("pk", "sandbox_id"))


class Dispatcher:
    """Takes approved actions, and runs what it has a Pass for."""

    def __init__(self, boxes: Boxes) -> None:
        self._boxes, self._loop = boxes, asyncio.get_running_loop()
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._following = Following(boxes)

    async def run(self) -> None:
        with bus.listening("approved") as bell:
            while True:
                for action_id, sandbox_id in await db.read(approved):
                    if action_id not in self._tasks:
                        self._follow(action_id, self._start(action_id, sandbox_id))
                await bell.wait_s(1)

    async def submit(self, proposal: gate.Proposal, content: Passage | None = None) -> gate.Wait | Begun:
        """For a request, on its own loop. A Pass is followed from its commit on, whether or not the request lives.
        `content` comes from that request."""
        return await db.write(self._submit, proposal, content)

    def _submit(self, proposal: gate.Proposal, content: Passage | None) -> gate.Wait | Begun:
        try:
            answer = submit(proposal)
        except SandgateError:
            raise
        except Exception:
            log.exception("A proposal for sandbox %s failed.", proposal.sandbox_id)  # here: its request may have left
            raise
        if isinstance(answer, Begun):
            try:
                self._loop.call_soon_threadsafe(self._begin, answer, content)  # from here: the request may have left
            except RuntimeError:  # the hub's loop closed since the proposal came
                ends.fail(answer.pass_, status="failed", code="interrupted", detail=STOPPING, began=False)
        return answer

    def _begin(self, begun: Begun, content: Passage | None) -> None:
        pass_ = begun.pass_
        self._follow(pass_.action_id, self.execute(pass_, content=content, command=begun.command))

    async def recover(self) -> None:
        """After a restart, before anything new starts: sandboxes back, then what was running in them."""
        await reconciling.take_up(self._boxes)
        for action_id, sandbox_id in await db.read(interrupted):
            pass_ = await db.read(gate.again, action_id)
            if pass_ is None:
                continue
            if _is_answered_at_once(pass_):
                why = "The server stopped meanwhile."
                await db.write(ends.fail, pass_, status="failed", code="interrupted", detail=why)
                continue
            if self._boxes.holds(sandbox_id):
                self._follow(action_id, self.execute(pass_, resume=True))
            else:
                await db.write(ends.lose, pass_)
        await self._following.take_up()

    async def stop(self, command: Command, number: int) -> int:
        """Signal `number`, then KILL, to the whole tree; returns how many processes that ended, when it is empty and
        the row says so. No Pass: it ends what one began."""
        box, killed = self._boxes.box(command.sandbox_id), None
        for _ in range(STOP_TRIES):  # its row is there a moment before the runner hears of it
            killed = await box.stop(command.action_id, number)
            if killed is not None or not await db.read(commands.runs, command.pk):
                break
            await asyncio.sleep(STOP_AGAIN_S)
        if task := self._tasks.get(command.action_id):
            await asyncio.wait([task], timeout=STOP_TOLD_S)
        await self._following.told(command.action_id, within_s=STOP_TOLD_S)
        return killed or 0

    async def close(self) -> None:
        """After the sandboxes have ended: each execution has heard of that, and still has to write its end."""
        if self._tasks:
            _, left = await asyncio.wait(self._tasks.values(), timeout=5)
            for task in left:
                task.cancel()
        await self._following.close()

    def _follow(self, action_id: str, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=action_id)
        self._tasks[action_id] = task  # the reference also keeps the task alive
        task.add_done_callback(partial(self._done, action_id))

    def follows(self, action_id: str) -> bool:
        """From any thread. Whoever waits and hears that it is so is rung when it is so no more."""
        return action_id in self._tasks

    def _done(self, action_id: str, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(action_id, None)
        bus.announce(f"action:{action_id}")
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
        if action.tool == unseal.NAME:
            return await self._is_elsewhere(action, box)
        for path, base in action.bases.items():
            if path == edit.BECOMES:
                continue
            try:
                now = await _hash_of(box, path)
            except SandboxError:
                return True
            if now != base:
                await self._give_back(action, box, path, is_linked=now == LINKED)
                return True
        return await script_files.went_stale(action, box)

    async def _is_elsewhere(self, action: Action, box: Box) -> bool:
        path = action.arguments["path"]
        try:
            if not await _leads_elsewhere(box, path):
                return False
        except SandboxError:  # out of reach
            return True
        why = f"Nothing was unsealed. {path} is not the file any more that this was asked for."
        await db.write(gate.supersede, action, why)
        return True

    async def _give_back(self, action: Action, box: Box, path: str, *, is_linked: bool) -> None:
        """To its reviewers, when it is an edit that still holds; else to its agent, with the file as it is now."""
        why = f"Nothing was written. {path} is no longer the version that this {action.tool} was made for."
        why += " It leads through a link now." if is_linked else ""
        if action.tool != edit.NAME or action.plan_id:  # carried over, it would come after those behind it
            await db.write(gate.supersede, action, why, code="stale_edit")
            return
        try:
            found = await drafting.draft(box, action.arguments)
            if found.path != posixpath.normpath(path):
                raise FileError(
                    "stale_edit", f"{why} It leads through a link to {told.named(found.path)} now.", path=path
                )
            await asyncio.to_thread(_keep, found.old, found.new)
            moved = f"Nothing was written. {path} had changed elsewhere than in these lines."
            bases, replaced = drafting.bases_of(action.arguments, found), drafting.shown(found)
            await db.write(again.propose_again, action, bases=bases, replaced=replaced, why=moved)
        except FileError as error:
            await db.write(gate.supersede, action, error.detail, code="stale_edit", **error.more)

    async def execute(
        self,
        pass_: gate.Pass,
        *,
        resume: bool = False,
        content: Passage | None = None,
        command: Command | None = None,
    ) -> None:
        """Runs it and writes its end, whatever that is. Without a Pass there is no way in here."""
        tool, more = named(pass_.tool, pass_.tool_version), [content] if content else []
        if is_by_host(pass_.tool, pass_.tool_version):
            return await self._answer(pass_, tool)
        began_at = monotonic()
        try:
            box = await self._boxes.ready_box(pass_.sandbox_id)
            outputs = Outputs(pass_.action_id, self._boxes.output_mb(pass_.sandbox_id))
            if policy := self._boxes.protection(pass_.sandbox_id):
                await box.protect(more=policy.more, exempt=policy.left_s)
            goes_on = resume and not _is_told_at_once(pass_)
            ended = await box.resume(pass_, outputs, have=outputs.sizes) if goes_on else None
            # The runner never heard of it: it was committed as running and the server died before sending. It is the
            # same runner (its boot id says so) and it runs an id once, so sending now cannot run it twice.
            result = tool.result(ended, outputs) if ended else await tool.execute(pass_, box, outputs, *more)
        except SandboxError as error:
            await self._end_badly(pass_, error)
        except Exception as error:
            log.exception("Action %s could not be followed to its end.", pass_.action_id)
            await self._cut_off(pass_, error)
        else:
            if await ends.told(pass_, result, command) or not result.get("background"):
                self._let_go(box, pass_, result)
            else:
                await self._kill(pass_)
            if pass_.tool in COMMANDS and not result.get("background"):
                counters.command_ended(result["status"])
                if not resume:
                    counters.command_took(monotonic() - began_at, own_seconds=result["duration_ms"] / 1000)
        finally:
            if content:
                content.leave()

    async def _answer(self, pass_: gate.Pass, tool: ModuleType) -> None:
        """What the host knows by itself, or does to what runs."""
        try:
            result = await tool.execute(pass_, self)
        except SandgateError as error:
            began = isinstance(error, BoxGone | Overdue)
            await ends.told_failure(
                pass_, status="failed", code=error.code, detail=error.detail, began=began, fields=error.fields
            )
        except Exception as error:
            log.exception("Action %s could not be followed to its end.", pass_.action_id)
            await self._cut_off(pass_, error)
        else:
            await ends.told(pass_, result)

    def _let_go(self, box: Box, pass_: gate.Pass, result: Mapping[str, Any]) -> None:
        """Only now that the result is stored: until then the runner's copy is the only one."""
        if result.get("background"):
            self._following.follow(pass_.action_id, pass_.sandbox_id)
            return
        box.settled(pass_.action_id)
        if result.get("left_running"):
            self._following.watch(pass_.action_id, pass_.sandbox_id)

    async def _cut_off(self, pass_: gate.Pass, error: Exception) -> None:
        """As when this machine's disk is full."""
        why = f" ({os.strerror(error.errno)})" if isinstance(error, OSError) and error.errno else ""
        detail = f"The console could not follow this to its end{why}"
        if await self._kill(pass_):
            detail += ", so it was stopped"
        await ends.told_failure(
            pass_, status="unknown", code="lost", detail=f"{detail}. It may have run, or a part of it."
        )

    async def _kill(self, pass_: gate.Pass) -> bool:
        """A command that nobody follows must not go on unseen. False where there is none, or out of reach."""
        if pass_.tool not in COMMANDS or not self._boxes.holds(pass_.sandbox_id):
            return False
        try:
            await self._boxes.box(pass_.sandbox_id).stop(pass_.action_id, signal.SIGKILL)
        except SandboxError:
            return False
        return True

    async def _end_badly(self, pass_: gate.Pass, error: SandboxError) -> None:
        gone, silent = isinstance(error, BoxGone), isinstance(error, Overdue)
        detail = STOPPED if gone and self._boxes.stopping else error.detail
        status = "unknown" if silent else "failed"
        code = "halted" if is_halt(error) else error.code
        await ends.told_failure(
            pass_, status=status, code=code, detail=detail, began=gone or silent, fields=error.fields
        )
        if pass_.tool in COMMANDS and (gone or silent):
            counters.command_ended("lost")


def _keep(*contents: bytes) -> None:
    for content in contents:
        payloads.keep(payloads.hold(content))


def _is_answered_at_once(pass_: gate.Pass) -> bool:
    """To a request that is gone with its server. What changes nothing is more easily asked for again."""
    return named(pass_.tool, pass_.tool_version).KIND == "read" and pass_.tool != "publish"


def _is_told_at_once(pass_: gate.Pass) -> bool:
    """Asked for again by its id it answers as before, so there is nothing to go on from."""
    return pass_.tool == "stdin" or bool(pass_.arguments.get("background"))


async def _leads_elsewhere(box: Box, path: str) -> bool:
    """Through a link, or to no file."""
    try:
        seen = await box.look(path, keep_bytes=0)
    except FileError:
        return True
    return seen is None or seen.path != posixpath.normpath(path)


async def _hash_of(box: Box, path: str) -> str | None:
    """None when nothing is there; something that is no hash when what is there is no file, or may not be read."""
    try:
        seen = await box.look(path)
    except FileError as error:
        return error.code
    if seen and seen.path != posixpath.normpath(path):
        return LINKED
    return seen.sha256 if seen else None
