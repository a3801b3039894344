"""Which process a stuck removal may end: the shim of that container, and only while nothing lives below it."""

import signal
import subprocess
import sys

import pytest

from sandboxes.engine import shims

MINE, ANOTHER = "a1" * 32, "b2" * 32


class Shim:
    """A process that looks like a shim: named as one, with a container's id among its words, and `below` it a child."""

    def __init__(self, container_id, *below):
        code = f"import subprocess; {f'subprocess.Popen({below!r}); ' if below else ''}print(flush=True); input()"
        words = ["/usr/bin/containerd-shim-runc-v2", "-c", code, "-namespace", "n", "-id", container_id]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        env = {"PYTHONHOME": sys.base_prefix}  # under another name it does not find its own
        self.process = subprocess.Popen(words, executable=sys.executable, env=env, **pipes)
        self.process.stdout.readline()

    @property
    def was_killed(self):
        try:
            return self.process.wait(0.3) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def shim():
    made = []

    def make(*words):
        made.append(Shim(*words))
        return made[-1]

    yield make
    for each in made:
        each.end()


def until_it_has(shim, state):
    """Its child is there, in that state."""
    for _ in range(200):
        out = subprocess.run(
            ["ps", "-o", "stat=", "--ppid", str(shim.process.pid)], capture_output=True, text=True, check=False
        ).stdout
        if out.strip().startswith(state):
            return
    raise AssertionError(out)


def test_one_with_nothing_below_it_is_ended_and_anothers_is_left_alone(shim):
    stuck, others = shim(MINE), shim(ANOTHER)
    assert shims.end_stuck(MINE) == [stuck.process.pid]
    assert stuck.was_killed
    assert not others.was_killed


def test_one_whose_sandbox_lives_is_ended_only_when_that_is_asked_for(shim):
    busy = shim(MINE, "sleep", "5")
    until_it_has(busy, "S")
    assert shims.end_stuck(MINE) == []
    assert not busy.was_killed
    assert shims.end_stuck(MINE, even_with_children=True) == [busy.process.pid]
    assert busy.was_killed


def test_what_has_died_below_it_does_not_count(shim):
    stuck = shim(MINE, "true")
    until_it_has(stuck, "Z")
    assert shims.end_stuck(MINE) == [stuck.process.pid]


@pytest.mark.parametrize("words", [("-id",), ("-id", MINE[:-1]), ("-x", MINE), ("-id", ANOTHER, MINE)])
def test_a_program_that_only_resembles_it_is_none(tmp_path, words):
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cmdline").write_bytes("\0".join(("/usr/bin/containerd-shim-runc-v2", *words, "")).encode())
    (tmp_path / "8").mkdir()
    (tmp_path / "8/cmdline").write_bytes(f"/usr/bin/less\0-id\0{MINE}\0".encode())
    assert shims.end_stuck(MINE, proc=tmp_path) == []


def test_without_root_nothing_is_ended(shim, monkeypatch):
    stuck = shim(MINE)
    monkeypatch.setattr(shims.os, "geteuid", lambda: 1000)
    assert shims.end_stuck(MINE) == []
    assert not stuck.was_killed
