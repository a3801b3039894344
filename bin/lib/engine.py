"""Puts the parts together into a working engine and writes `engine.json`, which the product reads."""

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import docker

from lib import image, jail, keeper, registration, runsc
from lib.daemon import OwnDaemon, theirs
from lib.place import Place
from lib.say import Stop


def own(place: Place, *, own_docker: bool) -> OwnDaemon | None:
    """Ours, or None: a daemon of the user's answers. What was chosen once stays, unless DOCKER_HOST says otherwise."""
    daemon = OwnDaemon(place)
    if own_docker or (daemon.chosen_before() and not os.environ.get("DOCKER_HOST")):
        return daemon
    return None if theirs() else daemon


def ready(place: Place, daemon: OwnDaemon | None) -> dict[str, Any]:
    """Starts and finds all parts, and returns what is in `engine.json` then."""
    return with_own(place, daemon) if daemon else with_theirs(place, theirs() or "")


def with_own(place: Place, own: OwnDaemon) -> dict[str, Any]:
    found = runsc.get(place)
    runtimes = registration.candidates(found)
    own.start(runtimes)
    return proven(place, own.address, list(runtimes), own_docker=True, paths={name: found.path for name in runtimes})


def with_theirs(place: Place, address: str) -> dict[str, Any]:
    with closing(docker.DockerClient(base_url=address, timeout=60)) as client:
        all_runtimes = client.info()["Runtimes"]
    paths = {
        name: Path(its.get("path", "")) for name, its in all_runtimes.items() if "runsc" in name or "gvisor" in name
    }
    if not paths:
        raise Stop(lacks_runsc(place, address))
    jail.need()
    return proven(place, address, list(paths), own_docker=False, paths=paths)


def proven(
    place: Place, address: str, runtimes: list[str], *, own_docker: bool, paths: dict[str, Path]
) -> dict[str, Any]:
    """What is written down has started a sandbox just now."""
    with closing(docker.DockerClient(base_url=address, timeout=120)) as client:
        wanted = image.ensure(client, place.cache)
        runtime = registration.first_working(client, wanted, remembered_first(place, runtimes))
    facts = {
        "docker_host": address,
        "runtime": runtime,
        "image": wanted,
        "own_docker": own_docker,
        "runsc": {"path": str(paths[runtime]), "version": runsc.version(paths[runtime])},
        "kernel": os.uname().release,
        "keeper": str(keeper.ensure(place)),
    }
    part = place.engine_json.with_suffix(".new")
    part.write_text(json.dumps(facts, indent=2) + "\n")
    part.rename(place.engine_json)
    return facts


def remembered_first(place: Place, runtimes: list[str]) -> list[str]:
    """What worked before on this kernel is tried first: each failing try costs half a second."""
    try:
        last = json.loads(place.engine_json.read_text())
        worked = last["runtime"] if last["kernel"] == os.uname().release else None
    except (OSError, ValueError, KeyError):
        worked = None
    return sorted(runtimes, key=lambda runtime: runtime != worked)


def lacks_runsc(place: Place, address: str) -> str:
    found = runsc.get(place)
    return (
        f"the Docker daemon at {address} has no gVisor runtime, and it is yours, so it is left as it is.\n"
        f"Either add this to its /etc/docker/daemon.json and restart it:\n"
        f'    {{"runtimes": {{"runsc": {{"path": "{found.wrapper}"}}}}}}\n'
        f"or let Sandgate start a daemon of its own beside it:\n"
        f"    bin/up --own-docker"
    )
