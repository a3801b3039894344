"""How `bin/up` passes on what a person at the terminal does."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.place import CHECKOUT

# Counts the signals it gets for half a second after the first one, then ends with that number.
COUNTER = """
import signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
print("ready", flush=True)
while not got: time.sleep(0.01)
time.sleep(0.5)
sys.exit(10 + len(got))
"""
RUNNER = "import sys; from lib import child; sys.exit(child.run(sys.argv[1:], dict(__import__('os').environ)).code)"


@pytest.fixture
def runner() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNER, sys.executable, "-c", COUNTER],
        cwd=CHECKOUT / "bin",
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_ctrl_c_reaches_the_console_once_though_the_terminal_sends_it_to_the_whole_group(
    runner: subprocess.Popen[str],
) -> None:
    os.killpg(runner.pid, signal.SIGINT)
    assert runner.wait(timeout=10) == 11


def test_kill_9_of_bin_up_takes_the_console_with_it(runner: subprocess.Popen[str]) -> None:
    (child,) = Path(f"/proc/{runner.pid}/task/{runner.pid}/children").read_text().split()
    runner.kill()
    runner.wait()
    for _ in range(100):
        if not alive(child):
            return
        time.sleep(0.05)
    pytest.fail("the console outlived bin/up")


def alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
