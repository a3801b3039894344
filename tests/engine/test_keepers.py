"""What PID 1 hears of a keeper, whichever of its lines speaks first; and when it has the next one made."""

import os
import socket
import struct
import subprocess
import sys

import pytest

from sandboxes.runner import frames
from sandboxes.runner.keepers import Keeper

# PID 1 without a keeper, which has just told the end of a command: it says on stderr when it would have one made.
TOLD = """
import os, sys
from sandboxes.runner import commands, guarding, runner
runner.READY_S = float(sys.argv[1])
guard = guarding.Guard()
pid1 = runner.Runner("keeper", "boot", {"processes": "1", "open_files": "1"}, guard)
pid1.keepers.make_ready = lambda: os.write(2, b"made ")
pid1._told(commands.Command(pid1.loop, guard, "act_1", pid1.pump))
os.write(2, b"told ")
pid1.loop.later(0.2, lambda: os._exit(0))
pid1.loop.run()
"""


@pytest.fixture
def keeper():
    """One whose other ends are held here: the nursery keeps them open for a moment too long on a busy machine."""
    nursery, theirs = socket.socketpair()
    keeper = Keeper(nursery)
    _, fds, _, _ = socket.recv_fds(theirs, 1, 5)
    order, line = (socket.socket(fileno=fd) for fd in fds[3:])
    keeper.give(b"an order")
    yield keeper, order, line
    for each in (nursery, theirs, order, line):
        each.close()
    keeper.abandon()


def test_a_command_that_ended_before_its_order_was_closed_is_one_that_ran(keeper) -> None:
    """Its end comes by another line, and may come first: PID 1 must not die of it."""
    keeper, order, _ = keeper
    assert keeper.failure() is None
    order.close()  # with the order unread, as when it was killed
    assert keeper.failure() is None


def test_what_could_not_start_says_so_before_it_ends(keeper) -> None:
    keeper, order, _ = keeper
    order.send(b"c" + struct.pack("=I", 2))
    assert keeper.failure() == ("c", 2)


def test_a_line_that_says_nothing_yet_is_no_line_that_is_closed(keeper) -> None:
    keeper, _, line = keeper
    assert keeper.reports() is None
    line.send(struct.pack("=Bxxxi", ord("E"), 7))
    assert keeper.reports() == [("E", 7)]
    line.close()
    assert keeper.reports() == []


@pytest.mark.parametrize(
    ("is_stored", "ready_s", "said"), [(False, 60, "told"), (True, 60, "told made"), (False, 0, "told made")]
)
def test_the_next_one_is_made_when_the_end_of_a_command_is_stored_or_some_time_after(is_stored, ready_s, said) -> None:
    """Not while the host stores it and answers: making one takes both processors of a small machine."""
    tag, marker = os.urandom(frames.TAG_BYTES), os.urandom(frames.MARKER_BYTES)
    heard = frames.pack_hello(tag, marker, {"version": frames.VERSION})
    if is_stored:
        heard += frames.pack_message(tag, frames.SETTLE, {"ids": ["act_1"]})
    its, ours = os.pipe()  # open until it ends by itself
    os.write(ours, heard)
    done = subprocess.run(
        [sys.executable, "-c", TOLD, str(ready_s)], stdin=its, capture_output=True, check=True, timeout=60
    )
    os.close(its)
    os.close(ours)
    assert done.stderr.decode().strip() == said
