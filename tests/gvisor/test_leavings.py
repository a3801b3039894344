"""Tests clean up after themselves, and after those that were killed; never after those that still run."""

import subprocess
import sys
import textwrap

from console import state
from lib import jail
from sandboxes.engine import EngineConfig
from tests.gvisor import leavings
from tests.gvisor.engines import CHECKOUT, engine_var


def tables() -> str:
    return subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout


def a_run(instance: str, *, then: str) -> "subprocess.Popen[str]":
    """Another run of tests, which has noted its instance and has a table and a bridge."""
    table, bridge = state.table_name(instance), f"{state.bridge_prefix(instance)}000"
    code = f"""
        import subprocess
        from tests.gvisor import leavings
        leavings.note({instance!r})
        subprocess.run(["nft", "add", "table", "inet", {table!r}], check=True)
        subprocess.run(["ip", "link", "add", {bridge!r}, "type", "bridge"], check=True)
        print("made", flush=True)
        {then}
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    made = subprocess.Popen(
        command, cwd=CHECKOUT, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
        env={"PYTHONPATH": f"{CHECKOUT}:{CHECKOUT}/bin", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )  # fmt: skip
    assert made.stdout
    assert made.stdout.readline() == "made\n"
    return made


def test_what_a_killed_run_left_goes_with_the_next_and_what_lives_is_left_alone() -> None:
    host = EngineConfig.load(engine_var(), "").docker_host
    dead, alive = a_run("0dead001", then="input()"), a_run("0live001", then="input()")
    try:
        dead.kill()
        dead.wait(timeout=10)
        assert "0dead001" in tables()
        assert "0dead001" in leavings.clear(host, mine=False)
        assert "0dead001" not in tables()
        assert jail.bridges(state.bridge_prefix("0dead001")) == []
        assert "0live001" in tables()
        assert jail.bridges(state.bridge_prefix("0live001")) != []
    finally:
        alive.kill()
        alive.wait(timeout=10)
        leavings.clear(host, mine=False)
    assert "0live001" not in tables()


def test_a_run_that_ends_clears_its_own() -> None:
    host = EngineConfig.load(engine_var(), "").docker_host
    leavings_of = f"print(leavings.clear({host!r}, mine=True), flush=True)"
    run = a_run("0mine001", then=leavings_of)
    assert run.stdout
    assert run.stdout.read().strip() == "['0mine001']"
    assert "0mine001" not in tables()
