"""What lies in sandboxes, and what was kept of it."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Literal, Self

from pydantic import Field

from sandboxes import models as rows
from sandboxes.engine import Entry, Listing

from .shared import Answer, Body, OneLine, Time, shown

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999; a sandbox may claim any


class FileEntry(Answer):
    path: str = Field(description="Absolute. Bytes that are no UTF-8 show as U+FFFD.")
    path_base64: str | None = Field(description="The exact bytes of a path that is not UTF-8; else null.")
    type: Literal["file", "dir", "link", "other"]
    size: int
    mode: int = Field(description="As a number: 0o755 is 493.")
    mtime: Time

    @classmethod
    def of(cls, entry: Entry, top: str) -> Self:
        path = (PurePosixPath(top) / entry.path.decode(errors="replace")).as_posix()
        plain = entry.path.decode(errors="replace").encode() == entry.path
        return cls(
            path=path,
            path_base64=None if plain else base64.b64encode(top.rstrip("/").encode() + b"/" + entry.path).decode(),
            type=entry.type,
            size=entry.size,
            mode=entry.mode,
            mtime=EPOCH + timedelta(milliseconds=max(FIRST_MS, min(entry.mtime_ms, LAST_MS))),
        )


class Files(Answer):
    items: list[FileEntry]
    truncated: bool

    @classmethod
    def of(cls, found: Listing) -> Self:
        return cls(items=[FileEntry.of(entry, found.path) for entry in found.entries], truncated=found.truncated)


class NewArtifact(Body):
    model_config = shown(path="/work/report.pdf", title="The report")
    path: str = Field(min_length=1, max_length=4096)
    title: OneLine = Field("", max_length=200)


class Artifact(Answer):
    """A copy of a file that outlives its sandbox."""

    id: str
    path: str = Field(description="Where it was in the sandbox.")
    title: str
    size: int
    sha256: str
    sandbox_id: str
    agent_id: str | None
    action_ids: list[str] = Field(
        description="The writes to this path, oldest first. What commands did to it is not known: none is named."
    )
    created_at: Time
    expires_at: Time

    @classmethod
    def of(cls, row: rows.Artifact) -> Self:
        return cls.model_validate({name: getattr(row, name) for name in cls.model_fields})


class Artifacts(Answer):
    items: list[Artifact]
    next_cursor: str | None
