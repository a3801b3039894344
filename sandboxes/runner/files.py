"""Files written and read on behalf of the host, with the rights of the user `agent` and no others.

Owns the file threads and the transfers. Must never touch a path outside a file thread: only those have given up
root's rights. A file appears whole or not at all: it is written beside its place and renamed.
"""

import errno
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from . import frames, rights
from .hints import TYPE_CHECKING, Any
from .loop import Loop
from .versions import Versions

if TYPE_CHECKING:
    from .guarding import Guard
    from .programs import Programs
    from .publishing import Publisher

THREADS = 3
WINDOW_BYTES = 3 << 19
"""Of content under way in one transfer, either direction."""

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
    errno.EBUSY: "protected_path",  # a seal, or a folder above one
    errno.EFBIG: "no_space",
}
_WORDS = {
    "file_not_found": "there is no such file",
    "is_a_directory": "it is a directory",
    "permission_denied_in_sandbox": "the sandbox's user may not do that",
    "protected_path": "it is sealed, or holds something that is",
    "no_space": "no space is left in the sandbox",
}

_LASTING = {"path", "size", "sha256", "sealed", "code", "detail"}

Send = Callable[..., None]


class Refused(Exception):
    """`more`: facts that help to try again, told as they stand."""

    def __init__(self, code: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.code = code
        self.more = more


def named(path: str) -> str:
    """A path that nobody asked for, such as where a link leads, inside a sentence: one that could end it is quoted."""
    return path if path.isprintable() else ascii(path)


def refusal(error: Exception, path: str) -> dict[str, Any]:
    """What the host is told: a stable code, and a sentence that names the file."""
    if isinstance(error, Refused):
        code, why = error.code, str(error)
    elif isinstance(error, OSError) and error.errno is not None:
        code = _CODES.get(error.errno, "sandbox_error")
        why = _WORDS.get(code) or os.strerror(error.errno).lower()
    else:
        code, why = "bad_path", str(error)
    more = error.more if isinstance(error, Refused) else {}
    return {"error": {"code": code, "detail": f"{path}: {why}.", "path": path, **more}}


def nothing_written(told: dict[str, Any]) -> dict[str, Any]:
    """A refusal, for an agent that has to know first of all."""
    told["error"]["detail"] = f"Nothing was written. {told['error']['detail']}"
    return told


def without_report(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """What stays of a result that the host has: whatever it was, but not what an agent was told of the file."""
    if result is None:
        return None
    return {half: {name: facts[name] for name in facts if name in _LASTING} for half, facts in result.items()}


class Transfer:
    """One file under way. Its steps run one after the other, on whichever file thread is free."""

    def __init__(self, pool: "Pool", job_id: str, ref: int, path: str) -> None:
        self.id = job_id
        self.ref: int | None = ref
        self.path = path
        self.result: dict[str, Any] | None = None
        self.tree_empty = True
        self.kept_bytes = 0
        self.is_whole = False  # all that it needs is here: it is done, once, whether somebody waits for it or not
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
                self.end(self.refused(error))

    def refused(self, error: Exception) -> dict[str, Any]:
        return refusal(error, self.path)

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
        if self.result is None and not self.is_whole:
            self.abort()
        self.ref = None

    def acked(self, flag: int, offset: int) -> None:
        """Only a read is acknowledged."""

    def content(self, data: bytes, *, last: bool) -> None:
        """Only a write takes any."""

    def forget_output(self) -> None:
        """Keeps none."""


class Pool:
    """The file threads. `programs` and `publisher` are set by the runner: what a file thread has run, its loop starts;
    and all that takes a file's place goes one way."""

    programs: "Programs"
    publisher: "Publisher"

    def __init__(
        self, loop: Loop, changed: Callable[[], None], tell: Callable[[Transfer, int, int], None], guard: "Guard"
    ) -> None:
        self.loop = loop
        self.guard = guard
        self.changed = changed
        self._tell = tell
        self.versions = Versions()
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
