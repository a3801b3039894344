"""Claims about a Docker daemon of our own that dies under a console: how often it is started again, and what is said.

The daemon is a program that ends at once, or one that runs; each is started as the real one is."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.daemon import OwnDaemon
from lib.place import Place
from lib.revival import Revival

DIES = "#!/bin/sh\necho started >> {count}\nexit 1\n"
LIVES = "#!/bin/sh\necho started >> {count}\nexec sleep 60\n"
Watched = Callable[[str], Revival]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    programs, place = tmp_path / "bin", Place(var=tmp_path, cache=tmp_path)
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def watch(program: str) -> Revival:
        (programs / "dockerd").write_text(program.format(count=tmp_path / "count"))
        (programs / "dockerd").chmod(0o755)
        return Revival(OwnDaemon(place), pauses_s=(0, 0.2, 0.2))

    return watch


def starts(tmp_path: Path) -> int:
    count = tmp_path / "count"
    return len(count.read_text().split()) if count.exists() else 0


def look_until(revival: Revival, true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        revival.look()
        time.sleep(0.02)


def test_one_that_dies_each_time_is_left_after_some_tries_and_that_is_said_once(
    watched: Watched, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    revival = watched(DIES)
    look_until(revival, lambda: revival.given_up)
    for _ in range(5):
        revival.look()
    assert starts(tmp_path) == 3
    said = capsys.readouterr().out
    assert said.count("started again 3 times and died each time") == 1
    assert said.count("daemon died") == 4
    assert "docker.log" in said
    assert "run bin/up" in said


def test_one_that_lives_is_started_once_though_its_last_one_left_a_pid_file(
    watched: Watched, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    revival = watched(LIVES)
    revival.own.pid_file.parent.mkdir(parents=True, exist_ok=True)
    revival.own.pid_file.write_text(str(os.getpid()))  # by now the number of somebody else
    look_until(revival, lambda: starts(tmp_path) == 1)
    for _ in range(5):
        revival.look()
    try:
        assert starts(tmp_path) == 1
        assert not revival.own.pid_file.exists()
        assert capsys.readouterr().out.count("daemon died") == 1
    finally:
        assert revival.own.started
        os.kill(revival.own.started.pid, signal.SIGKILL)
        revival.own.started.wait()


def test_one_that_cannot_even_be_started_does_not_take_the_console_with_it(
    watched: Watched, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    revival = watched(LIVES)
    revival.own.log.mkdir()  # nothing can be written there
    look_until(revival, lambda: revival.given_up)
    assert starts(tmp_path) == 0
    assert capsys.readouterr().out.count("could not be started") == 3
