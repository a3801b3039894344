"""Ending gVisor's processes by their containers: with real processes of this machine that go by its names."""

import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandboxes.engine import killing


def started(name: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([name, "-c", "while true; do sleep 1; done", *words], executable="/bin/bash")


@pytest.fixture
def one() -> str:
    return secrets.token_hex(32)


def test_both_programs_of_a_container_die_and_no_other_process_does(one: str) -> None:
    other = secrets.token_hex(32)
    mine = [started(name, one) for name in ("runsc-sandbox", "runsc-gofer")]
    others = [
        started("runsc-sandbox", other),
        started("runsc-sandbox", f"{one}x"),
        started("runsc", "delete", one),
        started("bash", one),
        started("containerd-shim-runc-v2", "-id", one),
    ]
    try:
        assert killing.kill({one}) == 2
        assert [each.wait(5) for each in mine] == [-9, -9]
        assert [each.poll() for each in others] == [None] * len(others)
        assert killing.kill({one}) == 0
    finally:
        for each in (*mine, *others):
            each.kill()
            each.wait()


def test_many_are_ended_in_one_look(one: str) -> None:
    ids = {one, *(secrets.token_hex(32) for _ in range(9))}
    running = [started("runsc-sandbox", each) for each in ids]
    assert killing.kill(ids) == 10
    assert {each.wait(5) for each in running} == {-9}


def test_for_no_container_nothing_is_looked_at(tmp_path) -> None:
    assert killing.kill(set(), proc=tmp_path / "none") == 0


def listed(groups: Path, container_id: str, *running: subprocess.Popen[bytes]) -> None:
    """As the kernel's v1 tells who is in the group of a container: a file with a number in each line."""
    group = groups / "pids" / "docker" / container_id
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text("".join(f"{each.pid}\n" for each in running))


def test_a_group_tells_whom_to_kill_and_no_other_process_is_looked_at(
    one: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "listdir", None)
    mine = [started(name, one) for name in ("runsc-gofer", "runsc-sandbox")]
    others = [started("runsc-sandbox", secrets.token_hex(32)), started("exe")]
    listed(tmp_path, one, others[0], *mine, others[1])
    try:
        assert killing.kill({one}, groups=tmp_path) == 2
        assert [each.wait(5) for each in mine] == [-9, -9]
        assert [each.poll() for each in others] == [None, None], "a number may be another's by now"
    finally:
        for each in (*mine, *others):
            each.kill()
            each.wait()


@pytest.mark.parametrize("inside", [[], ["exe"]])
def test_where_a_group_tells_nothing_all_processes_are_looked_at(one: str, tmp_path: Path, inside: list[str]) -> None:
    others = [started(name) for name in inside]
    mine = started("runsc-sandbox", one)
    listed(tmp_path, one, *others)
    try:
        assert killing.kill({one, secrets.token_hex(32)}, groups=tmp_path) == 1
        assert mine.wait(5) == -9
        assert [each.poll() for each in others] == [None] * len(others)
    finally:
        for each in (mine, *others):
            each.kill()
            each.wait()


def test_no_group_is_found_by_what_is_no_id(tmp_path: Path) -> None:
    far = started("runsc-sandbox", "../docker")
    listed(tmp_path, "far", far)
    try:
        assert killing.kill({"../docker/far"}, groups=tmp_path) == 0
        assert far.poll() is None
    finally:
        far.kill()
        far.wait()


@pytest.fixture
def unified(tmp_path: Path) -> Iterator[Path]:
    """cgroup v2, which every kernel that gVisor runs on has, whatever the machine itself uses."""
    top = tmp_path / "cgroup2"
    top.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", top], check=True)
    yield top
    subprocess.run(["umount", top], check=True)


@pytest.fixture
def group(one: str, unified: Path) -> Iterator[Path]:
    """A real one of v2, where Docker would have it."""
    made = unified / f"test-{one[:12]}" / "docker" / one
    made.mkdir(parents=True)
    yield made
    (made / "cgroup.kill").write_text("1")
    for each in (made, made.parent, made.parent.parent):
        for _ in range(100):
            with suppress(OSError):  # its processes are on their way out
                each.rmdir()
                break
            time.sleep(0.05)


def test_a_group_of_v2_dies_whole_while_it_forks(one: str, group: Path) -> None:
    (group / "cgroup.procs").touch()
    forks = f"echo $$ > {group}/cgroup.procs; while true; do (setsid sleep 99 &); sleep 0.01; done"
    first = subprocess.Popen(["/bin/bash", "-c", forks])
    until = time.monotonic() + 10
    while len((group / "cgroup.procs").read_text().split()) < 20:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert killing.kill({one}, groups=group.parent.parent) >= 20
    assert first.wait(5) == -9
    while left := (group / "cgroup.procs").read_text().split():
        assert time.monotonic() < until, left
        time.sleep(0.05)
