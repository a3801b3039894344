"""One command: started through a keeper, its output kept, its end told once and only after its output.

Owns the command's pipes, timers and result. Must never leave a pipe unread for longer than STALL_S (a reader that
stopped must not hold the command), and never lose output of a reader that keeps up.
"""

import errno
import os
import signal
import time
from collections.abc import Callable
from functools import partial

from . import frames
from .guarding import Guard
from .hints import Any
from .keepers import Keeper, Keepers, Order
from .loop import Loop, Timer
from .orphans import kill_orphans
from .stdin import Closed, Stdin
from .streams import READ_BYTES, Stream

READS_PER_TURN = 8
STALL_S = 10.0
DRAIN_S = 0.5
QUIET_S = 0.15
TERM_S = 2.0
ORPHANS_S = 0.02
CWD_CODES = {errno.ENOENT: "file_not_found", errno.EACCES: "permission_denied_in_sandbox"}

Send = Callable[..., None]


class Command:
    """Lives in the table of jobs from its request until the host has settled it and its tree is empty."""

    def __init__(self, loop: Loop, guard: Guard, job_id: str, changed: Callable[[], None]) -> None:
        self.id = job_id
        self.ref: int | None = None
        self.result: dict[str, Any] | None = None
        self.tree_empty = False
        self.is_pinned = False  # its script is held until its tree is empty
        self.streams: tuple[Stream, ...] = ()
        self._loop = loop
        self._guard = guard
        self._changed = changed
        self._keeper: Keeper | None = None
        self._stdin: Stdin | None = None
        self._exit_code: int | None = None
        self._signalled = False
        self._failure: tuple[str, int] | None = None
        self._cwd = ""
        self._timed_out = self._stopped = self._is_swept = False
        self._killed = 0
        self._started_at = self._exited_at = self._read_at = time.monotonic()
        self._deadline: Timer | None = None
        self._when_empty: list[Callable[[int], None]] = []
        self._begun = self._watches_order = False
        self._when_begun: list[Callable[[dict[str, Any]], None]] = []

    def start(self, keepers: Keepers, order: Order, timeout_s: float | None) -> None:
        """Without `timeout_s` it may run until it is stopped or the sandbox ends."""
        keeper = self._keeper = keepers.start(order.pack())
        self._cwd = order.cwd
        self.streams = (Stream(keeper.stdout_fd, frames.STDOUT), Stream(keeper.stderr_fd, frames.STDERR))
        for stream in self.streams:
            self._loop.when_readable(stream.fd, partial(self._readable, stream))
        self._loop.when_readable(keeper.line_fd, self._reported)
        self._stdin = Stdin(self._loop, keeper.stdin_fd, order.stdin, stays_open=order.stdin_stays_open)
        if timeout_s is not None:
            self._deadline = self._loop.later(timeout_s, self._time_out)

    # --- the host's side -------------------------------------------------------------------------------------------

    def follow(self, ref: int, offsets: dict[int, int]) -> None:
        self.ref = ref
        for stream in self.streams:
            stream.follow_from(offsets.get(stream.flag, 0))
        self._changed()

    def unfollow(self) -> None:
        self.ref = None

    def acked(self, flag: int, offset: int) -> None:
        for stream in self.streams:
            if stream.flag == flag and stream.acked < offset <= stream.sent:
                stream.acked = offset
                stream.losing = False
                self._go_on(stream)
                self._changed()

    def produce(self, send: Send) -> bool:
        """One frame for the follower, if there is one to send."""
        if self.ref is None:
            return False
        for stream in self.streams:
            if (piece := stream.next_piece()) is not None:
                send(frames.OUT, piece[1], ref=self.ref, offset=piece[0], flags=stream.flag)
                return True
        if self.result is None or not all(stream.told for stream in self.streams):
            return False
        lost = {"lost_bytes": sum(stream.lost for stream in self.streams)} if "ok" in self.result else {}
        answer = {"ok": {**self.result["ok"], **lost}} if lost else self.result
        send(frames.RESULT, answer, ref=self.ref)
        self.ref = None
        return True

    def when_begun(self, call: Callable[[dict[str, Any]], None]) -> None:
        """Tells once the program itself runs, or why it does not."""
        assert self._keeper is not None
        self._when_begun.append(call)
        if self._begun:
            self._tell_begun()
        elif not self._watches_order and not self.tree_empty:
            self._watches_order = True
            self._loop.when_readable(self._keeper.order_fd, self._ordered)

    def when_empty(self, call: Callable[[int], None]) -> None:
        """Tells once nothing that descends from the command is left, and how many processes a stop ended."""
        if self.tree_empty or self._keeper is None:
            call(self._killed)
        else:
            self._when_empty.append(call)

    def stop(self, number: int) -> None:
        """Signal `number`, TERM_S, KILL, to all that descends from the command."""
        if self.tree_empty or self._keeper is None:
            return
        if self._exit_code is None:
            self._stopped = True
        self._keeper.signal_tree(number)
        if number != signal.SIGKILL:
            self._loop.later(TERM_S, self._kill)

    def send(self, data: bytes, *, end: bool) -> None:
        """To its stdin. Raises what `Stdin.put` does."""
        if self._stdin is None:
            raise Closed
        self._stdin.put(data, end=end)

    def forget_output(self) -> None:
        for stream in self.streams:
            stream.output.forget()

    @property
    def kept_bytes(self) -> int:
        return sum(stream.output.kept_bytes for stream in self.streams)

    # --- the command's side ----------------------------------------------------------------------------------------

    def _kill(self) -> None:
        if self._keeper is not None and not self.tree_empty:
            self._keeper.signal_tree(signal.SIGKILL)

    def _time_out(self) -> None:
        if self._exit_code is None:
            self._timed_out = True
            self._kill()

    def _ordered(self) -> None:
        """The child has taken its order: the line is closed by exec, or says why not (then the end tells)."""
        assert self._keeper is not None
        self._forget_order()
        self._failure = self._keeper.failure()
        if self._failure is None:
            self._tell_begun()

    def _forget_order(self) -> None:
        if self._watches_order:
            self._watches_order = False
            assert self._keeper is not None
            self._loop.forget(self._keeper.order_fd)

    def _tell_begun(self) -> None:
        self._begun = True
        refused = self.result is not None and "error" in self.result
        answer = self.result if refused and self.result is not None else {"ok": {"begun": True}}
        calls, self._when_begun = self._when_begun, []
        for call in calls:
            call(answer)

    def _readable(self, stream: Stream) -> None:
        self._drain(stream)
        self._check()

    def _drain(self, stream: Stream) -> None:
        for _ in range(READS_PER_TURN):
            if stream.behind:
                self._pause(stream)
                break
            try:
                data = os.read(stream.fd, READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                self._loop.forget(stream.fd)
                os.close(stream.fd)
                stream.open = False
                break
            self._read_at = time.monotonic()
            stream.output.append(data)
            if len(data) < READ_BYTES and self._exit_code is None:
                break  # that was all; to ask once more would only cost a call
        self._changed()

    def _pause(self, stream: Stream) -> None:
        if not stream.paused:
            stream.paused = True
            self._loop.forget(stream.fd)
            stream.timer = self._loop.later(STALL_S, partial(self._give_up_on, stream))

    def _give_up_on(self, stream: Stream) -> None:
        stream.losing = True
        self._go_on(stream)

    def _go_on(self, stream: Stream) -> None:
        if stream.paused and not stream.behind:
            stream.paused = False
            if stream.timer is not None:
                stream.timer.cancel()
            self._loop.when_readable(stream.fd, partial(self._readable, stream))
            self._check()

    def _reported(self) -> None:
        assert self._keeper is not None
        reports = self._keeper.reports()
        if reports is None:
            return
        for kind, value in reports:
            if kind in "ES":
                self._signalled = kind == "S"
                self._exited(value)
            elif kind == "Z":
                self._killed = value
                self._emptied()
        if not reports:
            self._keeper_gone()
        self._check()

    def _exited(self, code: int) -> None:
        assert self._keeper is not None
        if self._failure is None:
            self._failure = self._keeper.failure()
        self._exit_code = code
        self._exited_at = time.monotonic()
        for stream in self.streams:
            if stream.open and not stream.paused:
                self._drain(stream)

    def _emptied(self) -> None:
        """Nothing of it is left; the keeper ends by itself."""
        if self.tree_empty:
            return
        self.tree_empty = True
        assert self._keeper is not None
        self._loop.forget(self._keeper.line_fd)
        self._forget_order()
        self._keeper.close()
        for call in self._when_empty:
            call(self._killed)
        self._when_empty.clear()
        self._changed()

    def _keeper_gone(self) -> None:
        """Normally after 'Z'. Before it, something killed the keeper: the command's end was lost."""
        if self.tree_empty:
            return
        if kill_orphans():
            self._loop.later(ORPHANS_S, self._keeper_gone)
            return
        if self._exit_code is None:
            self._exit_code, self._signalled = 128 + signal.SIGKILL, True
            self._exited_at = time.monotonic()
        self._emptied()
        self._check()

    def _check(self) -> None:
        """Ends the command when its child has ended and its output is in."""
        if self.result is not None or self._exit_code is None or self._is_swept:
            return
        if (self._timed_out or self._stopped) and not self.tree_empty:
            return
        if self.is_pinned and not self.tree_empty and time.monotonic() - self._exited_at < QUIET_S:
            self._loop.later(QUIET_S, self._check)
            return
        if any(stream.open for stream in self.streams):
            now = time.monotonic()
            quiet_s = now - max(self._read_at, self._exited_at)
            if any(stream.paused for stream in self.streams):
                return
            if quiet_s < QUIET_S and now - self._exited_at < DRAIN_S:
                self._loop.later(min(QUIET_S - quiet_s, DRAIN_S), self._check)
                return
        self._is_swept = True
        if self.is_pinned:  # whoever hears of its end can change its script
            self._guard.when_done(partial(self._guard.after_command, self._finish))
        else:
            self._guard.after_command(self._finish)

    def _finish(self, protected: dict[str, Any]) -> None:
        """`protected`: what the result says of protected files that are new."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self._stdin is not None:
            self._stdin.close()
        for stream in self.streams:
            stream.end = stream.output.total
            if stream.paused:
                self._go_on(stream)
        stdout, stderr = self.streams
        self.result = self._refusal() or {
            "ok": {
                "exit_code": 124 if self._timed_out else self._exit_code,
                "timed_out": self._timed_out,
                "stopped": self._stopped,
                "signalled": self._signalled,
                "left_running": not self.tree_empty,
                "duration_ms": int((self._exited_at - self._started_at) * 1000),
                "stdout_bytes": stdout.end,
                "stderr_bytes": stderr.end,
                **protected,
            }
        }
        self._tell_begun()
        self._changed()

    def _refusal(self) -> dict[str, Any] | None:
        if self._failure is None or self._failure[0] == "x":
            return None
        stage, number = self._failure
        if stage == "c":
            code = CWD_CODES.get(number, "bad_path")
            detail = f"The working directory {self._cwd} cannot be used: {os.strerror(number)}."
            return {"error": {"code": code, "detail": detail, "path": self._cwd}}
        return {"error": {"code": "sandbox_error", "detail": f"The command was not started: {os.strerror(number)}."}}
