"""What a person's Ctrl-C does to us: the first stops, and from then on nothing breaks off the way out."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from lib.say import say

HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, FrameType | None], Any] | int | None


def stop_on_signals() -> None:
    """SIGINT too: in the background of a script it comes ignored, and then `kill -INT` would do nothing."""
    for number in HEEDED:
        if number != signal.SIGHUP or not ignored(number):
            signal.signal(number, _interrupt)


def ignored(number: int) -> bool:
    """Started under nohup, SIGHUP stays ignored."""
    return signal.getsignal(number) is signal.SIG_IGN


def handled_by(handler: Handler) -> None:
    for number in HEEDED:
        if not ignored(number):
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[None]:
    """While a program is started and nobody knows it yet. It calls `let_through` itself: it inherits this."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HEEDED)
    try:
        yield
    finally:
        let_through()


def let_through() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HEEDED)


def stopping() -> None:
    """From here on we are on the way out: a daemon half stopped would be left behind."""
    handled_by(_patience)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    stopping()  # first: the next signal may be there already
    raise KeyboardInterrupt


def _patience(_number: int, _frame: FrameType | None) -> None:
    say("stopping, a moment …")
