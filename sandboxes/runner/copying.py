"""A file written, a file read: the steps of each, in pieces, on a file thread.

Owns what a reader of the place sees meanwhile: the old file or the new one, whole. Must never follow a name that it
makes itself, and never wait for what is no regular file.
"""

import errno
import os
import stat
from contextlib import suppress
from functools import partial

from . import frames
from .expecting import REPORTED_BYTES, Expected
from .files import Pool, Refused, Transfer, named, nothing_written, without_report
from .hints import Any
from .paths import Content
from .publishing import beside
from .sending import Outgoing

CREDIT_BYTES = 256 << 10
NEW_FILE_MODE = 0o644
KEY_WITHIN_BYTES = 8 << 20
"""How far a certificate is searched for its key."""


class Write(Transfer):
    """`base`: what a person saw at `path` when they approved this: its SHA-256, "" for nothing, None: nobody looked.
    With a base, the path must also lead through no link, or the bytes would land where nobody looked. `version`: the
    same of what an agent read, and it is told what came of it; links are followed. `size` is None when whoever sends it
    does not know yet; then its END alone says that it is whole. `seal`: a person puts a protected file there, which is
    sealed at once: through no link either, and whatever the modes of the sandbox's user are."""

    def __init__(
        self, pool: Pool, job_id: str, ref: int, path: str, *, size: int | None, mode: int | None,
        base: str | None = None, version: str | None = None, seal: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(pool, job_id, ref, path)
        self._expected = Expected(path, base, version, exactly=seal)
        self._kept: bytearray | None = bytearray()
        self._seal = seal
        self._key: Content | None = None
        self._size = size
        self._mode = mode
        self._real = self._temporary = ""
        self._written = 0
        self._credited = 0
        self.do(self._open)

    def content(self, data: bytes, *, last: bool) -> None:
        self.is_whole = last
        self.do(lambda: self._write(data, last))

    def _open(self) -> None:
        if "\0" in self.path or self.path.endswith("/"):
            raise Refused("bad_path", "this names no file")
        self._real = self._led_to()
        self._check_protected()
        if self._seal and not self._expected.is_anything:
            raise Refused("bad_request", "what is sealed replaces whatever is there")
        folder, _ = os.path.split(self._real)
        os.makedirs(folder, exist_ok=True)
        try:
            known = os.stat(self._real)
        except FileNotFoundError:
            known = None
        if known is not None:
            if stat.S_ISDIR(known.st_mode):
                raise IsADirectoryError(errno.EISDIR, "")
            if not stat.S_ISREG(known.st_mode):
                raise Refused("not_a_file", "it is no regular file")
            self._check_holds_no_key()
        self._expected.look(self._real)
        self._asked_mode = self._mode
        if self._mode is None:
            self._mode = stat.S_IMODE(known.st_mode) | self._seal * stat.S_IRUSR if known else NEW_FILE_MODE
        self._temporary, self._fd = beside(self._pool.guard.unmoved(self._real) if self._seal else self._real)

    def _led_to(self) -> str:
        """The real path. Raises Refused when a link leads there that must not."""
        if self._seal:
            self._pool.guard.make_way(os.path.normpath(self.path))
        real = os.path.realpath(self.path)
        self._expected.check_links(real)
        return real

    def _write(self, data: bytes, last: bool) -> None:
        self._sha256.update(data)
        self._written += len(data)
        if self._key is not None and self._key.feed(data):
            raise Refused("protected_path", "what was to be written is a private key; nothing was written")
        if self._size is not None and self._written > self._size:
            raise Refused("bad_request", f"more than the {self._size} bytes that were announced")
        if self._kept is not None:
            self._kept += data
            if self._expected.version is None or len(self._kept) > REPORTED_BYTES:
                self._kept = None
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        if last:
            self._publish()
        elif self._written - self._credited >= CREDIT_BYTES:
            self._credited = self._written
            self._pool.tell(self, frames.CREDIT, self._written)

    def _publish(self) -> None:
        if self._size is not None and self._written != self._size:
            raise Refused("bad_request", f"{self._written} bytes came, {self._size} were announced")
        assert self._mode is not None
        if not self._seal:
            os.fchmod(self._fd, self._mode & 0o777)
        os.fsync(self._fd)  # a machine that stops must not leave the name with nothing behind it
        os.close(self._fd)
        self._fd = -1
        with self._pool.publisher.alone(self._real):
            self._check_protected()  # late: what is found must still hold when the place is taken
            self._led_to()
            held_s = self._put()
            self._temporary = ""
        sealed = {"sealed": True} if self._seal else {}
        facts = {"path": self._real, "size": self._written, "sha256": self._sha256.hexdigest(), **sealed}
        self.end({"ok": {**facts, **self._report(), "held_us": round(held_s * 1e6)}})

    def _put(self) -> float:
        publisher, temporary, real = self._pool.publisher, self._temporary, self._real
        if not self._seal:
            return self._expected.put(publisher, temporary, real, self._asked_mode)
        assert self._mode is not None
        from . import putting

        sha256, mode = self._sha256.hexdigest(), self._mode & 0o777
        put = partial(putting.put, publisher.world, temporary, real, sha256, mode, expect=self._led_to)
        return self._pool.guard.put(real, put)

    def _report(self) -> dict[str, Any]:
        if self._expected.version is None:
            return {}
        new, sha256 = None if self._kept is None else bytes(self._kept), self._sha256.hexdigest()
        if new is not None:
            self._pool.versions.keep(self._real, sha256[:12], new)
        report = self._expected.report(new, sha256)
        self.kept_bytes = len(report["diff"]) + sum(len(line[2]) + 40 for line in report["lines"])
        return {"report": report}

    def refused(self, error: Exception) -> dict[str, Any]:
        told = super().refused(error)
        return told if self._expected.version is None else nothing_written(told)

    def forget_output(self) -> None:
        self.result = without_report(self.result)
        self.kept_bytes = 0

    def _check_protected(self) -> None:
        if self._seal:
            self._pool.guard.check_may_seal(self._real)
        else:
            self._pool.guard.refuse(self.path, os.path.realpath(self._real))
            self._key = self._key or self._pool.guard.watch(self._real)

    def _check_holds_no_key(self) -> None:
        """Of what lies there already."""
        if self._key is not None and holds_key(self._real):
            raise Refused("protected_path", "it holds a private key: it can be read, and never written")

    def _drop(self) -> None:
        super()._drop()
        if self._temporary:
            with suppress(OSError):  # somebody of the agent's may have been quicker
                os.unlink(self._temporary)
            self._temporary = ""


def holds_key(path: str) -> bool:
    with open(path, "rb") as file:
        content, left = Content(path), KEY_WITHIN_BYTES
        while left > 0 and not content.is_decided and (data := file.read(min(left, frames.CHUNK_BYTES))):
            content.feed(data)
            left -= len(data)
        return content.found


class Read(Outgoing):
    """From `offset` on (a negative one counts from the end) up to `limit` bytes. `fixed`: no byte beyond the size that
    INFO told, however the file grows; files without a size, as those of /proc, are read to their end all the same."""

    def __init__(self, pool: Pool, ref: int, path: str, *, offset: int, limit: int | None, fixed: bool = False) -> None:
        super().__init__(pool, ref, path)
        self._offset = offset
        self._left = limit
        self._fixed = fixed
        self.do(self._open)

    def _open(self) -> None:
        if "\0" in self.path:
            raise Refused("bad_path", "a name holds no NUL")
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except FileNotFoundError:
            if (real := os.path.realpath(self.path)) != os.path.normpath(self.path):
                why = f"it leads through a link to {named(real)}, and there is no such file"
                raise Refused("file_not_found", why, leads_to=real) from None
            raise
        found = os.fstat(self._fd)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "")
        if not stat.S_ISREG(found.st_mode):
            raise Refused("not_a_file", "it is no regular file")
        size, offset = found.st_size, self._offset
        start = offset if offset >= 0 else max(0, size + offset)
        if self._fixed and size:
            self._left = min(size if self._left is None else self._left, max(0, size - start))
        os.lseek(self._fd, start, os.SEEK_SET)
        real, mode = os.path.realpath(self.path), stat.S_IMODE(found.st_mode)
        is_sealed = self._pool.guard.is_sealed(real)
        self.opened({"path": real, "size": size, "mode": mode, "names": found.st_nlink, "sealed": is_sealed})

    def next_piece(self) -> bytes:
        want = frames.CHUNK_BYTES if self._left is None else min(frames.CHUNK_BYTES, self._left)
        data = os.read(self._fd, want) if want else b""
        if self._left is not None:
            self._left -= len(data)
        return data
