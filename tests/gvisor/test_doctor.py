"""`manage.py doctor` proves parts by using them, and each fault it finds comes with its fix."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from console import state
from sandboxes.engine import EngineConfig

from .served import CHECKOUT, Served

pytestmark = pytest.mark.gvisor


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("doctor") / "var").up()
    yield console
    console.close()


@pytest.fixture
def served(console: Served) -> Iterator[Served]:
    """One console for all: what a test does to its engine.json, which doctor alone reads again, is undone."""
    before = (console.var / "engine.json").read_text()
    yield console
    (console.var / "engine.json").write_text(before)


def doctor(served: Served, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "doctor", *options]
    return subprocess.run(command, cwd=CHECKOUT, env=served.environment, capture_output=True, text=True, timeout=120)


def left_by_doctor(served: Served) -> list[str]:
    """It works under an instance of its own, which begins like the console's."""
    client = docker.DockerClient(EngineConfig.load(served.var, "").docker_host)
    try:
        names = [thing.name for thing in (*client.containers.list(all=True), *client.volumes.list())]
        return [name for name in names if state.instance(served.var) in name and "doctor" in name]
    finally:
        client.close()


def change_engine(served: Served, **fields: object) -> None:
    path = served.var / "engine.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_machine_with_all_parts_passes_and_nothing_is_left(served: Served) -> None:
    done = doctor(served, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert [check for check in found.values() if not check["ok"]] == []
    assert {
        "state directory", "privileges", "storage blobs", "storage outputs", "storage artifacts", "database",
        "database file", "audit chain", "pool", "gVisor", "docker", "machine", "limits", "clock", "disk space",
        "gVisor runtime", "image", "keeper", "allowed images", "sandbox", "limits hold", "sealing",
    } <= set(found)  # fmt: skip
    assert "512 MB" in found["limits hold"]["detail"]
    assert left_by_doctor(served) == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"docker_host": "unix:///run/no-such.sock"}, "bin/up"),
        ({"runtime": "runsc-no-such"}, "runsc-no-such"),
        ({"image": "sandgate/no-such:1"}, "sandgate/no-such:1"),
    ],
)
def test_each_missing_part_fails_by_name_with_a_fix(served: Served, fields: dict[str, str], named: str) -> None:
    change_engine(served, **fields)
    done = doctor(served)
    assert done.returncode == 1
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert len(failed) == 1
    assert named in failed[0]
    assert "Fix: " in failed[0]


def test_a_state_directory_that_others_can_read_is_told(served: Served) -> None:
    # Settings close it again on the way in, so what doctor prints is what holds from now on.
    served.var.chmod(0o755)
    done = doctor(served)
    assert "mode 0700" in done.stdout


def test_without_a_runtime_creating_answers_503_with_the_fix(tmp_path: Path) -> None:
    console = Served(tmp_path / "bare")
    change_engine(console, runtime="runsc-no-such")
    console.up()
    try:
        with console.api("workspace") as api:
            answer = api.post("/sandboxes", json={})
        assert (answer.status_code, answer.json()["code"]) == (503, "no_runtime")
        assert "bin/up" in answer.json()["detail"]
        assert console.containers() == []
    finally:
        console.close()
