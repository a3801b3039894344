"""`bin/up` and `bin/test` as commands, as far as they go without an engine."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lib.place import CHECKOUT


def up(*arguments: str, var: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SANDGATE_VAR": str(var), "SANDGATE_CACHE": str(var / "cache")}
    return subprocess.run([CHECKOUT / "bin/up", *arguments], env=env, capture_output=True, text=True, timeout=60)


def test_help_names_the_flags_and_the_environment(tmp_path: Path) -> None:
    done = up("--help", var=tmp_path / "var")
    assert done.returncode == 0
    for word in ("--own-docker", "--forget-first-run", "SANDGATE_PORT", "SANDGATE_VAR"):
        assert word in done.stdout


def test_help_changes_nothing(tmp_path: Path) -> None:
    up("--help", var=tmp_path / "var")
    assert not (tmp_path / "var").exists()


def test_forget_first_run_deletes_the_file_and_says_that_the_keys_stay_valid(tmp_path: Path) -> None:
    (tmp_path / "first-run.json").write_text("{}")
    done = up("--forget-first-run", var=tmp_path)
    assert done.returncode == 0
    assert not (tmp_path / "first-run.json").exists()
    assert "stay valid" in done.stdout


def test_a_docker_host_that_does_not_answer_stops_the_start_and_is_named(tmp_path: Path) -> None:
    env = {**os.environ, "SANDGATE_VAR": str(tmp_path), "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    done = subprocess.run([CHECKOUT / "bin/up"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "unix:///nowhere/docker.sock" in done.stderr
    assert "--own-docker" in done.stderr
    assert not (tmp_path / "engine.json").exists()


COMMANDS = {
    "up": [CHECKOUT / "bin/up"],
    "test": [CHECKOUT / "bin/test", "lint"],
    "manage.py up": [sys.executable, CHECKOUT / "manage.py", "up"],
    "manage.py check": [sys.executable, CHECKOUT / "manage.py", "check"],
}
WRONG = [
    ("SANDGATE_PORT", "abc", "from 1 to 65535"),
    ("SANDGATE_PORT", "70000", "from 1 to 65535"),
    ("SANDGATE_PORT", "-1", "from 1 to 65535"),
    ("SANDGATE_ORIGINS", "sandgate.example", "https://sandgate.example"),
    ("SANDGATE_ORIGINS", "http://[::1", "https://sandgate.example"),
    ("SANDGATE_VAR", "/proc/x", "a directory of your own"),
    ("SANDGATE_VAR", __file__, "a directory of your own"),
    ("SANDGATE_VAR", f"{__file__}/below", "a directory of your own"),
    ("SANDGATE_VAR", "~nobody-has-this-name/x", "a directory of your own"),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("name", "value", "next_step"), WRONG, ids=lambda word: str(word)[-20:])
def test_what_the_environment_names_and_cannot_be_used_is_told_in_a_sentence(
    tmp_path: Path, command: str, name: str, value: str, next_step: str
) -> None:
    env = {**os.environ, "SANDGATE_VAR": str(tmp_path / "var"), name: value}
    done = subprocess.run(COMMANDS[command], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert name in done.stderr
    assert next_step in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_cache_that_cannot_be_one_is_told_in_a_sentence(tmp_path: Path) -> None:
    env = {**os.environ, "SANDGATE_VAR": str(tmp_path), "SANDGATE_CACHE": "/proc/x"}
    done = subprocess.run([CHECKOUT / "bin/up"], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "SANDGATE_CACHE" in done.stderr


def test_a_taken_port_is_told_before_docker_is_asked_or_anything_made_and_as_the_console_tells_it(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        env = {**os.environ, "SANDGATE_VAR": str(tmp_path), "SANDGATE_PORT": str(other.getsockname()[1])}
        env["DOCKER_HOST"] = "unix:///nowhere/docker.sock"
        by_up, by_console = (
            subprocess.run(COMMANDS[command], env=env, capture_output=True, text=True, timeout=60)
            for command in ("up", "manage.py up")
        )
    assert (by_up.returncode, by_console.returncode) == (1, 1)
    assert "is taken by another program" in by_up.stderr
    assert "SANDGATE_PORT" in by_up.stderr
    assert by_up.stderr.removeprefix("sandgate: ") == by_console.stderr.removeprefix("CommandError: ")
    assert not (tmp_path / "docker").exists()
