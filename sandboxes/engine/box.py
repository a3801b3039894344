"""One sandbox that runs, as the rest of the product sees it.

Owns the calls into it: each takes a Pass and spends it before anything else; nothing here can be done without one,
save following, stopping and settling what a Pass has already started.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from sandboxes.errors import Busy, FileError
from sandboxes.runner import frames
from sandboxes.runner.files import named

from . import answers, running, searching, viewing
from .channel import Call, Channel, ChannelLost
from .link import Link
from .shapes import (
    Draft,
    EditRequest,
    Form,
    GlobRequest,
    GrepRequest,
    Listing,
    RunRequest,
    RunResult,
    Seen,
    Sink,
    StreamName,
    WriteRequest,
    WriteResult,
)
from .transfers import FileRead, Overdue, Upload, listing

if TYPE_CHECKING:
    from approvals.gate import Pass

OVERDUE_S = 60.0
"""Past its own timeout, a command's end must have been told; else the runner cannot be relied on."""
ANSWER_S = 30.0
EDIT_S = 120.0
STOP_S = 15.0
PIN_S = 90.0
"""A walk through all that lies in the sandbox may be before it."""
KEEP_BYTES = 4 << 20
REPLACED_BYTES = 100 << 20
OOM_AWAITED_S, OOM_AWAITED_MOST_S = 0.08, 1.0
"""The daemon's word of a kill for memory comes by another way, up to this much after the command's end."""
OOM_TAKES_MS = 100
"""Nothing fills a sandbox's memory in less; what fails quicker is not kept waiting."""
T = TypeVar("T")
Told = tuple[tuple[str, ...], dict[str, float]]
"""Patterns, and paths with the moment at which their exemption ends."""
SAME_END_S = 1.0
_STREAMS: dict[int, StreamName] = {frames.STDOUT: "stdout", frames.STDERR: "stderr"}


@dataclass
class Ask:
    """One request, and how far its output has come: enough to ask again."""

    message: dict[str, Any]
    attached: tuple[bytes, ...] = ()
    sink: Sink | None = None
    offsets: dict[int, int] = field(default_factory=lambda: dict.fromkeys(_STREAMS, 0))


