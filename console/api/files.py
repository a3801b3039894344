"""Files: write one, read one, list them. Whole files in JSON, up to 100 MB; as bytes they are in `raw_files`."""

import asyncio
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router

from console.doorman import at_end, body_parsed
from console.workspaces import permissions
from console.workspaces.errors import Invalid
from sandboxes import file_acts

from . import answers, base64s, gated, laid, schemas
from .body import forget
from .door import caller, door
from .errors import Refused

router = Router(tags=["Files"])
FILE_BYTES = 100 << 20
FILE_ERRORS = (
    "file_not_found", "is_a_directory", "not_a_file", "permission_denied_in_sandbox", "no_space", "bad_path",
    "protected_path",
)  # fmt: skip
SEEING_ERRORS = (
    "file_not_found", "permission_denied_in_sandbox", "bad_path", "sandbox_gone", "sandbox_not_enabled", "halted",
    "no_runtime", "channel_lost", "sandbox_error",
)  # fmt: skip
READ_ERRORS = (*SEEING_ERRORS, "is_a_directory", "not_a_file")
FilePath = Annotated[str, Query(min_length=1, max_length=4096, description="A relative one starts at `/work`.")]


@door(
    router, "POST", "/sandboxes/{sandbox_id}/files", may=(permissions.SANDBOXES_RUN,), gate="approval",
    answers={200: schemas.Written}, fails=(*gated.REFUSALS, *FILE_ERRORS, "too_slow"),
)  # fmt: skip
async def write_file(request: HttpRequest, sandbox_id: str, body: schemas.NewFile) -> schemas.Written:
    """Write a whole file. Directories above it are made.

    By an agent's key it may wait for a reviewer, as a command does. What is there by then must still be what the
    reviewer saw replaced, else 409 `stale_edit`.

    A protected path (`.env`, private keys and the like) is refused with 403 `protected_path`, save for a workspace key
    that says `protected: true`: the file is sealed then, so that no command changes it.
    """
    arguments = {
        "path": body.path,
        "content": await asyncio.to_thread(_decode, body.content, body.encoding),
        "mode": body.mode,
        **({"protected": True} if body.protected else {}),
    }
    body.content = ""  # ninja holds `body` until the answer, which may be long after
    forget(request)
    body_parsed(request.scope)  # type: ignore[attr-defined]
    ended = await gated.call(request, sandbox_id, "write", arguments, reason=body.reason)
    return schemas.Written(**(ended.action.result or {}), action_id=ended.action.pk, joined=ended.joined)


@door(
    router, "POST", "/sandboxes/{sandbox_id}/unseal", may=(permissions.SANDBOXES_RUN,), gate="approval",
    answers={200: schemas.Unsealed}, fails=(*gated.REFUSALS, *SEEING_ERRORS),
)  # fmt: skip
async def unseal_file(request: HttpRequest, sandbox_id: str, body: schemas.Unseal) -> schemas.Unsealed:
    """Lift the seal of a protected file. Commands can change it then, until the sandbox is started again; files written
    over the API or by tools stay refused. By an agent's key it waits for a reviewer, as a write does."""
    ended = await gated.call(request, sandbox_id, "unseal", {"path": body.path}, reason=body.reason)
    return schemas.Unsealed(**(ended.action.result or {}), action_id=ended.action.pk, joined=ended.joined)


def _decode(content: str, encoding: schemas.Encoding) -> bytes:
    try:
        found = content.encode() if encoding == "utf-8" else base64s.decode(content)
    except ValueError as error:  # of either kind: half a surrogate, or no base64
        raise Invalid(f"`content` is not {encoding}: {error}.", field="content") from error
    if len(found) > FILE_BYTES:
        detail = f"The file has {len(found)} bytes; a call takes up to {FILE_BYTES}."
        raise Refused("too_large", detail, limit_bytes=FILE_BYTES)
    return found


@door(
    router, "GET", "/sandboxes/{sandbox_id}/files", may=(permissions.SANDBOXES_RUN,), gate="recorded",
    answers={200: schemas.File},
    fails=(*READ_ERRORS, "not_utf8", "too_large", "no_capacity"),
)  # fmt: skip
async def read_file(
    request: HttpRequest,
    sandbox_id: str,
    path: FilePath,
    encoding: schemas.Encoding = "utf-8",
) -> HttpResponseBase:
    """Read a whole file. Up to 100 MB; with `encoding=utf-8`, one that is not UTF-8 is refused. Answers over 8 MiB take
    turns, one at a time for each agent: one that waited 60 s for its own is answered 503 `no_capacity`."""
    who = caller(request)
    turn = file_acts.Turn(who.agent_id or who.key_id)
    at_end(request.scope, turn.end)  # type: ignore[attr-defined]
    content, found = await file_acts.read_file(who, sandbox_id, path, turn)
    about = schemas.File(path=found.path, content="", encoding=encoding, size=found.size, sha256=found.sha256)
    if len(content) <= file_acts.LARGE_BYTES:
        about.content = await asyncio.to_thread(_encode, content, encoding, found.path)
        return await answers.large(about, size_bytes=len(content))
    if encoding == "utf-8":
        await asyncio.to_thread(laid.check_utf8, content, found.path)
    file = await asyncio.to_thread(laid.lay, content)
    at_end(request.scope, file.close)  # type: ignore[attr-defined]
    del content
    turn.lay_down()
    return laid.answer(about, file)


def _encode(content: bytes | bytearray, encoding: schemas.Encoding, path: str) -> str:
    if encoding == "base64":
        return base64s.encode(content)
    laid.check_utf8(content, path)
    return content.decode()


@door(
    router, "GET", "/sandboxes/{sandbox_id}/files/list", may=(permissions.SANDBOXES_RUN,), gate="recorded",
    answers={200: schemas.Files}, fails=(*SEEING_ERRORS, "not_a_directory"),
)  # fmt: skip
async def list_files(
    request: HttpRequest,
    sandbox_id: str,
    path: FilePath,
    depth: Annotated[int, Query(ge=1, le=20, description="1: what lies in the directory itself.")] = 1,
) -> HttpResponseBase:
    """List what lies in a directory. In the order of the names' bytes, what lies in a directory right behind it. Links
    are named and not followed. At most 10,000 entries, or what was found in 10 s; `truncated` says that there is
    more."""
    found = await file_acts.list_files(caller(request), sandbox_id, path, depth)
    content = await asyncio.to_thread(lambda: schemas.Files.of(found).model_dump_json().encode())
    return HttpResponse(content, content_type=answers.JSON)
