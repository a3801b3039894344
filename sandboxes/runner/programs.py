"""A program of the image that the runner itself runs, as `agent`: its stdout piece by piece, then how it ended.

Owns its keeper, its pipes and its end: whatever it started is killed with it. Must never let it write faster than it
is read, and never let more than AT_ONCE of them run.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from .keepers import Keeper, Keepers, Order
from .loop import Loop
from .orphans import kill_orphans

AT_ONCE = 2
STDERR_BYTES = 16 << 10
READ_BYTES = 64 << 10
ORPHANS_S = 0.02
AGAIN_S = 0.02
NOT_STARTED = -1
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
"""Nothing of the sandbox's own, which an agent chooses, and nothing of the home."""


class Ended:
    """`code`: exit status, 128 and a signal's number, or NOT_STARTED; then `stderr` says why."""

    def __init__(self, code: int, stderr: bytes) -> None:
        self.code = code
        self.stderr = stderr


class Programs:
    """All of them. What is too many waits for its turn."""

    def __init__(self, loop: Loop, keepers: Keepers, *, processes: int, open_files: int) -> None:
        self.loop = loop
        self.keepers = keepers
        self._limits = (processes, open_files)
        self._waiting: deque[Program] = deque()
        self._running = 0

    def start(
        self, argv: Sequence[str], cwd: str, took: Callable[[bytes], None], ended: Callable[[Ended], None]
    ) -> "Program":
        """On the loop. `took` and `ended` are called there."""
        order = Order(argv, cwd, {**ENV, "PWD": cwd}, *self._limits)
        program = Program(self, order, took, ended)
        self._waiting.append(program)
        self._start_next()
        return program

    def _start_next(self) -> None:
        while self._waiting and self._running < AT_ONCE:
            self._running += 1
            self._waiting.popleft().begin()

    def withdraw(self, program: "Program") -> bool:
        """Whether it had not begun."""
        if program not in self._waiting:
            return False
        self._waiting.remove(program)
        return True

    def over(self) -> None:
        self._running -= 1
        self.keepers.make_ready()
        self._start_next()


class Program:
    def __init__(
        self, programs: Programs, order: Order, took: Callable[[bytes], None], ended: Callable[[Ended], None]
    ) -> None:
        self._programs = programs
        self._loop = programs.loop
        self._order = order
        self._took = took
        self._ended = ended
        self._keeper: Keeper | None = None
        self._code = 128 + signal.SIGKILL
        self._failure: tuple[str, int] | None = None
        self._stderr = bytearray()
        self._open: dict[int, Callable[[bytes], None]] = {}
        self._paused = self._tree_empty = self._killed = False

    def begin(self) -> None:
        try:
            keeper = self._keeper = self._programs.keepers.start(self._order.pack())
        except (OSError, ValueError) as error:
            self._code = NOT_STARTED
            self._stderr += str(error).encode(errors="replace")
            self._finish()
            return
        os.close(keeper.stdin_fd)
        self._open = {keeper.stdout_fd: self._took, keeper.stderr_fd: self._complain}
        for fd in self._open:
            self._loop.when_readable(fd, partial(self._readable, fd))
        self._loop.when_readable(keeper.line_fd, self._reported)

    def kill(self) -> None:
        """Its end is told all the same; what it still printed is not."""
        self._killed = True
        if self._programs.withdraw(self):
            self._ended(Ended(self._code, b""))
            return
        self.go_on()
        if self._keeper is not None and not self._tree_empty:
            self._keeper.signal_tree(signal.SIGKILL)

    def pause(self) -> None:
        """No more of its stdout for now."""
        if not self._paused and self._keeper is not None and self._keeper.stdout_fd in self._open:
            self._paused = True
            self._loop.forget(self._keeper.stdout_fd)

    def go_on(self) -> None:
        if self._paused and self._keeper is not None:
            self._paused = False
            self._loop.when_readable(self._keeper.stdout_fd, partial(self._readable, self._keeper.stdout_fd))

    def _complain(self, data: bytes) -> None:
        self._stderr += data[: max(0, STDERR_BYTES - len(self._stderr))]

    def _readable(self, fd: int) -> None:
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            if self._tree_empty:  # nobody is left who could write
                self._shut(fd)
            return
        if not data:
            self._shut(fd)
        elif not self._killed:
            self._open[fd](data)

    def _shut(self, fd: int) -> None:
        self._loop.forget(fd)
        os.close(fd)
        del self._open[fd]
        if self._tree_empty and not self._open:
            self._finish()

    def _reported(self) -> None:
        assert self._keeper is not None
        reports = self._keeper.reports()
        for kind, value in reports or ():
            if kind in "ES":
                self._failure = self._keeper.failure()
                self._code = value
                self._keeper.signal_tree(signal.SIGKILL)  # a program that leaves others behind is not the one we meant
            elif kind == "Z":
                self._emptied()
        if reports == []:
            self._keeper_gone()

    def _keeper_gone(self) -> None:
        if self._tree_empty:
            return
        if kill_orphans():
            self._loop.later(ORPHANS_S, self._keeper_gone)
        else:
            self._emptied()

    def _emptied(self) -> None:
        if self._tree_empty:
            return
        self._tree_empty = True
        assert self._keeper is not None
        self._loop.forget(self._keeper.line_fd)
        self._keeper.close()
        if not self._open:
            self._finish()
        self._look_again()

    def _look_again(self) -> None:
        """A pipe that nobody holds any more ends by itself, unless what held it sent it elsewhere."""
        for fd in list(self._open):
            if not (self._paused and self._keeper is not None and fd == self._keeper.stdout_fd):
                self._readable(fd)
        if self._open:
            self._loop.later(AGAIN_S, self._look_again)

    def _finish(self) -> None:
        if self._failure is not None:
            self._code = NOT_STARTED
            self._stderr = bytearray(os.strerror(self._failure[1]).encode())
        self._programs.over()
        self._ended(Ended(self._code, bytes(self._stderr)))
