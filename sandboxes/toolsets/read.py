"""Read a whole file with the rights of `agent`. Never asks; its bytes go to the outputs, not into a row."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from console.workspaces.models import Agent
from sandboxes.errors import FileError
from sandboxes.turns import LARGE_BYTES, Turn

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box, FileRead

NAME, VERSION, KIND = "read", 1, "read"
CONTENT_BYTES = 100 << 20


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, "path")
    return {"path": check.path(arguments.get("path"))}


async def execute(pass_: "Pass", box: "Box", turn: Turn) -> tuple[bytearray, dict[str, Any]]:
    """The content and what it is. At most 100 MB; a large one when it is its turn."""
    with turn.held():
        file = await box.read(pass_, pass_.arguments["path"])
        try:
            await _admit(file, file.size, turn)
            content = await _content(file, turn)
        finally:
            await file.close()
        return content, {"path": file.path, "size": len(content), "sha256": file.sha256, "mode": file.mode}


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
