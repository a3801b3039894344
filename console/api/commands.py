"""Commands: run one and wait for it, list them, read what one printed so far."""

from typing import Annotated, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router

from approvals.models import Action
from console.workspaces import bus, db, permissions
from console.workspaces.errors import NotFound
from console.workspaces.keys import Caller
from sandboxes import acts, lifecycle, outputs
from sandboxes.models import Command

from . import answers, gated, schemas
from .door import SEES, caller, door
from .waits import Wait, waiting

router = Router(tags=["Commands"])
PAGE_BYTES = 5 << 20
Offset = Annotated[int, Query(ge=0, le=1 << 60, description="Bytes to leave out.")]
CommandStatus = Literal["running", "exited", "timed_out", "lost"]


@door(
    router, "POST", "/sandboxes/{sandbox_id}/commands", may=(permissions.SANDBOXES_RUN,), gate="approval",
    answers={200: schemas.Executed}, fails=gated.REFUSALS,
)  # fmt: skip
async def run_command(request: HttpRequest, sandbox_id: str, body: schemas.NewCommand) -> HttpResponseBase:
    """Run a command and wait for its end. One that exits with a failure is an answer, not an error.

    By an agent's key it may wait for a reviewer. After 100 s in all it is answered 409 `pending_approval`; the same
    call again joins what waits.
    """
    arguments = {
        name: value
        for name, value in body.model_dump(exclude={"background", "reason", "timeout"}).items()
        if value is not None
    }
    if body.timeout is not None:
        arguments["timeout_s"] = body.timeout
    ended = await gated.call(request, sandbox_id, "run", arguments, reason=body.reason)
    return await _executed(ended.action, joined=ended.joined)


async def _executed(action: Action, *, joined: bool) -> HttpResponseBase:
    printed, result = await acts.output(action), action.result
    assert printed, f"{action.pk} ran no command"
    assert result, f"{action.pk} succeeded without a result"
    numbers = ("exit_code", "timed_out", "duration_ms", "stdout_bytes", "stderr_bytes")
    answer = schemas.Executed(
        id=printed.command_id,
        stdout=await answers.text(printed.stdout),
        stderr=await answers.text(printed.stderr),
        truncated=printed.truncated,
        action_id=action.pk,
        joined=joined,
        **{name: result[name] for name in numbers},
    )
    return await answers.large(answer, size_bytes=len(printed.stdout) + len(printed.stderr))


@door(router, "GET", "/sandboxes/{sandbox_id}/commands", may=SEES, answers={200: schemas.Commands})
async def list_commands(request: HttpRequest, sandbox_id: str, status: CommandStatus | None = None) -> schemas.Commands:
    """List the last 200 commands of a sandbox. Newest first. What still waits for a reviewer is among the actions."""
    found = await db.read(_commands, caller(request), sandbox_id, status)
    return schemas.Commands(items=[schemas.Command.of(row) for row in found])


def _commands(who: Caller, sandbox_id: str, status: CommandStatus | None) -> list[Command]:
    found = lifecycle.find(who, sandbox_id).commands.order_by("-pk")
    return list((found.filter(status=status) if status else found)[:200])


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
    as soon as it has ended. `next` has the offsets to go on from."""
    who = caller(request)
    row = await db.read(_command, who, sandbox_id, command_id)
    if wait and row.status == "running":
        with waiting(who.key_id):
            await bus.wait_for(lambda: db.read(_ended, row.pk), f"action:{row.action_id}", timeout_s=wait)
        row = await db.read(_command, who, sandbox_id, command_id)
    streams = [await db.read(_page, row, "stdout", stdout_from), await db.read(_page, row, "stderr", stderr_from)]
    texts = [await answers.text(content) for _, content, _ in streams]
    answer = schemas.CommandOutput(
        **schemas.Command.of(row).model_dump(),
        stdout=texts[0],
        stderr=texts[1],
        next=schemas.PerStream(**_of_each([begin + len(content) for begin, content, _ in streams])),
        lost_bytes=schemas.PerStream(**_of_each([lost for _, _, lost in streams])),
    )
    return await answers.large(answer, size_bytes=sum(len(content) for _, content, _ in streams))


def _of_each(values: list[int]) -> dict[str, int]:
    return dict(zip(("stdout", "stderr"), values, strict=True))


def _command(who: Caller, sandbox_id: str, command_id: str) -> Command:
    found = lifecycle.find(who, sandbox_id).commands.filter(pk=command_id).first()
    if found is None:
        raise NotFound("command", command_id)
    return found


def _ended(command_id: str) -> bool | None:
    return Command.objects.filter(pk=command_id).exclude(status="running").exists() or None


def _page(row: Command, name: outputs.Name, offset: int) -> tuple[int, bytes, int]:
    """Where it begins, the bytes, and how many before them are lost. A character whose rest is still to come waits for
    it, so that texts read page by page join without a flaw."""
    begin, content = outputs.page(row.action_id, name, offset=offset, limit=PAGE_BYTES)
    if not content:
        return offset, b"", 0
    whole = _whole_characters(content)
    return begin, whole if row.status == "running" else whole or content, begin - offset


def _whole_characters(content: bytes) -> bytes:
    """Without the first bytes of a UTF-8 character at the end whose other bytes are missing."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0xC0 == 0x80:
            continue
        needs = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return content[:-back] if needs > back else content
    return content
