"""Commands: run one, in the foreground or behind it, list them, read what one printed so far, feed it, stop it."""

import asyncio
from signal import Signals
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router

from approvals.models import Action
from console.workspaces import bus, db, permissions
from console.workspaces.errors import Invalid
from console.workspaces.keys import Caller
from sandboxes import acts, commands, lifecycle, outputs
from sandboxes.errors import CommandEnded, NoStdin
from sandboxes.models import Command
from sandboxes.paging import Page, page

from . import answers, base64s, gated, schemas
from .door import SEES, caller, door
from .waits import Wait, waiting

router = Router(tags=["Commands"])
RUNS = (permissions.SANDBOXES_RUN,)
PAGE_BYTES = 5 << 20
A_CHARACTER_BYTES = 4
Offset = Annotated[int, Query(ge=0, le=1 << 60, description="Bytes to leave out.")]
NUMBERS = ("exit_code", "timed_out", "duration_ms", "stdout_bytes", "stderr_bytes")


@door(
    router, "POST", "/sandboxes/{sandbox_id}/commands", may=RUNS, gate="approval",
    answers={200: schemas.Executed, 202: schemas.Command}, fails=gated.REFUSALS,
)  # fmt: skip
async def run_command(request: HttpRequest, sandbox_id: str, body: schemas.NewCommand) -> HttpResponseBase:
    """Run a command and wait for its end. One that exits with a failure is an answer, not an error.

    With `background` the answer comes once it runs, with its address in `Location`. What a command in the foreground
    leaves running does not hold the call open: it is named in `left_running`, can be stopped by that id, and what it
    prints from then on is not kept.

    By an agent's key it may wait for a reviewer. After 100 s in all it is answered 409 `pending_approval`; the same
    call again joins what waits.
    """
    named = body.model_dump(exclude={"background", "reason", "timeout"})
    arguments = {name: value for name, value in named.items() if value is not None}
    arguments |= {"background": True} if body.background else {}
    arguments |= {"timeout_s": body.timeout} if body.timeout is not None else {}
    ended = await gated.call(request, sandbox_id, "run", arguments, reason=body.reason)
    if body.background:
        return await _begun(ended.action)
    return await _executed(ended)


@door(
    router, "POST", "/sandboxes/{sandbox_id}/install", may=RUNS, gate="approval",
    answers={200: schemas.Executed}, fails=gated.REFUSALS,
)  # fmt: skip
async def install_packages(request: HttpRequest, sandbox_id: str, body: schemas.NewInstall) -> HttpResponseBase:
    """Install Debian packages, in a sandbox with a writable root.

    The package manager runs as root without a capability; what it prints and its exit code are the answer. What it
    changed is gone when the sandbox is stopped. By an agent's key it may wait for a reviewer, as a command does.
    """
    arguments: dict[str, Any] = {"packages": body.packages}
    arguments |= {"timeout_s": body.timeout} if body.timeout is not None else {}
    ended = await gated.call(request, sandbox_id, "install", arguments, reason=body.reason)
    return await _executed(ended)


async def _begun(action: Action) -> HttpResponse:
    row = await db.read(_of_action, action)
    answer = HttpResponse(schemas.Command.of(row).model_dump_json(), status=202, content_type=answers.JSON)
    answer.headers["Location"] = f"/v1/sandboxes/{row.sandbox_id}/commands/{row.pk}"
    return answer


def _of_action(action: Action) -> Command:
    return _as_it_is([Command.objects.get(action_id=action.pk)])[0]


async def _executed(ended: gated.Ended) -> HttpResponseBase:
    action = ended.action
    printed, result = await acts.output(action, ended.command), action.result
    assert printed, f"{action.pk} ran no command"
    assert result, f"{action.pk} succeeded without a result"
    command = printed.command
    answer = schemas.Executed(
        id=command.pk,
        status=command.status,  # type: ignore[arg-type]  # it has ended
        stdout="",
        stderr="",
        truncated=printed.truncated,
        left_running=[command.pk] if command.left_running else [],
        reason=command.reason,
        action_id=action.pk,
        joined=ended.joined,
        **{name: result[name] for name in NUMBERS},
    )
    return await answers.printed(answer, stdout=printed.stdout, stderr=printed.stderr)


@door(router, "GET", "/sandboxes/{sandbox_id}/commands", may=SEES, answers={200: schemas.Commands})
async def list_commands(
    request: HttpRequest, sandbox_id: str, status: schemas.CommandStatus | None = None
) -> schemas.Commands:
    """List the last 200 commands of a sandbox. Newest first. What still waits for a reviewer is among the actions."""
    found = await db.read(_commands, caller(request), sandbox_id, status)
    return schemas.Commands(items=[schemas.Command.of(row) for row in found])


def _commands(who: Caller, sandbox_id: str, status: str | None) -> list[Command]:
    found = lifecycle.find(who, sandbox_id).commands.order_by("-pk")
    return _as_it_is(list((found.filter(status=status) if status else found)[:200]))


