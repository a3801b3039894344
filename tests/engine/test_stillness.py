"""What stands still while a file is replaced: real processes of this machine, in a /proc that shows only them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandboxes.runner import stillness
from sandboxes.runner.files import Refused
from sandboxes.runner.stillness import World

COUNTS = """
import sys, time
while True:
    with open(sys.argv[1], "a") as file: file.write(".")
"""
THREADS = """
import sys, threading, time
def count():
    while True:
        with open(sys.argv[1], "a") as file: file.write(".")
for _ in range(3): threading.Thread(target=count, daemon=True).start()
time.sleep(60)
"""


class Few:
    """A /proc of links to the real one: those that were begun here, and their children as they come."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.begun: list[subprocess.Popen[bytes]] = []

    def begin(self, code: str, path: Path) -> int:
        process = subprocess.Popen([sys.executable, "-c", code, str(path)], start_new_session=True)
        self.begun.append(process)
        (self.place / str(process.pid)).symlink_to(f"/proc/{process.pid}")
        until(lambda: path.exists() and path.stat().st_size)
        return process.pid

    def end(self) -> None:
        for process in self.begun:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until(what) -> None:
    by = time.monotonic() + 30
    while not what():
        assert time.monotonic() < by
        time.sleep(0.005)


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Few]:
    (tmp_path / "proc").mkdir()
    few = Few(tmp_path / "proc")
    yield few
    few.end()


def world(few: Few) -> World:
    return World(os.getpid(), lambda call: call(), str(few.place))


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


@pytest.mark.parametrize("code", [COUNTS, THREADS])
def test_nothing_moves_while_all_is_still_and_all_goes_on_afterwards(few: Few, tmp_path: Path, code: str) -> None:
    path = tmp_path / "f"
    pid = few.begin(code, path)
    with world(few).still() as moment:
        size = path.stat().st_size
        time.sleep(0.2)
        assert path.stat().st_size == size
        assert state(pid) == "T"
    assert moment.held_s >= 0.2
    until(lambda: path.stat().st_size > size)


def test_who_stood_still_before_still_does_afterwards(few: Few, tmp_path: Path) -> None:
    stopped, runs = (few.begin(COUNTS, tmp_path / name) for name in "ab")
    os.kill(stopped, signal.SIGSTOP)
    until(lambda: state(stopped) == "T")
    with world(few).still():
        pass
    until(lambda: state(runs) != "T")
    time.sleep(0.1)
    assert state(stopped) == "T"


def test_all_goes_on_after_a_fault_in_the_middle(few: Few, tmp_path: Path) -> None:
    pid = few.begin(COUNTS, tmp_path / "f")
    one = world(few)
    with pytest.raises(ZeroDivisionError), one.still():
        raise ZeroDivisionError
    until(lambda: state(pid) != "T")
    with one.still():
        assert state(pid) == "T"


def test_what_never_stands_still_is_told_and_all_else_goes_on(few: Few, tmp_path: Path, monkeypatch) -> None:
    """A process that is there in the list and cannot be looked at: it may be running."""
    pid = few.begin(COUNTS, tmp_path / "f")
    (few.place / "999999999").mkdir()
    (few.place / "999999999" / "stat").mkdir()
    monkeypatch.setattr(stillness, "WITHIN_S", 0.3)
    with pytest.raises(Refused, match="could not be held still") as refused, world(few).still():
        pytest.fail("it was not still")
    assert refused.value.code == "busy"
    until(lambda: state(pid) != "T")


def test_a_child_that_came_while_its_parent_was_being_stopped_is_seen(few: Few, tmp_path: Path, monkeypatch) -> None:
    """The list is looked at again when all in it are still: whoever is only in the second is stopped too."""
    first, second = (few.begin(COUNTS, tmp_path / name) for name in "ab")
    hidden = few.place / str(second)
    hidden.unlink()
    one, lists = world(few), []
    listed = one._others

    def others() -> set[int]:
        if len(lists) == 2 and not hidden.exists():
            hidden.symlink_to(f"/proc/{second}")
        lists.append(1)
        return listed()

    monkeypatch.setattr(one, "_others", others)
    with one.still():
        assert (state(first), state(second)) == ("T", "T")
    until(lambda: state(second) != "T")


def test_moments_do_not_meet(few: Few, tmp_path: Path) -> None:
    pid = few.begin(COUNTS, tmp_path / "f")
    one, seen = world(few), []

    def often() -> None:
        for _ in range(10):
            with one.still():
                seen.append(state(pid))

    threads = [threading.Thread(target=often) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == ["T"] * 30


def test_a_process_that_has_ended_but_was_not_waited_for_is_still(few: Few, tmp_path: Path) -> None:
    pid = few.begin(COUNTS, tmp_path / "f")
    os.kill(pid, signal.SIGKILL)
    until(lambda: state(pid) == "Z")
    with world(few).still():
        pass


@pytest.mark.parametrize(("mode", "writes"), [("r", False), ("a", True), ("r+", True)])
def test_whoever_holds_a_file_open_to_write_is_found(few: Few, tmp_path: Path, mode: str, writes: bool) -> None:
    path, other = tmp_path / "f", tmp_path / "g"
    other.write_text("x")
    code = f"import sys, time\nheld = open({str(other)!r}, {mode!r})\nopen(sys.argv[1], 'w').write('.')\ntime.sleep(60)"
    few.begin(code, path)
    one = world(few)
    with one.still():
        assert one.writes(other.stat()) == writes
        assert not one.writes(path.stat())


OWN_TABLE = """
import ctypes, os, sys, threading, time
def hold():
    ctypes.CDLL(None).unshare(0x400)  # CLONE_FILES: what it opens is not among its process's
    held = os.open(HELD, os.O_WRONLY)
    with open(sys.argv[1], "w") as file: file.write(".")
    time.sleep(60)
threading.Thread(target=hold).start()
"""
MAPPED = """
import ctypes, mmap, os, sys, time
fd = os.open(HELD, os.O_RDWR)
ctypes.CDLL(None).mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, SHARED, fd, 0)
os.close(fd)  # Python's own mmap would keep it open
with open(sys.argv[1], "w") as file: file.write(".")
time.sleep(60)
"""
BY_NAME_ONLY = """
import os, sys, time
held = os.open(HELD, os.O_PATH)
with open(sys.argv[1], "w") as file: file.write(".")
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("code", "writes"),
    [
        (OWN_TABLE, True),
        (OWN_TABLE.replace("O_WRONLY", "O_RDONLY"), False),
        (MAPPED.replace("SHARED", "mmap.MAP_SHARED"), True),
        (MAPPED.replace("SHARED", "mmap.MAP_PRIVATE"), False),
        (BY_NAME_ONLY, True),
    ],
    ids=["a thread's own table", "of reading", "a shared mapping", "a private one", "to be opened again"],
)
def test_whoever_could_still_write_into_a_file_is_found(few: Few, tmp_path: Path, code: str, writes: bool) -> None:
    """What they then write would go into a file that has no name any more."""
    path, other = tmp_path / "f", tmp_path / "g"
    other.write_text("x")
    few.begin(code.replace("HELD", repr(str(other))), path)
    one = world(few)
    with one.still():
        assert one.writes(other.stat()) == writes
