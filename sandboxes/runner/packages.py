"""Which new files belong to an installed Python package: those that the RECORD of a wheel names.

Owns the looking for RECORDs in the folders above a file. Asked of what commands have just made alone: a RECORD is a
file like any other, and one that is written later must not take a seal from what has it. Must never follow a link.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress

from .paths import check_name

NAMES, RECORDS, RECORD_BYTES = 5000, 500, 8 << 20
"""Looked at in one folder, read in one folder, read of one."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Packages:
    """Of one sweep, which reads each RECORD once."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self._named: dict[str, frozenset[str]] = {}

    def own(self, path: str) -> bool:
        """Whether a package brought it, as its RECORD says: one beside (`pip install --target`), or in the
        site-packages of a folder above (a virtual environment by any name, `--user`, `--prefix`)."""
        return any(path in self._of(folder) for folder in self._above(path))

    def _above(self, path: str) -> Iterator[str]:
        folder = os.path.dirname(path)
        while any(f"{folder}/".startswith(f"{root}/") for root in self._roots):
            yield folder
            for version in _names(f"{folder}/lib"):
                if version.startswith("python"):
                    yield f"{folder}/lib/{version}/site-packages"
                    yield f"{folder}/lib/{version}/dist-packages"
            folder = os.path.dirname(folder)

    def _of(self, folder: str) -> frozenset[str]:
        if folder not in self._named:
            infos = [name for name in _names(folder) if name.endswith(".dist-info")][:RECORDS]
            found = {path for info in infos for path in _recorded(folder, f"{folder}/{info}/RECORD")}
            self._named[folder] = frozenset(found)
        return self._named[folder]


def _names(folder: str) -> list[str]:
    with suppress(OSError), os.scandir(folder) as found:
        return [entry.name for _, entry in zip(range(NAMES), found, strict=False)]
    return []


def _recorded(folder: str, record: str) -> Iterator[str]:
    """Full paths, of what could be protected by its name."""
    for line in _read(record).splitlines():
        path = os.fsdecode(line.rsplit(b",", 2)[0]).strip('"')
        if path and check_name(os.path.basename(path)):
            yield os.path.normpath(os.path.join(folder, path))


def _read(record: str) -> bytes:
    with suppress(OSError):
        fd = os.open(record, _FLAGS)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return os.read(fd, RECORD_BYTES)
        finally:
            os.close(fd)
    return b""
