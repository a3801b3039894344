"""Runs one program to its end and passes signals on, each once. While it runs, something else may be looked after."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import NamedTuple

from lib import signals
from lib.place import CHECKOUT

PR_SET_PDEATHSIG = 1
LOOK_S = 1


class Ended(NamedTuple):
    code: int  # negative: the signal that ended it
    told: bool  # a signal of ours was passed on


def run(command: Sequence[str], env: Mapping[str, str], meanwhile: Callable[[], None] | None = None) -> Ended:
    """Runs it in the checkout, in a process group of its own, or Ctrl-C would reach it twice. `meanwhile` is called
    each second, until a signal came: what is on its way out needs nothing started."""
    told = False

    def pass_on(number: int, _frame: FrameType | None) -> None:
        nonlocal told
        told = True
        child.send_signal(number)

    before = {number: signal.getsignal(number) for number in signals.HEEDED}
    with signals.held_back():
        child = _started(command, env)
        signals.handled_by(pass_on)
    while meanwhile and not told and child.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            child.wait(LOOK_S)
            break
        if not told:
            meanwhile()
    code = child.wait()
    if told:
        signals.stopping()
    else:
        for number, handler in before.items():
            signal.signal(number, handler)
    return Ended(code, told)


def _started(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def in_child() -> None:
        signals.let_through()
        # A `kill -9` of us must look like one of the console: it goes, its sandboxes stay and are found again.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(command, env=env, cwd=CHECKOUT, process_group=0, preexec_fn=in_child)