def _as_it_is(rows: list[Command]) -> list[Command]:
    """A row learns its sizes when the command ends; until then the files know them."""
    for row in rows:
        if row.status == "running":
            for name, size in outputs.Outputs(row.action_id).sizes.items():
                setattr(row, f"{name}_bytes", size)
    return rows


@door(
    router, "GET", "/sandboxes/{sandbox_id}/commands/{command_id}", may=SEES, answers={200: schemas.CommandOutput},
    fails=("too_many",),
)  # fmt: skip
async def get_command(
    request: HttpRequest,
    sandbox_id: str,
    command_id: str,
    stdout_from: Offset = 0,
    stderr_from: Offset = 0,
    wait: Wait = 0,
) -> HttpResponseBase:
    """Get a command with what it printed. From the byte offsets asked for on, up to 5 MiB of each stream; with `wait`,
    as soon as there is more than that, or it has ended. `next` has the offsets to go on from: less than asked for, at
    once, when so much was never printed."""
    who, offsets = caller(request), (stdout_from, stderr_from)
    row = await db.read(_command, who, sandbox_id, command_id)
    if wait and row.status == "running":
        topics = (f"action:{row.action_id}", f"command:{row.pk}", outputs.topic(row.action_id))
        with waiting(who.key_id):
            await bus.wait_for(lambda: db.read(_news, row.pk, offsets), *topics, timeout_s=wait)
        row = await db.read(_command, who, sandbox_id, command_id)
    pages = await db.read(_pages, row, offsets, PAGE_BYTES)
    texts = [await answers.text(each.content) for each in pages]
    answer = schemas.CommandOutput(
        **schemas.Command.of(row).model_dump(),
        stdout=texts[0],
        stderr=texts[1],
        next=schemas.PerStream(stdout=pages[0].end, stderr=pages[1].end),
        lost_bytes=schemas.PerStream(stdout=pages[0].lost_bytes, stderr=pages[1].lost_bytes),
    )
    return await answers.large(answer, size_bytes=sum(len(each.content) for each in pages))


def _command(who: Caller, sandbox_id: str, command_id: str) -> Command:
    return _as_it_is([commands.find(who, sandbox_id, command_id)])[0]


def _pages(row: Command, offsets: tuple[int, int], limit: int) -> list[Page]:
    names: tuple[outputs.Name, outputs.Name] = ("stdout", "stderr")
    return [page(row, name, offset, limit=limit) for name, offset in zip(names, offsets, strict=True)]


def _news(command_id: str, offsets: tuple[int, int]) -> bool | None:
    row = Command.objects.get(pk=command_id)
    pages = _pages(row, offsets, 2 * A_CHARACTER_BYTES)
    beyond = any(each.begin < offset for each, offset in zip(pages, offsets, strict=True))
    return row.status != "running" or beyond or any(each.content for each in pages) or None


@door(
    router, "POST", "/sandboxes/{sandbox_id}/commands/{command_id}/stdin", may=RUNS, gate="approval",
    answers={200: schemas.Done}, fails=(*gated.REFUSALS, "command_ended", "stdin_closed", "stdin_full"),
)  # fmt: skip
async def send_input(request: HttpRequest, sandbox_id: str, command_id: str, body: schemas.NewInput) -> schemas.Done:
    """Send bytes to a command in the background. All of them or none; the answer comes when they are on their way to
    it, not when it has read them. One that does not read is refused more than 4 MiB: 429 `stdin_full`.

    By an agent's key this is an action of its own, which may wait for a reviewer as the command did."""
    command = await db.read(commands.find, caller(request), sandbox_id, command_id)
    if command.status != "running":
        raise CommandEnded(command.pk, command.status)
    if not command.background:
        raise NoStdin(f"{command.pk} runs in the foreground, where input ends with what came with the call.")
    arguments: dict[str, Any] = {"id": command.pk, "data": await asyncio.to_thread(_bytes, body), "eof": body.eof}
    await gated.call(request, sandbox_id, "stdin", arguments, reason=body.reason)
    return schemas.Done()


def _bytes(body: schemas.NewInput) -> bytes:
    try:
        return body.data.encode() if body.encoding == "utf-8" else base64s.decode(body.data)
    except ValueError as error:  # of either kind: half a surrogate, or no base64
        raise Invalid(f"`data` is not {body.encoding}: {error}.", field="data") from error


@door(
    router, "DELETE", "/sandboxes/{sandbox_id}/commands/{command_id}", may=RUNS, answers={200: schemas.Command},
    fails=("command_ended", "sandbox_gone", "sandbox_not_enabled", "halted", "no_runtime", "sandbox_unresponsive"),
)  # fmt: skip
async def stop_command(
    request: HttpRequest, sandbox_id: str, command_id: str, signal: schemas.Signal = "TERM"
) -> schemas.Command:
    """Stop a command with all that descends from it. `signal` first, KILL after 2 s; the answer comes when nothing is
    left. It never asks, and stands in the audit log. One that has ended and left nothing running: 409 `command_ended`.
    """
    row = await acts.stop_command(caller(request), sandbox_id, command_id, Signals[f"SIG{signal}"])
    return schemas.Command.of(row)
