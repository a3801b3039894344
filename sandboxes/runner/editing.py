"""An edit of a file by line, or its draft; on a file thread.

Owns what a file is found to be, what is told of a refusal, and that an edit and its draft are judged alike. Must never
write what its person, where there was one, did not see.
"""

import errno
import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from . import edits, frames, reporting
from .files import Pool, Refused, Transfer, named, nothing_written, refusal, without_report
from .hints import Any
from .lines import Text, fault_at
from .paths import Content
from .publishing import beside
from .sending import Outgoing
from .viewing import not_text, opened

FILE_BYTES = 16 << 20
DRAFT_BYTES = 4 << 20
CHANGED = "it changed while it was being edited"


class Wish:
    """What was asked: `attached` are the edits as JSON. `base` and `becomes`: what a person saw, before and after."""

    def __init__(self, path: str, attached: bytes, *, version: Any, base: str | None, becomes: str | None) -> None:
        self.path = path
        self.version, self.base, self.becomes = version, base, becomes
        self._attached = attached

    def edits(self) -> list[edits.Edit]:
        try:
            return edits.read(json.loads(self._attached), self.version)
        except edits.Wrong as error:
            raise Refused("bad_edit", str(error)) from error
        except (ValueError, RecursionError) as error:
            raise Refused("bad_edit", "the edits are no list of plain objects") from error


