"""Write a whole file as `agent`. The digest binds the content and, for a gated call, the file that it would replace.

A content that nobody has to look at first may come while it is written: only its result tells the hash then."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from approvals import payloads
from console.workspaces.errors import Invalid
from console.workspaces.models import Agent
from sandboxes.errors import FileError

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs
    from sandboxes.passage import Passage

NAME, VERSION, KIND = "write", 1, "write"
CONTENT_BYTES = 100 << 20
CHUNK = 256 * 1024


class Streamed(dict[str, Any]):
    """Stands for a content that comes while it is written; `size` None: its end will tell."""

    def __init__(self, size: int | None) -> None:
        super().__init__(streamed=True, size=size)


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    """`content` is bytes or what has arrived of them; it stands in the arguments as text or as reference, unkept until
    the call is let in. Or it is Streamed, but not by an agent: a person must be able to see it before it is written."""
    check.only(arguments, "path", "content", "mode", "version", "protected")
    content, mode = arguments.get("content"), arguments.get("mode")
    if not isinstance(content, bytes | payloads.Held | Streamed) or (agent and isinstance(content, Streamed)):
        raise Invalid("`content` is missing.", field="content")
    if (size := len(content) if isinstance(content, bytes) else content["size"] or 0) > CONTENT_BYTES:
        raise Invalid(f"`content` has {size} bytes; the limit is {CONTENT_BYTES}.", field="content")
    if mode is not None and (not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= 0o777):
        raise Invalid("`mode` is a number from 0 to 511 (0o777).", field="mode")
    more: dict[str, Any] = {}
    if arguments.get("version") is not None:
        more["version"] = check.version(arguments["version"])
    path = check.path(arguments.get("path"))
    if path.endswith("/."):
        raise FileError("bad_path", f"Nothing was written. {path}: this names no file.", path=path)
    if check.flag(arguments.get("protected", False), field="protected"):
        if agent:
            raise FileError("protected_path", f"{path}: only a person's key puts a protected file there.", path=path)
        more["protected"] = True
    packed = payloads.pack_bytes(content) if isinstance(content, bytes) else content
    return {"path": path, "content": packed, "mode": mode, **more}


def as_bytes(content: str) -> bytes:
    """Of a text in a call."""
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise Invalid("`content` holds half a surrogate pair, so it is no valid Unicode.", field="content") from None


async def execute(
    pass_: "Pass", box: "Box", outputs: "Outputs", content_comes: "Passage | None" = None
) -> dict[str, Any]:
    from sandboxes.engine import WriteRequest

    content, arguments = pass_.arguments["content"], pass_.arguments
    size = len(content.encode()) if isinstance(content, str) else content["size"]
    path = arguments["path"]
    base = (pass_.bases[path] or "") if path in pass_.bases else None
    version = arguments.get("version")
    seal = bool(arguments.get("protected"))
    request = WriteRequest(path=path, size=size, mode=arguments["mode"], base=base, version=version, seal=seal)
    chunks = content_comes.pieces() if content_comes else _chunks(content, path)
    return result(await box.write(pass_, request, chunks), outputs)


async def _chunks(content: str | Mapping[str, Any], path: str) -> AsyncIterator[bytes]:
    if isinstance(content, str):
        yield content.encode()
        return
    if "sha256" not in content:  # the runner forgot its part of it when the server that sent it was gone
        raise FileError("interrupted", f"The server stopped while {path} was sent. Nothing was written.", path=path)
    with payloads.path(content).open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def result(ended: Any, outputs: "Outputs") -> dict[str, Any]:
    """What the row keeps of a WriteResult; with what its agent is told, where it named a version."""
    sealed = {} if ended.sealed is None else {"protected": [{"path": ended.path, "sealed": ended.sealed}]}
    return {**ended.report, "path": ended.path, "size": ended.size, "sha256": ended.sha256, **sealed}
