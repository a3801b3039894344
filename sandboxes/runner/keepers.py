"""Starting keepers (keeper.c), and talking to them.

Owns the processes that PID 1 itself starts and the files between them and it. Must never start anything but a keeper.
"""

import os
import signal
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from . import rights
from .loop import Loop

ORDER_MAX_BYTES = 4 << 20
STDIN_EMPTY, HAS_SCRIPT = 1, 2
LOWEST_FREE_FD = 10

_REPORT = struct.Struct("=Bxxxi")
_U32 = struct.Struct("=I")


class Order:
    """What one command is. `processes` bounds all of the sandbox's user, `open_files` each of them. As root it is
    without a capability."""

    def __init__(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], processes: int, open_files: int, *,
        stdin: bytes = b"", script: bytes = b"", stdin_stays_open: bool = False, as_root: bool = False,
    ) -> None:  # fmt: skip
        self.argv, self.cwd, self.env = argv, cwd, env
        self.processes, self.open_files = processes, open_files
        self.stdin, self.script = stdin, script
        self.stdin_stays_open, self.as_root = stdin_stays_open, as_root

    def pack(self) -> bytes:
        """ValueError when it cannot be said: a NUL inside a word, or more than a keeper takes."""
        flags = (0 if self.stdin or self.stdin_stays_open else STDIN_EMPTY) | (HAS_SCRIPT if self.script else 0)
        uid, gid = (0, 0) if self.as_root else (rights.AGENT_UID, rights.AGENT_GID)
        numbers = (flags, uid, gid, self.processes, self.open_files, len(self.script))
        env = [f"{name}={value}" for name, value in self.env.items()]
        body = b"".join(
            (struct.pack("=6I", *numbers), self.script, _word(self.cwd), _words(env), _words(self.argv)),
        )
        if len(body) > ORDER_MAX_BYTES:
            raise ValueError(f"the command with its environment has {len(body)} bytes")
        return _U32.pack(len(body)) + body


def _word(text: str) -> bytes:
    if "\0" in text:
        raise ValueError("a NUL inside an argument")
    data = os.fsencode(text) + b"\0"
    return _U32.pack(len(data)) + data


def _words(texts: Sequence[str]) -> bytes:
    return b"".join((_U32.pack(len(texts)), *(_word(text) for text in texts)))


def reserve_low_fds() -> None:
    """A keeper gets its files as 0 to 4: none of our own may sit there, or placing one would close another."""
    while (fd := os.open("/dev/null", os.O_RDWR)) < LOWEST_FREE_FD:
        pass
    os.close(fd)


class Keeper:
    """One keeper and its waiting child. `order_fd`: silent end-of-file when the command runs, else five bytes."""

    def __init__(self, nursery: socket.socket) -> None:
        stdin_r, self.stdin_fd = os.pipe()
        self.stdout_fd, stdout_w = os.pipe()
        self.stderr_fd, stderr_w = os.pipe()
        self._order, order = socket.socketpair()
        self._line, line = socket.socketpair()
        given = (stdin_r, stdout_w, stderr_w, order.fileno(), line.fileno())
        try:
            socket.send_fds(nursery, [b"k"], given)
        except BaseException:
            self.abandon()
            raise
        finally:
            for fd in given[:3]:
                os.close(fd)
            order.close()
            line.close()
        for fd in (self.stdin_fd, self.stdout_fd, self.stderr_fd):
            os.set_blocking(fd, False)
        self.order_fd, self.line_fd = self._order.fileno(), self._line.fileno()
        self._line.setblocking(False)

    def give(self, order: bytes) -> None:
        """The child reads it at once (it is still our code), so this does not wait for anything of the agent's."""
        self._order.sendall(order)
        self._order.setblocking(False)

    def failure(self) -> tuple[str, int] | None:
        """Stage and errno when the command could not be started; None when it runs, or ran."""
        try:
            answer = self._order.recv(5)
        except (BlockingIOError, ConnectionError):
            return None  # it has ended, and the nursery has yet to close what it passed on; or it was killed unread
        return (chr(answer[0]), int(_U32.unpack(answer[1:])[0])) if len(answer) == 5 else None

    def reports(self) -> list[tuple[str, int]] | None:
        """('E', exit status), ('S', 128 + the signal that ended it), ('Z', processes that signals met);
        empty: the keeper is gone; None: nothing yet."""
        try:
            data = self._line.recv(64 * _REPORT.size)
        except BlockingIOError:
            return None
        except ConnectionError:
            return []
        return [(chr(kind), value) for kind, value in _REPORT.iter_unpack(data[: len(data) // 8 * 8])]

    def signal_tree(self, number: int) -> None:
        with suppress(OSError):  # a keeper that ended has no tree
            self._line.send(bytes([number]))

    def close(self) -> None:
        """The lines; the command's own three files belong to whoever reads them."""
        self._order.close()
        self._line.close()

    def abandon(self) -> None:
        """A spare that is not wanted: its child ends when its line does."""
        self.close()
        for fd in (self.stdin_fd, self.stdout_fd, self.stderr_fd):
            os.close(fd)


class Keepers:
    """Has a keeper ready ahead of need, forked by a nursery so that nobody waits for it; and reaps."""

    def __init__(self, binary: str) -> None:
        self._binary = binary
        self._spare: Keeper | None = None
        self._nursery: socket.socket | None = None

    def start(self, order: bytes) -> Keeper:
        """A keeper that has taken `order`. A spare that something killed meanwhile has not run it, another one can."""
        if self._spare is not None:
            keeper, self._spare = self._spare, None
            try:
                keeper.give(order)
                return keeper
            except OSError:
                keeper.abandon()
        keeper = self._new()
        try:
            keeper.give(order)
        except OSError:
            keeper.abandon()
            raise
        return keeper

    def make_ready(self) -> None:
        if self._spare is None:
            with suppress(OSError):  # then the next command tries again, and is told
                self._spare = self._new()

    def _new(self) -> Keeper:
        if self._nursery is not None:
            try:
                return Keeper(self._nursery)
            except OSError:  # something killed it; its keepers live on under PID 1
                self._nursery.close()
        self._nursery, its = socket.socketpair()
        null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
        place = (os.POSIX_SPAWN_DUP2, its.fileno(), 3)
        with rights.plain_root():
            os.posix_spawn(self._binary, ["keeper"], {}, file_actions=[*null, place], setsigmask=[])
        its.close()
        return Keeper(self._nursery)

    def reap(self) -> None:
        """Whatever ended under PID 1: the nursery, and what a keeper that was itself killed left behind."""
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def take_signals(loop: Loop, reap: Callable[[], None]) -> None:
    loop.on_wake = reap
    signal.set_wakeup_fd(loop.wake_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
