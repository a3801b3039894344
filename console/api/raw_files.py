"""Files as bytes, streamed both ways: as fast as the slower side, and never held, neither in memory nor on disk.

What an agent writes has to wait for a person, so it is kept before; only then is it the same call as the one in JSON.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from time import monotonic
from typing import Annotated

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router

from approvals import payloads
from console.doorman import at_end
from console.streamed import Incoming
from console.workspaces import permissions
from sandboxes import acts, file_acts
from sandboxes.errors import NoCapacity
from sandboxes.file_acts import Passage
from sandboxes.toolsets.write import Streamed

from . import downloads, gated, once, schemas
from .door import caller, door
from .errors import Refused
from .files import FILE_ERRORS, READ_ERRORS, FilePath
from .waits import waiting

router = Router(tags=["Files"])
RAW = "/sandboxes/{sandbox_id}/files/raw"
RUNS = (permissions.SANDBOXES_RUN,)
ARRIVING_AT_ONCE = 8  # each may lie on disk until it is whole
ARRIVE_WITHIN_S = 300  # it holds one of few places
_arriving = asyncio.Semaphore(ARRIVING_AT_ONCE)


@door(
    router, "GET", RAW, may=RUNS, gate="recorded", answers={200: None, 206: None}, streams=downloads.BYTES,
    fails=(*READ_ERRORS, "range_not_satisfiable", "too_many"),
)  # fmt: skip
@door(router, "HEAD", RAW, may=RUNS, gate="recorded", answers={200: None, 206: None})
async def read_raw_file(
    request: HttpRequest, sandbox_id: str, path: FilePath, wanted: downloads.RangeHeader = None
) -> HttpResponseBase:
    """Read a file as bytes. Of any size, or the part that `Range` asks for. What was not sent whole is cut off, never
    ended as if it were. The bytes are those that the file has while it is read; one that grows is read up to the size
    it had. They are never served as a page: `application/octet-stream`, `attachment`."""
    passage, who = _passage(request), caller(request)
    part = downloads.part_of(request)
    offset, limit = (part.offset, part.limit) if part else (0, 0 if request.method == "HEAD" else None)
    file = await file_acts.stream_file(who, sandbox_id, path, passage, offset=offset, limit=limit)
    head = request.method == "HEAD"
    if part is None:
        if file.size or head:
            return downloads.whole(file.path, file.size, None if head else _content(passage, file.size))
        return await _of_no_size(passage, file.path)
    if (span := part.within(file.size)) is None:
        return downloads.nothing_there(file.path, file.size)
    return downloads.partial(file.path, file.size, span, None if head else _content(passage, span[1]))


async def _of_no_size(passage: Passage, path: str) -> HttpResponseBase:
    """Empty, or one of those files of /proc that have bytes and no size."""
    if first := await file_acts.take(passage):
        return downloads.whole(path, None, _content(passage, None, first))
    return downloads.whole(path, 0, _content(passage, 0))


async def _content(passage: Passage, size: int | None, first: bytes = b"") -> AsyncIterator[bytes]:
    """Raises when it is not all: half an answer is out by then, so the server cuts the connection."""
    sent, piece = 0, first or await file_acts.take(passage)
    while piece:
        sent += len(piece)
        yield piece
        piece = await file_acts.take(passage)
    if size is not None and sent != size:
        raise Refused("interrupted", f"The file became shorter while it was read: {sent} of {size} bytes came.")


@door(
    router, "PUT", RAW, may=RUNS, gate="approval", answers={200: schemas.Written}, takes_bytes=True,
    fails=(*gated.REFUSALS, *FILE_ERRORS, "interrupted", "too_slow", "no_capacity"),
)  # fmt: skip
async def write_raw_file(
    request: HttpRequest,
    sandbox_id: str,
    path: FilePath,
    mode: Annotated[int | None, Query(ge=0, le=0o777, description="As a number: 0o755 is 493.")] = None,
    reason: Annotated[str, Query(max_length=2000, description="What a reviewer reads beside the file.")] = "",
) -> schemas.Written:
    """Write a file from bytes, up to 100 MB. The file appears whole or not at all: a body that breaks off writes
    nothing. Directories above it are made.

    By an agent's key it may wait for a reviewer, as the same call in JSON does, and joins what waits.
    """
    who = caller(request)
    await file_acts.check_usable(who, sandbox_id)
    if who.is_agent or once.scope_of(request):
        with waiting(who.key_id):
            content = await _kept(request)
        ended = await gated.call(
            request, sandbox_id, "write", {"path": path, "content": content, "mode": mode}, reason=reason
        )
    else:
        ended = await _straight(request, sandbox_id, path, mode, reason)
    return schemas.Written(**(ended.action.result or {}), action_id=ended.action.pk, joined=ended.joined)


async def _straight(request: HttpRequest, sandbox_id: str, path: str, mode: int | None, reason: str) -> gated.Ended:
    """Nobody looks at it first, so it goes into the sandbox as it comes."""
    passage, began = _passage(request), monotonic()
    arguments = {"path": path, "mode": mode, "content": Streamed(_length(request))}
    proposed = await acts.propose(caller(request), sandbox_id, "write", arguments, reason=reason, content=passage)
    async for piece in _body(request).pieces():
        if not await file_acts.put(passage, piece):
            break
    file_acts.end(passage)
    return await gated.ended(request, proposed, began=began)


async def _kept(request: HttpRequest) -> bytes | payloads.Arrived:
    """On disk, under no name yet: the gate may still refuse it, or find it there."""
    try:
        async with asyncio.timeout(ARRIVE_WITHIN_S), _arriving:
            arriving = await asyncio.to_thread(payloads.Arriving)
            at_end(request.scope, arriving.discard)  # type: ignore[attr-defined]
            async for piece in _body(request).pieces():
                await asyncio.to_thread(arriving.write, piece)
            return await asyncio.to_thread(arriving.whole)
    except TimeoutError:
        detail = f"The body was not complete after {ARRIVE_WITHIN_S} s. Send it faster, or in parts."
        raise Refused("too_slow", detail) from None
    except OSError as error:
        raise NoCapacity(f"This console could not keep the body ({error.strerror}).") from error


def _passage(request: HttpRequest) -> Passage:
    """One of its key's streams. However the request ends, whoever is at the other end is told."""
    passage, place = Passage(), ExitStack()
    place.enter_context(waiting(caller(request).key_id))
    at_end(request.scope, place.close)  # type: ignore[attr-defined]
    at_end(request.scope, file_acts.leave(passage))  # type: ignore[attr-defined]
    return passage


def _body(request: HttpRequest) -> Incoming:
    found: Incoming = request.scope["incoming"]  # type: ignore[attr-defined]
    return found


def _length(request: HttpRequest) -> int | None:
    """None for a chunked body, which tells by its end."""
    told = request.headers.get("Content-Length")
    return int(told) if told else None