class Box:
    address: str | None = None
    """In the sandbox network, nobody else's until the container is gone; None: it has no network."""

    def __init__(self, link: Link, sandbox_id: str, container_id: str, env: Mapping[str, str] | None = None) -> None:
        self.sandbox_id = sandbox_id
        self.container_id = container_id
        self.env = dict(env or {})  # the sandbox's own: it goes with each command, under what the command sets itself
        self._link = link
        self._oom_at = float("-inf")
        self._oomed = asyncio.Event()
        self._protection: Told | None = ((), {})

    @property
    def boot(self) -> str:
        """Random id of the runner's start: another one means that whatever ran before is gone."""
        return self._link.boot

    @property
    def on_lost(self) -> Callable[[str], None] | None:
        return self._link.on_lost

    @on_lost.setter
    def on_lost(self, call: Callable[[str], None] | None) -> None:
        self._link.on_lost = call

    async def run(self, pass_: "Pass", request: RunRequest, sink: Sink) -> RunResult:
        """Until the command ended and all its output is in `sink`. Asked twice with one Pass's id, it runs once."""
        pass_.spend(self.sandbox_id, "install" if request.as_root else "run")
        if not request.as_root:
            request = replace(request, env={**self.env, **request.env})
        message, script = running.request(pass_.action_id, request)
        await self._pin(pass_.action_id, request)
        ask = Ask(message, (script, request.stdin), sink)
        within_s = None if request.timeout_s is None else request.timeout_s + OVERDUE_S
        return await self._with_reason(await self._told(ask, answers.run_result, within_s=within_s))

    async def start(self, pass_: "Pass", request: RunRequest) -> None:
        """A command in the background: returns once its program runs, or raises why it does not. Asked twice with one
        Pass's id, it starts once. `follow` tells what it prints, and its end."""
        pass_.spend(self.sandbox_id, "run")
        request = replace(request, background=True, env={**self.env, **request.env})
        message, script = running.request(pass_.action_id, request)
        await self._pin(pass_.action_id, request)
        await self._told(Ask(message, (script, request.stdin)), answers.begun, within_s=ANSWER_S)

    async def _pin(self, action_id: str, request: RunRequest) -> None:
        if (script := request.script) is None:
            return
        ask = Ask({"op": "pin", "id": action_id, "path": script.path, "sha256": script.sha256})
        try:
            await self._told(ask, answers.pinned, within_s=PIN_S)
        except Overdue as error:  # nothing has been started
            raise Busy(
                f"{script.path} could not be bound to this run in {PIN_S:g} s, so it was not started."
            ) from error

    async def send(self, pass_: "Pass", command_id: str, data: bytes, *, end: bool) -> None:
        """To the stdin of a command in the background, then its end if `end`. Asked twice, it is sent once. Refusal:
        `command_ended`, `stdin_closed`, or `stdin_full` when the command does not read."""
        pass_.spend(self.sandbox_id, "stdin")
        message = {"op": "stdin", "id": pass_.action_id, "command": command_id, "end": end}
        await self._told(Ask(message, (data,)), answers.taken, within_s=ANSWER_S)

    async def write(self, pass_: "Pass", request: WriteRequest, content: AsyncIterator[bytes]) -> WriteResult:
        pass_.spend(self.sandbox_id, "write")
        return await self._link.guarded(Upload(self._link, pass_.action_id, request, content).run())

    async def unseal(self, pass_: "Pass", path: str) -> tuple[str, bool]:
        """Where the file is, links resolved, and whether it had been sealed. Commands may change it until the sandbox
        is started again; tools still may not."""
        pass_.spend(self.sandbox_id, "unseal")
        ask = Ask({"op": "unseal", "id": pass_.action_id, "path": path})
        return await self._told(ask, answers.unsealed, within_s=ANSWER_S)

    async def protect(self, *, more: Sequence[str], exempt: Mapping[str, float]) -> None:
        """From now on: names protected beside the built-in ones, and full paths that are not, each for so many seconds.
        No Pass: an admin's setting, which the runner holds no longer than it runs."""
        now = monotonic()
        asked = (tuple(more), {path: now + left_s for path, left_s in exempt.items()})
        if self._protection is None or not _is_same(asked, self._protection):
            message = {"op": "protect", "id": self.sandbox_id, "more": list(more), "exempt": dict(exempt)}
            await self._told(Ask(message), answers.done, within_s=ANSWER_S)
            self._protection = asked

    def forget_protection(self) -> None:
        """Its runner is older than this and may have been told something else."""
        self._protection = None

    async def read(
        self, pass_: "Pass", path: str, *, offset: int = 0, limit: int | None = None, fixed: bool = False
    ) -> FileRead:
        pass_.spend(self.sandbox_id, "read")
        return await self._link.guarded(FileRead.open(self._link, path, offset=offset, limit=limit, fixed=fixed))

    async def view(
        self, pass_: "Pass", path: str, *, offset: int | None = None, limit: int | None = None, form: Form = "text"
    ) -> dict[str, Any]:
        """A text file with numbers and tags, ready to be sent on: {path, version, line_count, from, to, newline:
        LF|CRLF|mixed|none, final_newline, bom, size, lines: [[number, tag, text]], cut: [number of a line shown cut;
        its tag is ""], truncated, next: the offset to go on from, or None}. `offset`: the first line, from 1; `limit`:
        lines, at most 2,000, and 50 KB. `form` hex or base64: {path, version, size, form, offset, data, truncated,
        next}, `offset` and `limit` being bytes. FileError: file_not_found (with `nearest`: names), is_a_directory (with
        `names`),
        not_utf8 (`offset`: of the byte), not_a_file, permission_denied_in_sandbox, bad_path."""
        pass_.spend(self.sandbox_id, "read")
        return await self._link.guarded(viewing.view(self._link, path, offset=offset, limit=limit, form=form))

    async def draft(self, request: EditRequest) -> Draft:
        """What the edit would do now. Changes nothing, so it takes no Pass: the gate's proposals are made with it.
        FileError as `edit`, and `too_large` for what nobody could be shown."""
        return await self._link.guarded(viewing.draft(self._link, request))

    async def edit(self, pass_: "Pass", request: EditRequest) -> WriteResult:
        """All edits or none; asked twice with one Pass's id, it is done once. The result has its `report`. FileError:
        stale_edit (the file is not what was read: `lines` and `version` as they are now), bad_edit (the edits
        themselves are wrong; with the same), not_utf8, hard_link, too_large, no_space, busy, and as `view`."""
        pass_.spend(self.sandbox_id, "edit")
        message = viewing.edit_message("edit", request) | {"id": pass_.action_id}
        return await self._told(Ask(message, (viewing.packed(request),)), answers.write_result, within_s=EDIT_S)

    async def copy_out(self, pass_: "Pass", path: str) -> FileRead:
        """As it is now, to be kept beyond this sandbox."""
        pass_.spend(self.sandbox_id, "publish")
        return await self._link.guarded(FileRead.open(self._link, path, fixed=True))

    async def entries(self, pass_: "Pass", path: str, *, depth: int) -> Listing:
        pass_.spend(self.sandbox_id, "list")
        return await self._link.guarded(listing(self._link, path, depth=depth))

    async def glob(self, pass_: "Pass", request: GlobRequest) -> dict[str, Any]:
        """Ready to be sent on: {paths, found, at_least, incomplete, truncated, next, ignored, left_out, unreadable}.
        Files and links, never directories, in the order of their names part by part; told from /work on, or absolute.
        `found`: of all, more than that if `at_least`; `incomplete`: not all was looked at; `next`: the offset to go on
        from, or None; `ignored`: what .gitignore left out, a directory counting once, and `left_out` the first of them;
        `unreadable`: files and directories that `agent` may not read. FileError: bad_pattern, file_not_found,
        not_a_directory, bad_path, permission_denied_in_sandbox."""
        pass_.spend(self.sandbox_id, "glob")
        return await self._link.guarded(searching.glob(self._link, request))

    async def grep(self, pass_: "Pass", request: GrepRequest) -> dict[str, Any]:
        """As `glob`, with {files_searched, binary, large_left_out} and instead of `paths`: {matches: [{path, line,
        column, text}]}, of mode `files` {paths}, of mode `count` {counts: [{path, count}]}. With context each match has
        `before` and `after`: [[line, text]]. `column` counts characters from 1; `text` has at most 400 bytes around the
        match, `…` where it is cut; `line` 0: in a line of more than 4 MB. `binary`: files that have a NUL, and are not
        shown; `large_left_out`: files of more than 64 MB were left out, for lines too long for the sandbox's memory.
        FileError: as `glob`, not_a_file, and no_ripgrep."""
        pass_.spend(self.sandbox_id, "grep")
        return await self._link.guarded(searching.grep(self._link, request))

    async def look(self, path: str, *, keep_bytes: int = KEEP_BYTES, most_bytes: int = REPLACED_BYTES) -> Seen | None:
        """What a write to `path` would replace; None when nothing is there. Changes nothing, so it takes no Pass: the
        gate's proposals are made with it. FileError when `agent` may not read it, it is no file, has more than
        `most_bytes`, or a link leads to where nothing is."""
        try:
            file = await self._link.guarded(FileRead.open(self._link, path))
        except FileError as error:
            if error.code != "file_not_found":
                raise
            if leads_to := error.more.get("leads_to"):
                why = f"{path} leads through a link to {named(leads_to)}, where nothing is. Name that path itself."
                raise FileError("bad_path", why, path=path) from error
            return None
        try:
            size, kept = await _seen(file, keep_bytes, most_bytes)
        finally:
            await file.close()
        assert file.sha256 is not None
        return Seen(file.path, size, file.mode, file.sha256, kept, names=file.names, is_sealed=file.is_sealed)

    async def has(self, path: str) -> bool:
        """Whether a file is there that `agent` may read. No Pass, as for `look`."""
        try:
            file = await self._link.guarded(FileRead.open(self._link, path, limit=0))
        except FileError:
            return False
        await file.close()
        return True

    async def resume(
        self, pass_: "Pass", sink: Sink, *, have: Mapping[StreamName, int] | None = None
    ) -> RunResult | WriteResult | None:
        """What became of an action that was started before: followed to its end, or its result, or None when the
        runner never heard of it. Output comes again from the offsets in `have` on (else from 0), as far as it is kept.
        """
        return await self._resumed(pass_.action_id, sink, have)

    async def follow(
        self, action_id: str, sink: Sink, *, have: Mapping[StreamName, int] | None = None
    ) -> RunResult | None:
        """A command that was started before, to its end: its output from the offsets in `have` on, as far as it is
        kept. None when the runner never heard of it. One follower at a time: a new one takes over."""
        result = await self._resumed(action_id, sink, have)
        return result if isinstance(result, RunResult) else None

    async def _resumed(
        self, action_id: str, sink: Sink, have: Mapping[StreamName, int] | None
    ) -> RunResult | WriteResult | None:
        ask = Ask({"op": "resume", "id": action_id}, (), sink)
        ask.offsets |= {flag: (have or {}).get(name, 0) for flag, name in _STREAMS.items()}
        result = await self._told(ask, answers.any_result, within_s=None)
        return await self._with_reason(result) if isinstance(result, RunResult) else result

    async def stop(self, action_id: str, number: int = signal.SIGTERM) -> int | None:
        """Signal `number`, 2 s, KILL, to the whole tree of a command, also of one that has ended. Answers when the
        tree is empty, with how many processes that ended; None when the runner knows nothing of it any more, or yet."""
        ask = Ask({"op": "stop", "id": action_id, "signal": number})
        return await self._told(ask, answers.killed, within_s=STOP_S)

    async def emptied(self, action_id: str) -> None:
        """Returns when nothing is left of a command's tree."""
        await self._told(Ask({"op": "empty", "id": action_id}), answers.killed, within_s=None)

    def settled(self, action_id: str) -> None:
        """The result is stored: the runner may let go of the output. Told once; lost, it only keeps it longer."""
        if (channel := self._link.now()) is not None:
            channel.send(frames.pack_message(channel.tag, frames.SETTLE, {"ids": [action_id]}))

    async def touch(self) -> None:
        """Whether it answers at all: asked for what it cannot know, it says so."""
        await self._told(Ask({"op": "resume", "id": self.sandbox_id}), answers.any_result, within_s=None)

    async def close(self) -> None:
        """Lets go; the sandbox and what runs in it go on."""
        await self._link.close()

    def end(self, reason: str) -> None:
        """We end it ourselves: whoever still waits gets BoxGone with that reason, `on_lost` is not called."""
        self._link.on_lost = None
        self._link.end(reason)

    def note_oom(self) -> None:
        """The kernel has just killed something in this sandbox for memory."""
        self._oom_at = asyncio.get_running_loop().time()
        self._oomed.set()
        self._oomed = asyncio.Event()

    async def _with_reason(self, result: RunResult) -> RunResult:
        """gVisor shows a command that was killed for memory as one that exited with 1 and said nothing."""
        if result.exit_code == 0 or result.duration_ms < OOM_TAKES_MS:
            return result
        loop = asyncio.get_running_loop()
        started_at = loop.time() - result.duration_ms / 1000 - OOM_AWAITED_S
        if self._oom_at < started_at:
            with suppress(TimeoutError):
                async with asyncio.timeout(_oom_awaited_s(result)):
                    await self._oomed.wait()
        return replace(result, reason="oom") if self._oom_at >= started_at else result

    async def _told(self, ask: Ask, read: Callable[[dict[str, Any]], T], *, within_s: float | None) -> T:
        """The answer, as `read` understands it. What it cannot understand is the end of this sandbox."""
        try:
            async with asyncio.timeout(within_s) as limit:
                return await self._link.guarded(self._until_told(ask, read))
        except TimeoutError as error:
            if not limit.expired():  # the sink's own
                raise
            raise Overdue(f"Sandbox {self.sandbox_id} did not answer for {ask.message['id']} in time.") from error

    async def _until_told(self, ask: Ask, read: Callable[[dict[str, Any]], T]) -> T:
        """Asks, and asks again by the same id whenever the channel broke, from where the sink is."""
        while True:
            channel = await self._link.ready()
            call = channel.call()
            message = ask.message | {_STREAMS[flag]: at for flag, at in ask.offsets.items()}
            try:
                channel.send(frames.pack_request(channel.tag, call.ref, message, *ask.attached))
                return read(await _collect(channel, call, ask))
            except ChannelLost:
                continue
            finally:
                channel.release(call)


