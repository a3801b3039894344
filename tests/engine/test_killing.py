"""Ending gVisor's processes by their containers: with real processes of this machine that go by its names."""

import os
import secrets
import subprocess

import pytest

from sandboxes.engine import killing

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may kill what is not its own")


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
