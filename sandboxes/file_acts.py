"""What doors may do with the files of a sandbox, and with the artifacts made of them. As in `acts`, each call is an
action of the gate, and a request that leaves takes nothing with it that was under way for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from approvals import gate
from console.workspaces import db
from console.workspaces.keys import Caller
from console.workspaces.models import Member

from . import acts, artifacts, host, lifecycle, quarantine
from .engine import FileRead, Listing
from .errors import FileError
from .passage import Passage
from .turns import LARGE_BYTES, Turn

__all__ = ["LARGE_BYTES", "Passage", "Turn"]


async def check_usable(caller: Caller, sandbox_id: str) -> None:
    """What a call there would be refused for whatever it brings: for a door that has a large body still to read."""
    sandbox, _ = await db.read(acts.place, caller, sandbox_id)
    lifecycle.check_live(sandbox)


async def read_file(caller: Caller, sandbox_id: str, path: str, turn: Turn) -> tuple[bytearray, acts.FileInfo]:
    """Recorded, and let through. A large one waits for its turn, which the caller ends when its answer is out. Raises
    FileError, or NoCapacity when too many wait."""
    proposal = await _read(caller, sandbox_id, "read", path=path)
    hub = host.hub()
    content, found = await hub.ask(hub.reads.whole(proposal, turn))
    return content, acts.FileInfo(found["path"], found["size"], found["sha256"])


async def list_files(caller: Caller, sandbox_id: str, path: str, depth: int) -> Listing:
    proposal = await _read(caller, sandbox_id, "list", path=path, depth=depth)
    hub = host.hub()
    found: Listing = (await hub.ask(hub.reads.whole(proposal, Turn(caller.key_id))))[0]
    return found


async def stream_file(
    caller: Caller, sandbox_id: str, path: str, passage: Passage, *, offset: int = 0, limit: int | None = None
) -> FileRead:
    """What the file is; its bytes, as it is now, come through `passage`, which the caller `leaves` in the end. An
    `offset` below 0 counts from the end. Recorded as `read`, and let through."""
    proposal = await _read(caller, sandbox_id, "read", path=path, offset=offset or None, limit=limit)
    hub = host.hub()
    return await hub.ask(hub.reads.stream(proposal, passage))


async def stream_quarantine(member: Member, sandbox_id: str, passage: Passage) -> None:
    """`/work` of a halted sandbox, as a tar, through `passage`, which the caller `leaves` in the end. On record."""
    await db.write(quarantine.record_download, member, sandbox_id)
    hub = host.hub()
    await hub.ask(hub.reads.archive(sandbox_id, passage))


async def _read(caller: Caller, sandbox_id: str, tool: str, **arguments: Any) -> gate.Proposal:
    sandbox, agent = await db.read(acts.place, caller, sandbox_id)
    lifecycle.check_live(sandbox)
    return await acts.validated(caller, sandbox, agent, tool, arguments)


async def check_room(caller: Caller, sandbox_id: str) -> None:
    """Whether one more artifact may be made in this sandbox."""
    sandbox, _ = await db.read(acts.place, caller, sandbox_id)
    await db.read(artifacts.check_room, sandbox)


# A request's side of a passage. The hub's side is never on the request's loop.


async def take(passage: Passage) -> bytes:
    return await host.hub().ask(passage.take())


async def put(passage: Passage, data: bytes) -> bool:
    """False when what takes it has ended, for a reason that its action tells."""
    return await host.hub().ask(passage.put(data))


def end(passage: Passage) -> None:
    host.hub().soon(passage.end)


def leave(passage: Passage) -> Callable[[], None]:
    """For the end of a request, however it ends: who puts is told that nobody takes, who takes that no more comes."""
    hub = host.hub()

    def left() -> None:
        passage.end(FileError("interrupted", "Whoever sent this left before its end. Nothing was written.", path=""))
        passage.leave()

    return lambda: hub.soon(left)