def _oom_awaited_s(result: RunResult) -> float:
    """On a busy machine the word takes longer. Whoever said on stderr what went wrong is kept waiting for it least."""
    if result.stderr_bytes:
        return OOM_AWAITED_S
    return min(max(result.duration_ms / 2000, OOM_AWAITED_S), OOM_AWAITED_MOST_S)


async def _seen(file: FileRead, keep_bytes: int, most_bytes: int) -> tuple[int, bytes | None]:
    """How much there was, and the content if it is short. The size told at first is not believed: it may grow."""
    _check_size(file, file.size, most_bytes)
    size, content = 0, bytearray()
    async with aclosing(file.chunks()) as chunks:
        async for chunk in chunks:
            size += len(chunk)
            _check_size(file, size, most_bytes)
            if size <= keep_bytes:
                content += chunk
    return size, bytes(content) if size <= keep_bytes else None


def _check_size(file: FileRead, size: int, most_bytes: int) -> None:
    """All of it has to come here to be hashed, and somebody waits for that."""
    if size > most_bytes:
        raise FileError(
            "too_large",
            f"{file.path} has {size} bytes. A write that is reviewed replaces at most {most_bytes}: remove the "
            "file with a command first.",
            path=file.path,
        )


def _is_same(one: Told, other: Told) -> bool:
    (more, ends), (old_more, old_ends) = one, other
    if more != old_more or ends.keys() != old_ends.keys():
        return False
    return all(abs(until - old_ends[path]) < SAME_END_S for path, until in ends.items())


async def _collect(channel: Channel, call: Call, ask: Ask) -> dict[str, Any]:
    """Output into the sink, acknowledged once the sink has it, until the result."""
    while (frame := await call.next()).kind == frames.OUT:
        in_range = frame.flags in _STREAMS and ask.offsets[frame.flags] <= frame.offset <= answers.BIGGEST
        if ask.sink is None or not in_range:
            raise frames.BrokenFrame("output out of order")
        await ask.sink.put(_STREAMS[frame.flags], frame.offset, frame.payload)
        ask.offsets[frame.flags] = frame.offset + len(frame.payload)
        channel.ack(call, ask.offsets[frame.flags], frame.flags)
    if frame.kind != frames.RESULT:
        raise frames.BrokenFrame(f"kind {frame.kind} instead of a result")
    return frame.message()
