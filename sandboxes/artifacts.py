"""Artifacts: copies of files that outlive their sandbox. Bytes in the storage `artifacts`, one file under each id.

Owns their bytes from the sandbox to the disk and to their end. A file is there, whole, before the row that names it; a
row goes before its file. Must never hold a file in memory.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from approvals.errors import TooMany
from approvals.models import Action
from console.workspaces import audit, db
from console.workspaces.errors import NotFound
from console.workspaces.ids import new_id
from console.workspaces.keys import Caller

from .errors import FileError, NoCapacity
from .models import Artifact, Sandbox

if TYPE_CHECKING:
    from approvals.gate import Pass

    from .engine import FileRead

CONTENT_BYTES = 100 << 20
KEPT_BYTES, KEPT_FILES = 2 << 30, 5000  # of one agent; of all that a workspace's members publish for themselves
KEPT_DAYS = 30
MADE_BY = 100  # actions that are named
PIECE_BYTES = 1 << 20
UNNAMED_S = 3600  # a file must be named by a row within this time after it was written
A_ROUND = 500


def _folder() -> Path:
    store = storages["artifacts"]
    assert isinstance(store, FileSystemStorage)
    return Path(store.location)


def check_room(sandbox: Sandbox) -> None:
    """Before a copy begins; of several at once, each looks before the others are counted."""
    own = Artifact.objects.filter(workspace_id=sandbox.workspace_id, agent_id=sandbox.agent_id)
    kept = own.filter(expires_at__gt=timezone.now())
    total, count = kept.aggregate(total=Sum("size"))["total"] or 0, kept.count()
    if total >= KEPT_BYTES or count >= KEPT_FILES:
        raise TooMany(
            f"{count} artifacts of {total} bytes are kept here; the limit is {KEPT_FILES}, of {KEPT_BYTES} bytes. "
            "They go as they expire.",
            retry_after=3600,
        )


async def store(file: FileRead) -> dict[str, Any]:
    """All of it on disk, under a new id: what the action's row keeps, and `record` makes an artifact of. Leaves nothing
    when it fails. Raises FileError `too_large`, or NoCapacity when this machine's disk is full."""
    artifact_id = new_id("art")
    part = _folder() / f"{artifact_id}.part"
    try:
        _check_size(file.path, file.size)
        with await asyncio.to_thread(_opened, part) as out:
            size = await _copy(file, out)
            await asyncio.to_thread(_publish, out, part)
    except OSError as error:
        raise NoCapacity(f"This console could not keep {file.path} ({os.strerror(error.errno or 0)}).") from error
    finally:
        await file.close()
        part.unlink(missing_ok=True)
    return {"artifact_id": artifact_id, "path": file.path, "size": size, "sha256": file.sha256}


async def _copy(file: FileRead, out: BinaryIO) -> int:
    """The engine counts and hashes what comes; that it is all is known when this returns."""
    size = 0
    async with aclosing(file.chunks()) as chunks:
        async for chunk in chunks:
            size += len(chunk)
            _check_size(file.path, size)
            await asyncio.to_thread(out.write, chunk)
    if size < file.size:
        detail = f"{file.path} became shorter while it was copied, from {file.size} to {size} bytes. Publish it again."
        raise FileError("interrupted", detail, path=file.path)
    return size


def _check_size(path: str, size: int) -> None:
    if size > CONTENT_BYTES:
        detail = f"{path} has {size} bytes; an artifact has at most {CONTENT_BYTES}. Publish it in parts."
        raise FileError("too_large", detail, path=path)


def _opened(part: Path) -> BinaryIO:
    part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _publish(out: BinaryIO, part: Path) -> None:
    out.flush()
    os.fsync(out.fileno())
    os.replace(part, part.with_suffix(""))


def record(pass_: Pass, result: Mapping[str, Any]) -> None:
    """In the transaction that ends its action: there is an artifact if and only if the action succeeded."""
    sandbox = Sandbox.objects.get(pk=pass_.sandbox_id)
    Artifact.objects.create(
        id=result["artifact_id"],
        workspace_id=sandbox.workspace_id,
        agent_id=sandbox.agent_id,
        sandbox=sandbox,
        path=result["path"],
        title=pass_.arguments["title"],
        size=result["size"],
        sha256=result["sha256"],
        action_ids=_made_by(sandbox.pk, result["path"]),
        expires_at=timezone.now() + timedelta(days=getattr(settings, "ARTIFACT_DAYS", KEPT_DAYS)),
    )


def _made_by(sandbox_id: str, path: str) -> list[str]:
    """The writes to this path, oldest first. What commands did to it nobody knows."""
    writes = Action.objects.filter(sandbox_id=sandbox_id, tool="write", status="succeeded", result__path=path)
    return list(writes.order_by("-ended_at").values_list("pk", flat=True)[:MADE_BY])[::-1]


def find(caller: Caller, artifact_id: str) -> Artifact:
    found = Artifact.objects.visible_to(caller).filter(pk=artifact_id).first()
    if found is None:
        raise NotFound("artifact", artifact_id)
    return found


def opened(artifact: Artifact) -> BinaryIO:
    """Its bytes, also when it expires meanwhile."""
    try:
        return (_folder() / artifact.pk).open("rb")
    except FileNotFoundError:
        raise NotFound("artifact", artifact.pk) from None


def record_download(artifact: Artifact, actor: audit.Actor) -> None:
    """On record before the first byte goes out, whatever of it arrives."""
    with transaction.atomic():
        audit.append(
            workspace_id=artifact.workspace_id, actor=actor, event="artifact.downloaded", subject_id=artifact.pk,
            path=artifact.path, sandbox=artifact.sandbox_id,
        )  # fmt: skip


async def pieces(file: BinaryIO, *, offset: int, length: int) -> AsyncIterator[bytes]:
    """Closes `file` at its end, or when nobody wants more."""
    try:
        await asyncio.to_thread(file.seek, offset)
        while length > 0 and (piece := await asyncio.to_thread(file.read, min(length, PIECE_BYTES))):
            length -= len(piece)
            yield piece
    finally:
        file.close()


async def sweep() -> int:
    """Ends what has expired, and removes files that no row names: of copies that failed half-way with the server."""
    removed = 0
    while ended := await db.write(_expire):
        removed += len(ended)
        await asyncio.to_thread(_remove, [_folder() / artifact_id for artifact_id in ended])
    for files in await asyncio.to_thread(lambda: list(_in_rounds(_old_files()))):
        named = await db.read(_named, [file.name for file in files])
        await asyncio.to_thread(_remove, unnamed := [file for file in files if file.name not in named])
        removed += len(unnamed)
    return removed


def _expire() -> list[str]:
    over = list(Artifact.objects.filter(expires_at__lte=timezone.now()).values_list("pk", flat=True)[:A_ROUND])
    Artifact.objects.filter(pk__in=over).delete()
    return over


def _named(ids: list[str]) -> set[str]:
    return set(Artifact.objects.filter(pk__in=ids).values_list("pk", flat=True))


def _old_files() -> Iterator[Path]:
    before = time.time() - UNNAMED_S
    for file in _folder().iterdir() if _folder().exists() else ():
        try:
            if file.stat().st_mtime < before:
                yield file
        except FileNotFoundError:
            continue


def _in_rounds(files: Iterator[Path]) -> Iterator[list[Path]]:
    found = list(files)
    return (found[at : at + A_ROUND] for at in range(0, len(found), A_ROUND))


def _remove(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
