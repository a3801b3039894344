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


# What bin/up and bin/test are made of: a child that ends at once when told, then a way out that takes its time.
SLOW_WAY_OUT = """
import os, sys, time
from lib import child, signals
signals.stop_on_signals()
CHILD = "import time; print('ready', flush=True); time.sleep(60)"
try:
    if "child" in sys.argv:
        child.run([sys.executable, "-c", CHILD], dict(os.environ))
    else:
        print("ready", flush=True)
        time.sleep(60)
finally:
    signals.stopping()
    print("on the way out", flush=True)
    time.sleep(1)
    print("nothing left", flush=True)
"""


@pytest.mark.parametrize("where", ["child", "set-up"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_further_signals_do_not_break_off_the_way_out(where: str, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_WAY_OUT, where],
        cwd=CHECKOUT / "bin",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        process_group=0,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, number)
        assert process.stdout.readline() == "on the way out\n"
        for _ in range(3):
            time.sleep(0.1)
            os.killpg(process.pid, number)
        said = process.stdout.read()
    finally:
        process.kill()
        process.communicate()
    assert said.endswith("nothing left\n")
    assert "stopping" in said
