"""Files written and read on behalf of the host, with the rights of the user `agent` and no others.

Owns the file threads and the transfers. Must never touch a path outside a file thread: only those have given up
root's rights. A file appears whole or not at all: it is written beside its place and renamed.
"""

import errno
import os
import stat
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any

from . import frames, rights
from .loop import Loop

THREADS = 3
WINDOW_BYTES = 1 << 20
"""Of content under way in one transfer, either direction."""
CREDIT_BYTES = 256 << 10
NEW_FILE_MODE = 0o644

_CODES = {
    errno.ENOENT: "file_not_found",
    errno.EISDIR: "is_a_directory",
    errno.ENOTDIR: "bad_path",
    errno.EEXIST: "bad_path",  # a file where a folder would have to be
    errno.ENAMETOOLONG: "bad_path",
    errno.ELOOP: "bad_path",
    errno.EINVAL: "bad_path",
    errno.EACCES: "permission_denied_in_sandbox",
    errno.EPERM: "permission_denied_in_sandbox",
    errno.EROFS: "permission_denied_in_sandbox",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
}
_WORDS = {
    "file_not_found": "there is no such file",
    "is_a_directory": "it is a directory",
    "permission_denied_in_sandbox": "the sandbox's user may not do that",
    "no_space": "no space is left in the sandbox",
}

Send = Callable[..., None]


class Refused(Exception):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def refusal(error: Exception, path: str) -> dict[str, Any]:
    """What the host is told: a stable code, and a sentence that names the file."""
    if isinstance(error, Refused):
        code, why = error.code, str(error)
    elif isinstance(error, OSError) and error.errno is not None:
        code = _CODES.get(error.errno, "sandbox_error")
        why = _WORDS.get(code) or os.strerror(error.errno).lower()
    else:
        code, why = "bad_path", str(error)
    return {"error": {"code": code, "detail": f"{path}: {why}.", "path": path}}


class Transfer:
    """One file under way. Its steps run one after the other, on whichever file thread is free."""

    def __init__(self, pool: "Pool", job_id: str, ref: int, path: str) -> None:
        self.id = job_id
        self.ref: int | None = ref
        self.path = path
        self.result: dict[str, Any] | None = None
        self.tree_empty = True
        self.kept_bytes = 0
        self._pool = pool
        self._steps: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._busy = False
        self._fd = -1
        self._over = False
        import hashlib  # costs memory and milliseconds at start, which an idle sandbox need not pay

        self._sha256 = hashlib.sha256()

    def do(self, step: Callable[[], None]) -> None:
        with self._lock:
            self._steps.append(step)
            if self._busy:
                return
            self._busy = True
        self._pool.ready(self)

    def run_steps(self) -> None:
        """On a file thread."""
        while True:
            with self._lock:
                if not self._steps:
                    self._busy = False
                    return
                step = self._steps.popleft()
            if self._over:
                continue
            try:
                step()
            except Exception as error:  # the boundary of a file thread: whatever it was, the host gets an answer
                self._drop()
                self.end(refusal(error, self.path))

    def end(self, result: dict[str, Any]) -> None:
        self._over = True
        self._pool.loop.post(lambda: self._ended(result))

    def _ended(self, result: dict[str, Any]) -> None:
        self.result = result
        self._pool.changed()

    def abort(self) -> None:
        """The client is gone, or wants it no more. Nothing of a half-written file stays."""
        self.ref = None
        self.do(self._aborted)

    def _aborted(self) -> None:
        self._drop()
        self.end({"error": {"code": "sandbox_error", "detail": f"{self.path}: given up."}})

    def _drop(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def produce(self, send: Send) -> bool:
        if self.ref is None or self.result is None:
            return False
        send(frames.RESULT, self.result, ref=self.ref)
        self.ref = None
        return True

    def follow(self, ref: int, offsets: dict[int, int]) -> None:
        self.ref = ref
        self._pool.changed()

    def unfollow(self) -> None:
        if self.result is None:
            self.abort()
        self.ref = None

    def acked(self, flag: int, offset: int) -> None:
        """Only a read is acknowledged."""

    def stop(self, when_empty: Callable[[int], None]) -> None:
        if self.result is None:
            self.abort()
        when_empty(0)

    def forget_output(self) -> None:
        """Keeps none."""


class Write(Transfer):
    """`base`: what a person saw at `path` when they approved this: its SHA-256, "" for nothing, None: nobody looked.
    With a base, the path must also lead through no link, or the bytes would land where nobody looked."""

    def __init__(
        self, pool: "Pool", job_id: str, ref: int, path: str, *, size: int, mode: int | None, base: str | None = None
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

    def __init__(self, pool: "Pool", job_id: str, ref: int, path: str, *, offset: int, limit: int | None) -> None:
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


class Pool:
    """The file threads."""

    def __init__(self, loop: Loop, changed: Callable[[], None], tell: Callable[[Transfer, int, int], None]) -> None:
        self.loop = loop
        self.changed = changed
        self._tell = tell
        self._ready: SimpleQueue[Transfer] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def tell(self, transfer: Transfer, kind: int, offset: int) -> None:
        self.loop.post(lambda: self._tell(transfer, kind, offset))

    def ready(self, transfer: Transfer) -> None:
        if len(self._threads) < THREADS:
            thread = threading.Thread(target=self._work, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._ready.put(transfer)

    def _work(self) -> None:
        try:
            rights.thread_as_agent()
        except Exception:  # with root's rights it must touch no file; without file threads this runner is of no use
            os.write(2, b"runner: a file thread could not become the user agent\n")
            os._exit(70)
        while True:
            self._ready.get().run_steps()
