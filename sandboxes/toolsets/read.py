"""Read a file with the rights of `agent`, whole or a part. Never asks; its bytes go to whoever asked, into no row."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from console.workspaces.errors import Invalid
from console.workspaces.models import Agent
from sandboxes.errors import FileError
from sandboxes.turns import LARGE_BYTES, Turn

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box, FileRead
    from sandboxes.passage import Passage

NAME, VERSION, KIND = "read", 1, "read"
CONTENT_BYTES = 100 << 20


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    """`offset` (below 0: from the end) and `limit` stand there only when a part is asked for."""
    check.only(arguments, "path", "offset", "limit")
    part = {name: arguments[name] for name in ("offset", "limit") if arguments.get(name) is not None}
    for name, value in part.items():
        if type(value) is not int or abs(value) >= 1 << 53 or (name == "limit" and value < 0):
            raise Invalid(f"`{name}` is a number of bytes.", field=name)
    return {"path": check.path(arguments.get("path")), **part}


async def execute(pass_: "Pass", box: "Box", turn: Turn) -> tuple[bytearray, dict[str, Any]]:
    """The content and what it is. At most 100 MB; a large one when it is its turn."""
    with turn.held():
        file = await box.read(pass_, pass_.arguments["path"])
        try:
            await _admit(file, file.size, turn)
            content = await _content(file, turn)
        finally:
            await file.close()
        return content, _result(file, len(content))


async def open_part(pass_: "Pass", box: "Box") -> "FileRead":
    """For `send`: no byte beyond the size that it has now."""
    part = {name: pass_.arguments[name] for name in ("offset", "limit") if name in pass_.arguments}
    return await box.read(pass_, pass_.arguments["path"], fixed=True, **part)


async def send(file: "FileRead", passage: "Passage") -> dict[str, Any]:
    """To whoever takes it, as fast as they do."""
    sent = 0
    async with aclosing(file.chunks()) as chunks:
        async for chunk in chunks:
            if not await passage.put(chunk):
                raise FileError("interrupted", f"Whoever asked for {file.path} has left.", path=file.path)
            sent += len(chunk)
    return _result(file, sent)


def _result(file: "FileRead", size: int) -> dict[str, Any]:
    return {"path": file.path, "size": size, "sha256": file.sha256, "mode": file.mode}


async def _content(file: "FileRead", turn: Turn) -> bytearray:
    content = bytearray()
    async with aclosing(file.chunks()) as chunks:
        async for chunk in chunks:
            if turn.is_over:
                raise FileError("interrupted", f"Whoever asked for {file.path} has left.", path=file.path)
            content += chunk
            await _admit(file, len(content), turn)  # it may have grown since, or its size was a lie
    return content


async def _admit(file: "FileRead", size: int, turn: Turn) -> None:
    if size > CONTENT_BYTES:
        raise FileError("too_large", f"{file.path} has {size} bytes; the limit is {CONTENT_BYTES}.", path=file.path)
    if size > LARGE_BYTES:
        await turn.take()
