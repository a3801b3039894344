"""Contents too large for a row, kept once under their SHA-256. Written before the row that names them, so that a row
never names what is not there; a file that no row names is garbage, not a fault."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage, storages

from .digest import INLINE_BYTES, reference


def _path(sha256: str) -> Path:
    store = storages["blobs"]
    assert isinstance(store, FileSystemStorage)
    return Path(store.path(f"{sha256[:2]}/{sha256}"))


def keep(content: bytes) -> dict[str, Any]:
    """The reference {sha256, size}; on return the content is on disk, whole."""
    found = reference(content)
    path = _path(found["sha256"])
    if path.exists():
        return found
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
    return found


def pack(text: str) -> str | dict[str, Any]:
    """A text as it stands in arguments: itself up to 4 KiB, else a reference to it."""
    content = text.encode()
    return text if len(content) <= INLINE_BYTES else keep(content)


def content(value: str | Mapping[str, Any]) -> bytes:
    """The bytes that `pack` or `keep` put away, or a short text's own."""
    if isinstance(value, str):
        return value.encode()
    return _path(value["sha256"]).read_bytes()


def path(value: Mapping[str, Any]) -> Path:
    """Where a kept content lies, for streaming it."""
    return _path(value["sha256"])
