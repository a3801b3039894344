"""A file written, a file read: the steps of each, in pieces, on a file thread.

Owns what a reader of the place sees meanwhile: the old file or the new one, whole. Must never follow a name that it
makes itself, and never wait for what is no regular file.
"""

import errno
import os
import stat
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any

from . import frames
from .files import Pool, Refused, Send, Transfer

WINDOW_BYTES = 1 << 20
"""Of content under way in one transfer, either direction."""
CREDIT_BYTES = 256 << 10
NEW_FILE_MODE = 0o644


class Write(Transfer):
    """`base`: what a person saw at `path` when they approved this: its SHA-256, "" for nothing, None: nobody looked.
    With a base, the path must also lead through no link, or the bytes would land where nobody looked."""

    def __init__(
        self, pool: Pool, job_id: str, ref: int, path: str, *, size: int, mode: int | None, base: str | None = None
    ) -> None:
        super().__init__(pool, job_id, ref, path)
        self._base = base
        self._size = size
        self._mode = mode
        self._real = self._temporary = ""
        self._written = 0
        self._credited = 0
        self.do(self._open)

    def content(self, data: bytes, *, last: bool) -> None:
        self.do(lambda: self._write(data, last))

    def _open(self) -> None:
        if "\0" in self.path or self.path.endswith("/"):
            raise Refused("bad_path", "this names no file")
        self._real = os.path.realpath(self.path)
        self._check_links()
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
        if self._mode is None:
            self._mode = stat.S_IMODE(known.st_mode) if known is not None else NEW_FILE_MODE
        name = os.path.join(folder, f".sandgate-{os.urandom(8).hex()}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(name, flags, 0o600)
        self._temporary = name

    def _write(self, data: bytes, last: bool) -> None:
        self._sha256.update(data)
        self._written += len(data)
        if self._written > self._size:
            raise Refused("bad_request", f"more than the {self._size} bytes that were announced")
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        if last:
            self._publish()
        elif self._written - self._credited >= CREDIT_BYTES:
            self._credited = self._written
            self._pool.tell(self, frames.CREDIT, self._written)

    def _publish(self) -> None:
        if self._written != self._size:
            raise Refused("bad_request", f"{self._written} bytes came, {self._size} were announced")
        self._check_links()
        self._check_base()
        assert self._mode is not None
        os.fchmod(self._fd, self._mode & 0o777)
        os.close(self._fd)
        self._fd = -1
        os.rename(self._temporary, self._real)
        self._temporary = ""
        self.end({"ok": {"path": self._real, "size": self._written, "sha256": self._sha256.hexdigest()}})

    def _check_links(self) -> None:
        real = os.path.realpath(self.path)
        if self._base is not None and real != os.path.normpath(self.path):
            raise Refused("bad_path", f"it leads through a link to {real}; write to that path itself")

    def _check_base(self) -> None:
        if self._base is not None and _hash_of(self._real) != self._base:
            raise Refused("stale_edit", "it is no longer the version this write was made for; nothing was written")

    def _drop(self) -> None:
        super()._drop()
        if self._temporary:
            with suppress(OSError):  # somebody of the agent's may have been quicker
                os.unlink(self._temporary)
            self._temporary = ""


def _hash_of(path: str) -> str:
    """ "" when nothing is there."""
    import hashlib

    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


class Read(Transfer):
    """Tells size and mode (INFO), then content as fast as it is acknowledged, then the hash of what was sent."""

    def __init__(self, pool: Pool, job_id: str, ref: int, path: str, *, offset: int, limit: int | None) -> None:
        super().__init__(pool, job_id, ref, path)
        self._offset = offset
        self._left = limit
        self._sent = 0
        self._acked = 0
        self._pieces: deque[tuple[int, bytes]] = deque()
        self._info: dict[str, Any] | None = None
        self.do(self._open)

    def _open(self) -> None:
        if "\0" in self.path:
            raise Refused("bad_path", "a name holds no NUL")
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        found = os.fstat(self._fd)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "")
        if not stat.S_ISREG(found.st_mode):
            raise Refused("not_a_file", "it is no regular file")
        os.lseek(self._fd, self._offset, os.SEEK_SET)
        info = {"path": os.path.realpath(self.path), "size": found.st_size, "mode": stat.S_IMODE(found.st_mode)}
        self._pool.loop.post(lambda: self._opened(info))
        self._fill()

    def _opened(self, info: dict[str, Any]) -> None:
        self._info = info
        self._pool.changed()

    def _fill(self) -> None:
        """Reads ahead until the window is full; goes on when something was acknowledged."""
        while self._sent - self._acked < WINDOW_BYTES:
            want = frames.CHUNK_BYTES if self._left is None else min(frames.CHUNK_BYTES, self._left)
            data = os.read(self._fd, want) if want else b""
            if not data:
                self._drop()
                self.end({"ok": {"size": self._sent, "sha256": self._sha256.hexdigest()}})
                return
            self._sha256.update(data)
            piece = (self._sent, data)
            self._sent += len(data)
            if self._left is not None:
                self._left -= len(data)
            self._pool.loop.post(partial(self._pieces.append, piece))
            self._pool.loop.post(self._pool.changed)

    def acked(self, flag: int, offset: int) -> None:
        if self._acked < offset <= self._sent:
            self._acked = offset
            self.do(self._fill)

    def produce(self, send: Send) -> bool:
        if self.ref is None:
            return False
        if self._info is not None:
            send(frames.INFO, self._info, ref=self.ref)
            self._info = None
            return True
        if self._pieces:
            offset, data = self._pieces.popleft()
            send(frames.CONTENT, data, ref=self.ref, offset=offset)
            return True
        return super().produce(send)
