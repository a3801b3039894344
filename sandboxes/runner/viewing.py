"""A file looked at by an agent: a part of its text with tags, or of its bytes; on a file thread.

Owns what is told of what cannot be shown: names that are there instead. Must never hold a large file, and never wait
for what is no regular file.
"""

import json
import os
import stat
from collections.abc import Iterator

from . import frames
from .files import Pool, Refused, named
from .hints import Any
from .sending import Outgoing
from .tagged import LINES, NotText, Scan
from .versions import FILE_BYTES

PIECE_BYTES = 256 << 10
DATA_BYTES = 24 << 10
NAMES_LOOKED_AT, NAMES, NEAREST = 20_000, 100, 5


class View(Outgoing):
    """Its content is one JSON object, as `Box.view` tells it."""

    def __init__(
        self, pool: Pool, ref: int, path: str, *, offset: int | None, limit: int | None, form: str = "text"
    ) -> None:
        super().__init__(pool, ref, path)
        if form not in ("text", "hex", "base64"):
            raise ValueError(form)
        self._offset, self._limit, self._form = offset, limit, form
        self._content = b""
        self._at = 0
        self.do(self._look)

    def _look(self) -> None:
        real, self._fd = opened(self.path)
        found = self._text(real) if self._form == "text" else self._bytes()
        self._drop()
        self._content = json.dumps({"path": real, **found}, separators=(",", ":")).encode("ascii")
        self.opened({"path": real})

    def _chunks(self) -> Iterator[bytes]:
        """As much as there was at first, however it grows; what has no size, as in /proc, to its end."""
        left = os.fstat(self._fd).st_size or 1 << 62
        while left and self.ref is not None and (data := os.read(self._fd, min(PIECE_BYTES, left))):
            left -= len(data)
            yield data

    def _text(self, real: str) -> dict[str, Any]:
        scan = Scan(max(self._offset or 1, 1), LINES if self._limit is None else self._limit)
        kept: list[bytes] | None = [] if os.fstat(self._fd).st_size <= FILE_BYTES else None
        try:
            for piece in self._chunks():
                scan.feed(piece)
                if kept is not None:
                    kept.append(piece)
            found = scan.result()
        except NotText as error:
            raise not_text(
                error.offset, "; its bytes come by a command, or with `as` where the tool has that"
            ) from error
        if kept is not None:
            self._pool.versions.keep(real, found["version"], b"".join(kept))
        return found

    def _bytes(self) -> dict[str, Any]:
        import base64
        from hashlib import sha256

        offset, limit = max(self._offset or 0, 0), DATA_BYTES if self._limit is None else self._limit
        end, shown, size, hashed = offset + max(1, min(limit, DATA_BYTES)), bytearray(), 0, sha256()
        for piece in self._chunks():
            shown += piece[max(0, offset - size) : max(0, end - size)]
            size += len(piece)
            hashed.update(piece)
        data = shown.hex() if self._form == "hex" else base64.b64encode(shown).decode()
        following = offset + len(shown) if shown and offset + len(shown) < size else None
        facts = {"version": hashed.hexdigest()[:12], "size": size, "offset": offset, "data": data}
        return {**facts, "truncated": following is not None, "next": following}

    def next_piece(self) -> bytes:
        data = self._content[self._at : self._at + frames.CHUNK_BYTES]
        self._at += len(data)
        return data


def not_text(offset: int, instead: str = "") -> Refused:
    return Refused("not_utf8", f"byte {offset} is a NUL or no UTF-8, so this is no text{instead}", offset=offset)


def opened(path: str) -> tuple[str, int]:
    """The real path and the open file. Raises Refused with names that are there, or OSError.

    What tells of this very process is hidden from the user, and looks as if it were not there."""
    if "\0" in path:
        raise Refused("bad_path", "a name holds no NUL")
    real = os.path.realpath(path)
    if f"{real}/".startswith(f"/proc/{os.getpid()}/"):
        raise Refused("permission_denied_in_sandbox", "it tells of the process that would read it here; run a command")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise missing(path, real) from error
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind):
        return real, fd
    os.close(fd)
    if stat.S_ISDIR(kind):
        names = sorted(_names(real))
        raise Refused("is_a_directory", "it is a directory", names=names[:NAMES], truncated=len(names) > NAMES)
    raise Refused("not_a_file", "it is no regular file")


def missing(path: str, real: str) -> Refused:
    """With the names nearest to the first part of it that is not there."""
    import difflib

    folder, name = os.path.split(real.rstrip("/"))
    while folder != "/" and not os.path.isdir(folder):
        folder, name = os.path.split(folder)
    known = {each.rstrip("/").lower(): each for each in _names(folder)}
    near = difflib.get_close_matches(name.lower(), known, n=NEAREST, cutoff=0.6)
    leads = f"it leads through a link to {named(real)}, where " if os.path.islink(path) else ""
    return Refused(
        "file_not_found", f"{leads}there is no such file", nearest=[os.path.join(folder, known[each]) for each in near]
    )


def _names(folder: str) -> list[str]:
    """Some of them: a directory's with a slash."""
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(NAMES_LOOKED_AT), strict=False):
                found.append(entry.name + ("/" if _is_dir(entry) else ""))
    except OSError:
        pass
    return found


def _is_dir(entry: os.DirEntry[str]) -> bool:
    """A link in a loop, or to where one may not look, leads to none."""
    try:
        return entry.is_dir()
    except OSError:
        return False
