"""What `glob` and `grep` have in common: where a search begins, how paths are shown, and one page of what was found.

Owns the caps of an answer. On a file thread, with the rights of `agent`.
"""

import json
import os
import stat

from . import frames
from .files import Refused
from .globs import BadPattern, Globs
from .hints import Any
from .sending import Outgoing
from .walking import HIDDEN

WITHIN_S = 10.0
PAGE_BYTES = 32_000
OFFSET_MOST = 20_000
"""Of what may be paged through: so many are looked at for one page, and no more."""
ENTRY_BYTES = 12
"""Of an entry beside its texts, as a model reads it."""


class Told(Outgoing):
    """Its content is one JSON object, in ASCII."""

    _content = b""
    _at = 0

    def tell(self, answer: dict[str, Any]) -> None:
        self._content = json.dumps(answer, separators=(",", ":")).encode("ascii")
        self.opened({"size": len(self._content)})

    def next_piece(self) -> bytes:
        data = self._content[self._at : self._at + frames.CHUNK_BYTES]
        self._at += len(data)
        return data


def beginning(path: str) -> str:
    """Where it is, links resolved. `.git` is never searched, not even by its name."""
    if "\0" in path:
        raise Refused("bad_path", "a name holds no NUL")
    top = os.path.realpath(path, strict=True)
    if HIDDEN in top.split("/"):
        raise Refused("bad_path", f"a search leaves {HIDDEN} out; use a command")
    mode = os.stat(top).st_mode
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise Refused("not_a_file", "it is no regular file and no directory")
    os.close(os.open(top, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))  # below, what may not be read is only counted
    return top


def globs(pattern: str) -> Globs:
    try:
        return Globs(pattern)
    except BadPattern as error:
        raise Refused("bad_pattern", f"the pattern {pattern[:200]!r} cannot be used: {error}") from error


def shown(top: str, base: str, path: str) -> str:
    """As an agent may name it: from `base` on if it lies there, else absolute."""
    whole = os.path.join(top, path)
    return whole.removeprefix(base.rstrip("/") + "/") if whole.startswith(base.rstrip("/") + "/") else whole


class Page:
    """`limit` entries from `offset` on, and no more than PAGE_BYTES. One more is looked at, to know if there is."""

    def __init__(self, offset: int, limit: int) -> None:
        self.entries: list[Any] = []
        self.found = 0
        self._offset = offset
        self._limit = limit
        self._left_bytes = PAGE_BYTES
        self._full = False

    @property
    def takes_next(self) -> bool:
        """If it has room for that."""
        return self.found >= self._offset and not self._full

    def put(self, entry: Any, *texts: str) -> None:
        is_taken = self.takes_next
        self.found += 1
        if not is_taken:
            return
        self._left_bytes -= ENTRY_BYTES + sum(len(text.encode(errors="surrogateescape")) for text in texts)
        if len(self.entries) >= self._limit or (self._left_bytes < 0 and self.entries):
            self._full = True
        else:
            self.entries.append(entry)

    def told(self, *, at_least: bool) -> dict[str, Any]:
        """`found`: of all; `next`: the offset to go on from, if there is one."""
        after = self._offset + len(self.entries)
        return {
            "found": self.found,
            "at_least": at_least,
            "truncated": self._full,
            "next": after if self._full and after <= OFFSET_MOST else None,
        }
