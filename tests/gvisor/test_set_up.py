"""Claims about real Docker daemons and gVisor: ours is found again and leaves nothing, the user's is only asked."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from lib import engine, keeper, registration
from lib.daemon import OwnDaemon, answers
from lib.place import CHECKOUT, Place

from .processes import of_instance

pytestmark = pytest.mark.gvisor
CACHE = Path(os.environ.get("SANDGATE_CACHE", "/var/cache/sandgate"))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """An instance of its own beside the one that the other tests use."""
    place = Place(var=tmp_path_factory.mktemp("instance"), cache=CACHE)
    yield place
    OwnDaemon(place).stop()


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[OwnDaemon]:
    """Stands for a user's daemon: a real one, without gVisor."""
    daemon = OwnDaemon(Place(var=tmp_path, cache=CACHE))
    daemon.start({})
    yield daemon
    daemon.stop()


def sleeper(address: str, facts: dict[str, str]) -> str:
    with closing(docker.DockerClient(base_url=address)) as client:
        container = client.containers.run(
            facts["image"], ["sleep", "1000"], runtime=facts["runtime"], network_mode="none", detach=True
        )
        return str(container.id)


def is_running(address: str, container_id: str) -> bool:
    with closing(docker.DockerClient(base_url=address)) as client:
        return bool(client.containers.get(container_id).status == "running")


def test_a_sandbox_outlives_a_killed_daemon_and_the_next_start_has_it_again(here: Place) -> None:
    daemon = OwnDaemon(here)
    facts = engine.ready(here, daemon)
    box = sleeper(daemon.address, facts)
    killed = daemon.pid()
    assert killed
    os.kill(killed, signal.SIGKILL)
    engine.ready(here, daemon)
    assert daemon.pid() != killed
    assert is_running(daemon.address, box)


def test_a_running_daemon_is_used_again_not_started_twice(here: Place) -> None:
    daemon = OwnDaemon(here)
    engine.ready(here, daemon)
    before = daemon.pid()
    engine.ready(here, OwnDaemon(here))
    assert daemon.pid() == before


def test_stopping_ends_daemon_and_sandboxes_and_leaves_no_process(here: Place) -> None:
    daemon = OwnDaemon(here)
    facts = engine.ready(here, daemon)
    sleeper(daemon.address, facts)
    assert of_instance(here)
    daemon.stop()
    assert of_instance(here) == []
    assert not here.run.exists()
    assert str(here.var) not in Path("/proc/mounts").read_text()


def test_a_try_that_fails_half_way_leaves_no_process(here: Place) -> None:
    """The kernel trap leaves a started sandbox behind a failed start; where no registration fails, one is made to."""
    daemon = OwnDaemon(here)
    facts = engine.ready(here, daemon)
    daemon.start({**registration.candidates(registration_of(facts, here)), "broken": {"path": "/bin/false"}})
    with closing(docker.DockerClient(base_url=daemon.address)) as client:
        for runtime in ("broken", registration.PLAIN):
            registration.trial(client, facts["image"], runtime)
    end = time.monotonic() + 15  # containerd cleans up behind us, in processes of its own
    while of_instance(here) != ["containerd"] and time.monotonic() < end:
        time.sleep(0.1)
    assert of_instance(here) == ["containerd"]


def registration_of(facts: dict[str, dict[str, str]], here: Place) -> registration.Runsc:
    its = facts["runsc"]
    return registration.Runsc(Path(its["path"]), its["version"], here.var / "runsc/runsc-unshare")


def test_runc_never_passes_for_gvisor(here: Place) -> None:
    daemon = OwnDaemon(here)
    facts = engine.ready(here, daemon)
    with closing(docker.DockerClient(base_url=daemon.address)) as client:
        assert registration.trial(client, facts["image"], "runc") is not None
        assert registration.trial(client, facts["image"], facts["runtime"]) is None


def test_a_daemon_of_the_users_without_gvisor_stops_the_start_with_the_fix_and_stays_as_it_is(
    theirs: OwnDaemon, tmp_path_factory: pytest.TempPathFactory
) -> None:
    var = tmp_path_factory.mktemp("var")
    before, process = theirs.config_file.read_text(), theirs.pid()
    env = {**os.environ, "SANDGATE_VAR": str(var), "DOCKER_HOST": theirs.address}
    done = subprocess.run([CHECKOUT / "bin/up"], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert theirs.address in done.stderr
    assert '{"runtimes": {"runsc": {"path": "' in done.stderr
    assert "bin/up --own-docker" in done.stderr
    assert not (var / "engine.json").exists()
    assert theirs.config_file.read_text() == before
    assert theirs.pid() == process
    assert answers(theirs.address)


def test_the_printed_fix_is_one_that_works(theirs: OwnDaemon, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = Place(var=tmp_path_factory.mktemp("var"), cache=CACHE)
    message = engine.lacks_runsc(place, theirs.address)
    (line,) = (line for line in message.splitlines() if line.strip().startswith("{"))
    theirs.start(json.loads(line)["runtimes"])  # what the user does: into the configuration, then a reload
    facts = engine.with_theirs(place, theirs.address, set())
    assert facts["runtime"] == "runsc"
    assert facts["own_docker"] is False


def test_the_keeper_compiles_without_a_warning() -> None:
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(keeper.SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
