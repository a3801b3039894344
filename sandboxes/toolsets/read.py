"""Read a whole file with the rights of `agent`. Never asks; its bytes go to the outputs, not into a row."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from console.workspaces.models import Agent
from sandboxes.errors import FileError

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box

NAME, VERSION, KIND = "read", 1, "read"
CONTENT_BYTES = 100 << 20


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, "path")
    return {"path": check.path(arguments.get("path"))}


async def execute(pass_: "Pass", box: "Box") -> tuple[bytes, dict[str, Any]]:
    """The content and what it is. At most 100 MB: `files/raw` streams what is larger."""
    file = await box.read(pass_, pass_.arguments["path"])
    if file.size > CONTENT_BYTES:
        raise FileError(
            "too_large", f"{file.path} has {file.size} bytes; the limit is {CONTENT_BYTES}.", path=file.path
        )
    content = bytearray()
    async for chunk in file.chunks():
        content += chunk
    return bytes(content), {
        "path": file.path,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "mode": file.mode,
    }
