"""What a command printed, in files: the beginning of a stream and at least as much of its end, in segments named by the
offset at which they begin. The hub writes them as output comes; a server that died goes on where the files end.

A segment is half of what the sandbox's `output_mb` keeps of a stream, at most 5 MiB. The first is kept for good; of the
later ones the newest two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from django.core.files.storage import FileSystemStorage, storages

from console.workspaces import bus

SEGMENT_BYTES = 5 << 20
PIECE_BYTES = 64 << 10
RING_EVERY_S = 0.1
Name = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class Kept:
    """Where in the files that lies which is still there of a stream: its head and then its tail, as in a Text."""

    parts: tuple[tuple[Path, int, int], ...]  # from where in a file, and how many bytes of it
    head_bytes: int
    total_bytes: int

    @property
    def size_bytes(self) -> int:
        return sum(size for _, _, size in self.parts)

    @property
    def truncated(self) -> bool:
        return self.size_bytes != self.total_bytes

    def pieces(self) -> Iterator[bytes]:
        """Blocking. Of at most PIECE_BYTES. What is removed once the first is there is still read to its end."""
        with ExitStack() as opened:
            files = [opened.enter_context(path.open("rb", buffering=0)) for path, _, _ in self.parts]
            for file, (_, begin, left) in zip(files, self.parts, strict=True):
                file.seek(begin)
                while piece := file.read(min(left, PIECE_BYTES)):
                    left -= len(piece)
                    yield piece

    def read(self) -> bytes:
        """Blocking."""
        return b"".join(self.pieces())


@dataclass(frozen=True)
class Text:
    """A stream as it can still be shown. `content`, its head and then its tail, is all of it unless `truncated`."""

    content: bytes
    head_bytes: int
    total_bytes: int

    @property
    def truncated(self) -> bool:
        return len(self.content) != self.total_bytes

    @property
    def head(self) -> bytes:
        return self.content[: self.head_bytes]

    @property
    def tail(self) -> bytes:
        return self.content[self.head_bytes :]


def _directory(action_id: str) -> Path:
    store = storages["outputs"]
    assert isinstance(store, FileSystemStorage)
    return Path(store.path(action_id))


@dataclass
class Stream:
    """One stream being written. Not thread-safe: the hub owns it."""

    directory: Path
    name: Name
    size: int = 0  # the offset after the last byte that arrived
    starts: list[int] = field(default_factory=list)
    segment_bytes: int = 0  # of one being written; the most there may be unless said

    def __post_init__(self) -> None:
        self.segment_bytes = self.segment_bytes or SEGMENT_BYTES
        self.starts = sorted(int(file.suffix[1:]) for file in self.directory.glob(f"{self.name}.*"))
        if self.starts:
            self.size = self.starts[-1] + self._file(self.starts[-1]).stat().st_size

    def _file(self, start: int) -> Path:
        return self.directory / f"{self.name}.{start}"

    @property
    def truncated(self) -> bool:
        return self.size > 2 * self.segment_bytes or self.starts not in ([], [0], [0, self.segment_bytes])

    def put(self, offset: int, data: bytes) -> None:
        """Bytes that are here already are skipped; a gap (the runner's ring rolled on) begins a new segment."""
        data = data[max(0, self.size - offset) :]
        if not data:
            return
        offset = max(offset, self.size)
        if offset > self.size and self.starts:
            self.starts.append(offset)
        while data:
            start = self._segment(offset)
            part = data[: start + self.segment_bytes - offset]
            with self._file(start).open("ab") as file:
                file.write(part)
            offset, data = offset + len(part), data[len(part) :]
        self.size = offset
        for start in self.starts[1:-2]:
            self._file(start).unlink(missing_ok=True)
            self.starts.remove(start)

    def _segment(self, offset: int) -> int:
        if not self.starts or offset >= self.starts[-1] + self.segment_bytes:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.starts.append(offset)
        return self.starts[-1]

    def parts(self, begin: int, end: int) -> Iterator[tuple[Path, int, int]]:
        """What lies from `begin` to `end`, as Kept has it; a segment that is not wanted is not in it."""
        for start in self.starts:
            first = max(begin, start)
            if (size := min(end, start + self._file(start).stat().st_size) - first) > 0:
                yield self._file(start), first - start, size


def topic(action_id: str) -> str:
    """What rings when there is more."""
    return f"output:{action_id}"


class Outputs:
    """Both streams of one command; the engine's sink. Rings for who follows it, at most once in RING_EVERY_S."""

    def __init__(self, action_id: str, kept_mb: int = 2 * SEGMENT_BYTES >> 20) -> None:
        directory, half = _directory(action_id), min(kept_mb << 19, SEGMENT_BYTES)
        self.streams: dict[Name, Stream] = {
            "stdout": Stream(directory, "stdout", segment_bytes=half),
            "stderr": Stream(directory, "stderr", segment_bytes=half),
        }
        self.action_id = action_id
        self._rang, self._news = False, False

    async def put(self, stream: Name, offset: int, data: bytes) -> None:
        self.streams[stream].put(offset, data)
        self._news = True
        if not self._rang:
            self._ring()

    def _ring(self) -> None:
        """At once for what comes after a silence; for all that follows within RING_EVERY_S once more after it."""
        self._rang = self._news
        if self._news:
            self._news = False
            bus.announce(topic(self.action_id))
            asyncio.get_running_loop().call_later(RING_EVERY_S, self._ring)

    @property
    def sizes(self) -> dict[Name, int]:
        """Where each stream goes on: what is before is here already, or lost."""
        return {name: stream.size for name, stream in self.streams.items()}

    @property
    def truncated(self) -> bool:
        """Whether an answer with at most 10 MiB of each stream leaves something out."""
        return any(stream.truncated for stream in self.streams.values())


def read(action_id: str, name: Name, total_bytes: int | None = None) -> Text:
    """From any thread. Blocking: at most 10 MiB from disk."""
    found = kept(action_id, name, total_bytes)
    return Text(found.read(), found.head_bytes, found.total_bytes)


def kept(action_id: str, name: Name, total_bytes: int | None = None) -> Kept:
    """From any thread. Blocking: looks at what files there are, and reads none."""
    if total_bytes == 0:
        return Kept((), 0, 0)
    stream = Stream(_directory(action_id), name)
    total = stream.size if total_bytes is None else total_bytes
    pieces = [(start, stream._file(start).stat().st_size) for start in stream.starts]
    head_bytes = pieces[0][1] if pieces and pieces[0][0] == 0 else 0
    later, end = _run([piece for piece in pieces if piece[0] > 0])
    half = max((size for _, size in pieces), default=0)  # where something is left out, one segment is full
    whole = head_bytes + (end - later) == total <= 2 * half  # up to one segment more may lie here
    tail = stream.parts(later if whole else max(later, end - half), end)
    return Kept((*stream.parts(0, head_bytes), *tail), head_bytes=head_bytes, total_bytes=total)


def _run(pieces: list[tuple[int, int]]) -> tuple[int, int]:
    """Where the unbroken run that ends with the last piece begins and ends."""
    if not pieces:
        return 0, 0
    begin, end = pieces[-1][0], sum(pieces[-1])
    for start, size in reversed(pieces[:-1]):
        if start + size != begin:
            break
        begin = start
    return begin, end


def page(action_id: str, name: Name, *, offset: int, limit: int) -> tuple[int, bytes]:
    """Where the bytes returned really begin (later than asked when those are gone), and up to `limit` of them. Without
    any, where they end."""
    stream = Stream(_directory(action_id), name)
    for start in stream.starts:
        file = stream._file(start)
        end = start + file.stat().st_size
        if offset < end:
            begin = max(offset, start)
            with file.open("rb") as source:
                source.seek(begin - start)
                return begin, source.read(limit)
    return stream.size, b""
