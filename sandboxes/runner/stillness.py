"""Everything else in the sandbox held still for the moment in which a file is looked at for the last time and replaced.

Owns the stopping and the going on, and a thread for them that keeps PID 1's right to signal: processes of the user,
those of an install, and the runner's own keepers, so that nothing new can begin either. That thread must never touch
a file but those of /proc. Must never leave behind a process that it stopped, nor wake one that somebody else had.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

from .files import Refused

WITHIN_S = 2.0
BREATH_S = 0.0005
"""Between two passes, for those that are on their way to a stop."""
_STOPPED, _GONE = b"Tt", b"ZXx"


class Moment:
    """`held_s`: how long it was, when it is over."""

    held_s = 0.0


class World:
    """The processes in `proc`, save `own` and its threads. One moment at a time. `on_loop`: calls from a thread that
    has all of PID 1's rights; a thread has those of the one that starts it."""

    def __init__(self, own: int, on_loop: Callable[[Callable[[], None]], None], proc: str = "/proc") -> None:
        self._own, self._proc = own, proc
        self._one = threading.Lock()
        self._on_loop = on_loop
        self._works = False
        self._asks: SimpleQueue[float] = SimpleQueue()
        self._answers: SimpleQueue[Exception | None] = SimpleQueue()
        self._overs: SimpleQueue[None] = SimpleQueue()

    @contextmanager
    def still(self) -> Iterator["Moment"]:
        """Raises Refused when something does not stop in time; then all goes on, and nothing was done."""
        with self._one:
            if not self._works:
                self._works = True
                self._on_loop(threading.Thread(target=self._work, daemon=True, name="stillness").start)
            moment, began = Moment(), time.monotonic()
            self._asks.put(began + WITHIN_S)
            try:
                if (error := self._answers.get()) is not None:
                    raise error
                yield moment
            finally:
                self._overs.put(None)
                self._answers.get()
                moment.held_s = time.monotonic() - began

    def _work(self) -> None:
        while True:
            until, stopped = self._asks.get(), dict[int, None]()
            try:
                self._stop(stopped, until)
                self._answers.put(None)
            except Exception as error:  # the boundary of this thread: whoever waits is told
                self._answers.put(error)
            self._overs.get()
            for pid in stopped:
                with suppress(OSError):
                    os.kill(pid, signal.SIGCONT)
            self._answers.put(None)

    def _stop(self, stopped: dict[int, None], until: float) -> None:
        """Passes, until in one of them all were still and nobody had come when it was over. A process that forks while
        it is being stopped leaves a child that only the next list shows."""
        while True:
            seen = self._others()
            moving = [pid for pid in seen if not self._is_still(pid)]
            if not moving and self._others() <= seen:
                return
            if time.monotonic() > until:
                raise Refused("busy", "what runs in the sandbox could not be held still for a moment; try again")
            for pid in moving:
                with suppress(OSError):  # gone, or another container's way of running something here
                    os.kill(pid, signal.SIGSTOP)
                    stopped[pid] = None
            if moving:
                time.sleep(BREATH_S)

    def _others(self) -> set[int]:
        return {int(name) for name in os.listdir(self._proc) if name.isdigit()} - {self._own}

    def _is_still(self, pid: int) -> bool:
        """All its threads; a process whose first thread has ended may have others."""
        try:
            state, threads = self._state(f"{self._proc}/{pid}/stat")
            if threads <= 1:
                return state in _STOPPED + _GONE
            return all(
                self._state(f"{self._proc}/{pid}/task/{name}/stat")[0] in _STOPPED + _GONE
                for name in os.listdir(f"{self._proc}/{pid}/task")
            )
        except (FileNotFoundError, ProcessLookupError):
            return True
        except OSError:
            return False

    @staticmethod
    def _state(path: str) -> tuple[bytes, int]:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            words = os.read(fd, 1024).rpartition(b") ")[2].split()
        finally:
            os.close(fd)
        if not words:  # of a process that ends just now
            raise ProcessLookupError
        return words[0], int(words[17])

    def writes(self, file: os.stat_result) -> bool:
        """Whether somebody holds this file so that they could write to it. To be asked while all are still."""
        return any(self._writes(f"{self._proc}/{pid}", file) for pid in self._others())

    def _writes(self, process: str, file: os.stat_result) -> bool:
        """Each thread may have a table of open files of its own; what is mapped is the same for all."""
        threads = [f"{process}/task/{name}" for name in _names(f"{process}/task")]
        return any(_holds(thread, file) for thread in threads) or any(_maps(each, file) for each in threads[:1])


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # gone, or one of ours
        return []


def _holds(thread: str, file: os.stat_result) -> bool:
    for name in _names(f"{thread}/fd"):
        with suppress(OSError, ValueError):
            held = os.stat(f"{thread}/fd/{name}")
            if (held.st_dev, held.st_ino) == (file.st_dev, file.st_ino) and _may_write(f"{thread}/fdinfo/{name}"):
                return True
    return False


def _may_write(fdinfo: str) -> bool:
    """Also one that only stands for the file, to be opened again."""
    with open(fdinfo, "rb") as file:
        flags = int(next(line for line in file if line.startswith(b"flags:")).split()[1], 8)
    return flags & os.O_ACCMODE != os.O_RDONLY or bool(flags & os.O_PATH)


def _maps(thread: str, file: os.stat_result) -> bool:
    """Shared, its file closed or not; one that is to be read can be made one to write. By the number alone: the device
    is told in other words than elsewhere, and one too many does no harm."""
    inode = str(file.st_ino).encode()
    with suppress(OSError), open(f"{thread}/maps", "rb") as maps:
        for words in map(bytes.split, maps):
            if len(words) > 4 and words[1].endswith(b"s") and words[4] == inode:
                return True
    return False