class File:
    """A regular file as it is found: of one name, the user's to write, text and not too large."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.real, fd = opened(path)
        try:
            self.found = os.fstat(fd)
            self._check_size(self.found.st_size)
            self.data = _all(fd, FILE_BYTES + 1)
            self._check_size(len(self.data))
        finally:
            os.close(fd)
        if self.found.st_nlink > 1:
            raise Refused("hard_link", f"it has {self.found.st_nlink} names (hard links), which an edit would part")
        if not os.access(self.real, os.W_OK, effective_ids=True):
            raise PermissionError(errno.EACCES, "")
        if (offset := fault_at(self.data)) is not None:
            raise not_text(offset)
        from hashlib import sha256

        self.sha256 = sha256(self.data).hexdigest()
        self.version = self.sha256[:12]
        self.text = Text(self.data)

    def _check_size(self, size: int) -> None:
        if size > FILE_BYTES:
            raise Refused("too_large", f"it has {size} bytes; the limit of an edit is {FILE_BYTES}: use a command")

    def stale(self, why: str, numbers: Sequence[int] = (), code: str = "stale_edit") -> Refused:
        return Refused(code, why, version=self.version, lines=reporting.around(self.text, numbers))

    def expect(self) -> None:
        """Raises Refused unless its path still leads to this file, with these bytes."""
        if os.path.realpath(self.path) != self.real:
            raise Refused("stale_edit", "it leads elsewhere now")
        try:
            fd = os.open(self.real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise Refused("stale_edit", "it is not there any more") from error
        try:
            now = os.fstat(fd)
            is_it = (now.st_dev, now.st_ino, now.st_nlink) == (self.found.st_dev, self.found.st_ino, 1)
            if not is_it or now.st_size != len(self.data) or _all(fd, len(self.data) + 1) != self.data:
                raise Refused("stale_edit", CHANGED)
        finally:
            os.close(fd)


def _all(fd: int, most: int) -> bytes:
    parts = []
    while most and (data := os.read(fd, min(most, 1 << 20))):
        parts.append(data)
        most -= len(data)
    return b"".join(parts)


class Judged:
    """What a wish comes to in a file: `new`, its bytes. Raises Refused with fresh lines about what it names."""

    def __init__(self, pool: Pool, wish: Wish) -> None:
        asked = wish.edits()
        pool.guard.refuse(wish.path, os.path.realpath(wish.path))  # before a seal says no in other words
        self.file = file = File(wish.path)
        pool.guard.refuse(file.real)
        numbers = [anchor.number for edit in asked for anchor in (edit.first, edit.last) if anchor is not None]
        numbers += [file.text.count if edit.do == "append" else 1 for edit in asked if edit.first is None]
        if wish.base is not None:
            _check_base(wish, file, numbers)
        then = pool.versions.find(file.real, wish.version)
        try:
            self.changes = edits.judged(asked, wish.version, file.text, file.version, then)
        except edits.Wrong as error:
            raise file.stale(str(error), numbers, "bad_edit") from error
        except edits.Stale as error:
            raise file.stale(str(error), numbers) from error
        self.new = b"".join(edits.pieces(file.text, self.changes))
        self.carried = wish.version != file.version
        _check_key(pool, file.real, file.data, "it holds")
        _check_key(pool, file.real, self.new, "what was to be written is")
        from hashlib import sha256

        self.sha256 = sha256(self.new).hexdigest()
        if wish.becomes not in (None, self.sha256):
            raise file.stale("it would not become what was approved", numbers)

    def report(self) -> dict[str, Any]:
        new, is_other = Text(self.new), self.new != self.file.data
        return {
            "version": self.sha256[:12],
            "changed": is_other,
            "diff": reporting.diff(self.file.text, self.changes) if is_other else "",
            "lines": reporting.changed(new, self.changes),
            "carried": self.carried,
            "moved": reporting.moved(self.file.text, self.changes) if is_other else [],
        }


def _check_base(wish: Wish, file: File, numbers: Sequence[int]) -> None:
    if file.real != os.path.normpath(wish.path):
        raise Refused("bad_path", f"it leads through a link to {named(file.real)}; edit that path itself")
    if file.sha256 != wish.base:
        raise file.stale("it is no longer the version this edit was approved for", numbers)


def _check_key(pool: Pool, path: str, data: bytes, whose: str) -> None:
    content: Content | None = pool.guard.watch(path)
    if content is not None and content.feed(data):
        raise Refused("protected_path", f"{whose} a private key, which can be read and never written")


class Edit(Transfer):
    def __init__(self, pool: Pool, job_id: str, ref: int, wish: Wish) -> None:
        super().__init__(pool, job_id, ref, wish.path)
        self._wish = wish
        self._temporary = ""
        self.is_whole = True
        self.do(self._edit)

    def _edit(self) -> None:
        with self._pool.publisher.alone(os.path.realpath(self.path)):
            judged = Judged(self._pool, self._wish)
            held_s = self._publish(judged) if judged.new != judged.file.data else 0.0
        report = judged.report()
        self._pool.versions.keep(judged.file.real, report["version"], judged.new)
        self.kept_bytes = len(report["diff"]) + sum(len(line[2]) + 40 for line in report["lines"])
        facts = {"path": judged.file.real, "size": len(judged.new), "sha256": judged.sha256}
        self.end({"ok": {**facts, "report": report, "held_us": round(held_s * 1e6)}})

    def _publish(self, judged: Judged) -> float:
        real = judged.file.real
        self._temporary, self._fd = beside(real)
        view = memoryview(judged.new)
        while view:
            view = view[os.write(self._fd, view) :]
        os.fsync(self._fd)
        try:
            held_s = self._pool.publisher.replace(self._temporary, real, judged.file.expect)
        except Refused as error:
            raise with_fresh(error, self.path) from error
        self._temporary = ""
        self._drop()
        return held_s

    def refused(self, error: Exception) -> dict[str, Any]:
        return nothing_written(refusal(error, self.path))

    def forget_output(self) -> None:
        self.result = without_report(self.result)
        self.kept_bytes = 0

    def _drop(self) -> None:
        super()._drop()
        if self._temporary:
            with suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = ""


def with_fresh(error: Refused, path: str) -> Refused:
    """The same refusal with the top of the file as it is now, if it still is a text of that name."""
    if error.code != "stale_edit" or error.more:
        return error
    try:
        return File(path).stale(str(error), [1])
    except (Refused, OSError):
        return error


class Draft(Outgoing):
    """Its content: the old bytes, then the new ones."""

    def __init__(self, pool: Pool, ref: int, wish: Wish) -> None:
        super().__init__(pool, ref, wish.path)
        self._wish = wish
        self._left = memoryview(b"")
        self.do(self._judge)

    def _judge(self) -> None:
        judged = Judged(self._pool, self._wish)
        file = judged.file
        for size in (len(file.data), len(judged.new)):
            if size > DRAFT_BYTES:
                raise Refused("too_large", f"{size} bytes are more than a person can be shown; use a command")
        self._pool.versions.keep(file.real, file.version, file.data)
        self._left = memoryview(file.data + judged.new)
        facts = {"path": file.real, "mode": stat.S_IMODE(file.found.st_mode), "sha256": file.sha256}
        self.opened({**facts, "old_bytes": len(file.data), "carried": judged.carried})

    def next_piece(self) -> bytes:
        piece, self._left = self._left[: frames.CHUNK_BYTES], self._left[frames.CHUNK_BYTES :]
        return bytes(piece)

    def refused(self, error: Exception) -> dict[str, Any]:
        return nothing_written(refusal(error, self.path))
