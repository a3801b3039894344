"""`bin/up` and `bin/test` as commands, as far as they go without an engine."""

import os
import subprocess
from pathlib import Path

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
