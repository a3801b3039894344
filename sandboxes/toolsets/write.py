"""Write a whole file as `agent`. The digest binds the content and, for a gated call, the file that it would replace."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from approvals import payloads
from approvals.digest import INLINE_BYTES
from console.workspaces.errors import Invalid
from console.workspaces.models import Agent

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "write", 1, "write"
CONTENT_BYTES = 100 << 20
CHUNK = 256 * 1024


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    """`content` is bytes; it stands in the arguments as text or as reference, in memory until the call is let in."""
    check.only(arguments, "path", "content", "mode")
    content, mode = arguments.get("content"), arguments.get("mode")
    if not isinstance(content, bytes):
        raise Invalid("`content` is missing.", field="content")
    if len(content) > CONTENT_BYTES:
        raise Invalid(f"`content` has {len(content)} bytes; the limit is {CONTENT_BYTES}.", field="content")
    if mode is not None and (not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= 0o777):
        raise Invalid("`mode` is a number from 0 to 511 (0o777).", field="mode")
    return {"path": check.path(arguments.get("path")), "content": _pack(content), "mode": mode}


def _pack(content: bytes) -> str | dict[str, Any]:
    if len(content) <= INLINE_BYTES:
        try:
            return content.decode()
        except UnicodeDecodeError:
            pass
    return payloads.hold(content)


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    from sandboxes.engine import WriteRequest

    content, arguments = pass_.arguments["content"], pass_.arguments
    size = len(content.encode()) if isinstance(content, str) else content["size"]
    path = arguments["path"]
    base = (pass_.bases[path] or "") if path in pass_.bases else None
    request = WriteRequest(path=path, size=size, mode=arguments["mode"], base=base)
    return result(await box.write(pass_, request, _chunks(content)), outputs)


async def _chunks(content: str | Mapping[str, Any]) -> AsyncIterator[bytes]:
    if isinstance(content, str):
        yield content.encode()
        return
    with payloads.path(content).open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def result(ended: Any, outputs: "Outputs") -> dict[str, Any]:
    return {"path": ended.path, "size": ended.size, "sha256": ended.sha256}
