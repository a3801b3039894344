"""Contents too large for a row, kept once under their SHA-256. Written before the row that names them, so that a row
never names what is not there; a file that no row names is garbage, not a fault, and goes after an hour.

A call that is refused must leave nothing: what `pack` and `hold` put into arguments stays in memory, and what arrived
piece by piece in a file without a name, until `keep_all`.
"""

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage, storages

from .digest import INLINE_BYTES, reference

PIECE_BYTES = 1 << 20
GARBAGE_AFTER_S = 3600  # a content must be named by a row within this time after it was kept
_one_at_a_time = threading.Lock()  # a file that is found here, to be named, is not removed between the two


class Held(dict[str, Any]):
    """A reference {sha256, size} whose content is in memory, and maybe nowhere else."""

    def __init__(self, content: bytes) -> None:
        super().__init__(reference(content))
        self._content = content

    @property
    def content(self) -> bytes:
        return self._content

    def pieces(self) -> Iterator[bytes]:
        yield self._content

    def put(self, path: Path) -> None:
        _write(path, self._content)


class Arrived(Held):
    """One whose content came piece by piece, into a file of its own that nobody else knows."""

    def __init__(self, file: Path, *, sha256: str, size: int) -> None:
        dict.__init__(self, sha256=sha256, size=size)
        self._file = file

    @property
    def content(self) -> bytes:
        return self._file.read_bytes()

    def pieces(self) -> Iterator[bytes]:
        with self._file.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    def put(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.replace(self._file, path)


class Arriving:
    """A content on its way in: on disk from the first byte on, never in memory. Blocking. `discard` it when it was not
    kept; one whose server died goes with the garbage."""

    def __init__(self) -> None:
        folder = Path(_store().path("arriving"))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        self._out, self._file = os.fdopen(handle, "wb"), Path(name)
        self._sha256, self.size = hashlib.sha256(), 0

    def write(self, piece: bytes) -> None:
        self._out.write(piece)
        self._sha256.update(piece)
        self.size += len(piece)

    def whole(self) -> bytes | Arrived:
        """A short one as bytes, as `pack` takes texts; what `hold` makes of a long one."""
        self._out.flush()
        os.fsync(self._out.fileno())
        self._out.close()
        if self.size <= INLINE_BYTES:
            return self._file.read_bytes()
        return Arrived(self._file, sha256=self._sha256.hexdigest(), size=self.size)

    def discard(self) -> None:
        self._out.close()
        self._file.unlink(missing_ok=True)


def _store() -> FileSystemStorage:
    store = storages["blobs"]
    assert isinstance(store, FileSystemStorage)
    return store


def _path(sha256: str) -> Path:
    return Path(_store().path(f"{sha256[:2]}/{sha256}"))


def hold(content: bytes) -> Held:
    return Held(content)


def pack(text: str) -> str | Held:
    """A text as it stands in arguments: itself up to 4 KiB, else a reference to it."""
    content = text.encode()
    return text if len(content) <= INLINE_BYTES else Held(content)


def pack_bytes(content: bytes) -> str | Held:
    """The same for bytes. A reference to what is no text, or has a NUL: PostgreSQL takes none into a row."""
    if len(content) <= INLINE_BYTES and b"\0" not in content:
        try:
            return content.decode()
        except UnicodeDecodeError:
            pass
    return Held(content)


def keep_all(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with every content that they held on disk, whole, and no longer in them."""
    return {name: keep(value) if isinstance(value, Held) else value for name, value in arguments.items()}


def keep(held: Held) -> dict[str, Any]:
    """On return the content is on disk, whole, for an hour at least."""
    path = _path(held["sha256"])
    if not _found_young(path):
        held.put(path)
    return dict(held)


def _found_young(path: Path) -> bool:
    with _one_at_a_time:
        try:
            os.utime(path)
        except FileNotFoundError:
            return False
        return True


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.replace(name, path)  # two writers of one hash write the same bytes
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def content(value: str | Mapping[str, Any]) -> bytes:
    """The bytes that `pack` or `hold` put away, or a short text's own."""
    if isinstance(value, Held):
        return value.content
    if isinstance(value, str):
        return value.encode()
    return _path(value["sha256"]).read_bytes()


def path(value: Mapping[str, Any]) -> Path:
    """Where a kept content lies, for streaming it."""
    return _path(value["sha256"])


def sizes(arguments: Mapping[str, Any]) -> dict[str, int]:
    """SHA-256 → bytes of every content that arguments refer to. A mapping of texts, such as `env`, is no reference."""
    return {
        value["sha256"]: value["size"]
        for value in arguments.values()
        if isinstance(value, Mapping) and set(value) == {"sha256", "size"} and isinstance(value["size"], int)
    }


def files() -> Iterator[Path]:
    """Everything that lies there, folder by folder."""
    root = Path(_store().location)
    for folder in sorted(root.iterdir()) if root.exists() else ():
        yield from sorted(folder.iterdir()) if folder.is_dir() else ()


def is_old(file: Path) -> bool:
    try:
        return file.stat().st_mtime < time.time() - GARBAGE_AFTER_S
    except FileNotFoundError:
        return False


def remove_old(file: Path) -> bool:
    """Unless somebody has just found it there and is about to name it."""
    with _one_at_a_time:
        if old := is_old(file):
            file.unlink(missing_ok=True)
        return old
