"""What lies in a directory, and below it: names, kinds, sizes. On a file thread, with the rights of `agent`.

Owns the order and the caps, so that neither a hundred thousand names nor a slow disk cost more than a bound. Must never
follow a link below the directory that was asked for.
"""

import heapq
import json
import os
import stat
import time
from collections.abc import Callable, Iterator

from . import frames
from .files import Pool, Refused
from .hints import Any
from .sending import Outgoing

ENTRIES = 10_000
FOUND_BYTES, ENTRY_BYTES = 4 << 20, 60
WITHIN_S = 10.0
LOOK_EACH = 256
"""Names between two looks at the clock."""
_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "link"}


class Listing(Outgoing):
    """Its content is one JSON array of [path below the directory, type, size, mode, mtime in ms]. Names that are no
    UTF-8 go as Python's lone surrogates, which JSON escapes."""

    def __init__(self, pool: Pool, ref: int, path: str, *, depth: int) -> None:
        super().__init__(pool, ref, path)
        self._depth = depth
        self._content = b""
        self._at = 0
        self.do(self._list)

    def _list(self) -> None:
        if "\0" in self.path:
            raise Refused("bad_path", "a name holds no NUL")
        top = os.path.realpath(self.path, strict=True)
        if not stat.S_ISDIR(os.stat(top).st_mode):
            raise Refused("not_a_directory", "it is no directory")
        os.close(os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))  # below, what may not be read is left out
        walk = Walk(top, lambda: self.ref is not None)
        walk.into("", self._depth)
        self._content = json.dumps(walk.found, separators=(",", ":")).encode("ascii")
        self.opened({"path": top, "size": len(self._content), "truncated": walk.truncated})

    def next_piece(self) -> bytes:
        data = self._content[self._at : self._at + frames.CHUNK_BYTES]
        self._at += len(data)
        return data


class Walk:
    """Each directory's names in the order of their bytes, what lies in one right behind it: so what is found is always
    the beginning of the whole, unless time ran out in the middle of one directory."""

    def __init__(self, top: str, wanted: Callable[[], bool]) -> None:
        self.found: list[list[Any]] = []
        self.truncated = False
        self._top = top
        self._wanted = wanted
        self._left_bytes = FOUND_BYTES
        self._late = False
        self._until = time.monotonic() + WITHIN_S

    def into(self, folder: str, depth: int) -> None:
        for name in self._names(folder):
            if self.truncated and not self._late:
                return
            if self._put(path := os.path.join(folder, name)) and depth > 1:
                self.into(path, depth - 1)

    def _names(self, folder: str) -> list[str]:
        """No more than can be put, and one that says that there is more. Never all names of a directory at once."""
        if self._is_over():
            return []
        try:
            with os.scandir(os.path.join(self._top, folder)) as entries:
                names = (entry.name for entry in self._in_time(entries))
                return heapq.nsmallest(ENTRIES - len(self.found) + 1, names, key=os.fsencode)
        except OSError:  # gone meanwhile, or not the agent's to read
            return []

    def _in_time(self, entries: Iterator["os.DirEntry[str]"]) -> Iterator["os.DirEntry[str]"]:
        for count, entry in enumerate(entries):
            if count % LOOK_EACH == 0 and self._is_over():
                return
            yield entry

    def _is_over(self) -> bool:
        if time.monotonic() > self._until or not self._wanted():
            self.truncated = self._late = True
        return self._late

    def _put(self, path: str) -> bool:
        """Whether it is a directory, and there was room for it."""
        try:
            known = os.lstat(os.path.join(self._top, path))
        except OSError:
            return False
        self._left_bytes -= len(os.fsencode(path)) + ENTRY_BYTES
        if len(self.found) >= ENTRIES or self._left_bytes < 0:
            self.truncated = True
            return False
        kind = _TYPES.get(stat.S_IFMT(known.st_mode), "other")
        mtime_ms = known.st_mtime_ns // 1_000_000
        self.found.append([path, kind, known.st_size, stat.S_IMODE(known.st_mode), mtime_ms])
        return kind == "dir"
