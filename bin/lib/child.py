"""Runs one program to its end and passes signals on, each once."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import NamedTuple

from lib.place import CHECKOUT

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG = 1


class Ended(NamedTuple):
    code: int  # negative: the signal that ended it
    told: bool  # a signal of ours was passed on


def run(command: Sequence[str], env: Mapping[str, str]) -> Ended:
    """Runs it in the checkout, in a process group of its own, or Ctrl-C would reach it twice."""
    parent = os.getpid()

    def die_with_us() -> None:
        # A `kill -9` of us must look like one of the console: it goes, its sandboxes stay and are found again.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    child = subprocess.Popen(command, env=env, cwd=CHECKOUT, process_group=0, preexec_fn=die_with_us)

    told = False

    def pass_on(number: int, _frame: FrameType | None) -> None:
        nonlocal told
        told = True
        child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON if not ignored(number)}
    try:
        code = child.wait()
        return Ended(code, told)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignored(number: int) -> bool:
    """Started under nohup, SIGHUP stays ignored."""
    return signal.getsignal(number) is signal.SIG_IGN
