"""What PID 1 hears of a keeper, whichever of its lines speaks first."""

import socket
import struct

import pytest

from sandboxes.runner.keepers import Keeper


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
