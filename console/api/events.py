"""A command's output as server-sent events, from any offset on, until it has ended.

Owns the form of an event and of its id, which is the pair of offsets to go on from: a client that is cut off sends the
last one back and misses nothing. One that was never given out is said to be none, before what follows. Holds one piece
of output at a time, and no thread while nothing is printed.
"""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from time import monotonic
from typing import Annotated, Any

from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Header, Router

from console.doorman import at_end
from console.workspaces import bus, db, keys
from console.workspaces.keys import Caller
from sandboxes import commands, outputs
from sandboxes.models import Command
from sandboxes.paging import Page, page

from . import schemas
from .door import SEES, caller, door
from .waits import waiting

router = Router(tags=["Commands"])
EVENT_BYTES = 64 << 10
HEARTBEAT_S = 15.0
REREAD_S = 10.0
TEXT = {"text/event-stream": {"schema": {"type": "string"}}}
At = dict[outputs.Name, int]
LastEventId = Annotated[
    str,
    Header(
        alias="Last-Event-ID",
        pattern=r"^[0-9]{1,18}-[0-9]{1,18}$",
        description="The id of the last event you have: bytes of stdout and of stderr, as in `120-0`.",
    ),
]


@door(
    router, "GET", "/sandboxes/{sandbox_id}/commands/{command_id}/events", may=SEES, answers={200: None},
    fails=("too_many",), streams=TEXT,
)  # fmt: skip
async def follow_command(
    request: HttpRequest, sandbox_id: str, command_id: str, last_event_id: LastEventId = "0-0"
) -> StreamingHttpResponse:
    """Follow what a command prints, as server-sent events. `stdout` and `stderr` have as data
    `{"offset", "data", "encoding"}`: UTF-8 that is cut between characters, or `base64` for bytes that are no UTF-8. An
    `offset` beyond the end of the event before means that what is between is not kept any more. Last comes `exit` with
    the command as its data. Send the last id you have as `Last-Event-ID`, and it goes on from there; when so much was
    never printed, `reset` comes first, and its id and data are where it goes on, the end. A comment comes each 15 s."""
    who = caller(request)
    row = await db.read(commands.find, who, sandbox_id, command_id)
    place = ExitStack()
    place.enter_context(waiting(who.key_id))
    at_end(request.scope, place.close)  # type: ignore[attr-defined]
    stdout, stderr = map(int, last_event_id.split("-"))
    events = _events(who, row, {"stdout": stdout, "stderr": stderr})
    response = StreamingHttpResponse(events, content_type="text/event-stream")
    response.headers["X-Accel-Buffering"] = "no"
    return response


async def _events(who: Caller, row: Command, at: At) -> AsyncIterator[bytes]:
    yield b": follows\n\n"  # the answer's head goes out with its first byte
    beat_s, spoke_at = HEARTBEAT_S / settings.TIMER_DIVISOR, monotonic()
    with bus.listening(f"action:{row.action_id}", f"command:{row.pk}", outputs.topic(row.action_id)) as bell:
        while not bus.is_closing():
            row, pages = await db.read(_now, row.pk, at)
            if any(found.begin < at[name] for name, found in pages.items()):
                at |= {name: min(at[name], found.begin) for name, found in pages.items()}
                yield _event("reset", json.dumps(at), at)
                continue
            for name, found in pages.items():
                at[name] = found.end
                yield _event(name, _data(found), at)
                spoke_at = monotonic()
            if not pages and row.status != "running":
                yield _event("exit", schemas.Command.of(row).model_dump_json(), at)
                return
            if not pages:
                await bell.wait_s(max(0.0, min(spoke_at + beat_s - monotonic(), REREAD_S)))
            if monotonic() - spoke_at >= beat_s:
                if not await db.read(_may_still, who):
                    return
                yield b": still here\n\n"
                spoke_at = monotonic()


def _now(command_id: str, at: At) -> tuple[Command, dict[outputs.Name, Page]]:
    """The row first: what had been printed when it ended is there when it says so. Not by who asks: that a sandbox was
    deleted meanwhile is an end like others."""
    row = Command.objects.get(pk=command_id)
    pages = {name: page(row, name, offset, limit=EVENT_BYTES) for name, offset in at.items()}
    return row, {name: found for name, found in pages.items() if found.content or found.begin < at[name]}


def _may_still(who: Caller) -> bool:
    """A stream may outlive its key, or what its key may do."""
    now = keys.again(who)
    return now is not None and bool(now.permissions & set(SEES))


def _data(found: Page) -> str:
    data: dict[str, Any] = {"offset": found.begin}
    try:
        data |= {"data": found.content.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError:
        data |= {"data": base64.b64encode(found.content).decode(), "encoding": "base64"}
    return json.dumps(data, ensure_ascii=False)


def _event(name: str, data: str, at: At) -> bytes:
    return f"event: {name}\nid: {at['stdout']}-{at['stderr']}\ndata: {data}\n\n".encode()
