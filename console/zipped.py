"""A zip archive as a stream: written piece by piece, each file with its SHA-256 in a manifest that comes last.

Must never hold a file, nor go back in what it has given out.
"""

import asyncio
import hashlib
import json
import zipfile
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime


class _Out:
    """What zipfile writes to; it finds no `tell`, and so writes what needs no going back."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


class Zip:
    """`async for piece in zip.file(…)` for each file in turn, then those of `end`."""

    def __init__(self) -> None:
        self._out = _Out()
        self._zip = zipfile.ZipFile(self._out, "w", zipfile.ZIP_DEFLATED)  # type: ignore[call-overload]
        self._at = datetime.now(UTC).timetuple()[:6]
        self._manifest: list[dict[str, object]] = []

    async def file(self, name: str, pieces: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        sha256, size = hashlib.sha256(), 0
        info = zipfile.ZipInfo(name, self._at)
        info.compress_type = zipfile.ZIP_DEFLATED
        with self._zip.open(info, "w", force_zip64=True) as into:
            async for piece in _each(pieces):
                size += len(piece)
                sha256.update(piece)
                await asyncio.to_thread(into.write, piece)
                yield self._out.take()
        self._manifest.append({"name": name, "size": size, "sha256": sha256.hexdigest()})
        yield self._out.take()

    def missing(self, name: str, why: str) -> None:
        """Said in the manifest: what should be here and is kept no more."""
        self._manifest.append({"name": name, "missing": why})

    async def end(self) -> AsyncIterator[bytes]:
        text = json.dumps({"files": self._manifest}, indent=1).encode()
        async for piece in self.file("manifest.json", [text]):
            yield piece
        self._zip.close()
        yield self._out.take()


async def _each(pieces: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Of what blocks, each on a thread."""
    if isinstance(pieces, AsyncIterable):
        async for piece in pieces:
            yield piece
        return
    left: Iterator[bytes] = iter(pieces)
    while piece := await asyncio.to_thread(lambda: next(left, b"")):
        yield piece
