"""Puts the parts together into a working engine and writes `engine.json`, which the product reads."""

import json
import os
from typing import Any

import docker

from lib import image, keeper, registration, runsc
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
    client = docker.DockerClient(base_url=own.address, timeout=120)
    wanted = image.ensure(client, place.cache)
    runtime = registration.first_working(client, wanted, runtimes)
    client.close()
    facts = {
        "docker_host": own.address,
        "runtime": runtime,
        "image": wanted,
        "own_docker": True,
        "runsc": {"path": str(found.path), "version": found.version},
    }
    return write(place, facts)


def with_theirs(place: Place, address: str) -> dict[str, Any]:
    client = docker.DockerClient(base_url=address, timeout=120)
    names = [name for name in client.info()["Runtimes"] if "runsc" in name or "gvisor" in name]
    if not names:
        raise Stop(lacks_runsc(place, address))
    wanted = image.ensure(client, place.cache)
    runtime = registration.first_working(client, wanted, names)
    client.close()
    facts = {"docker_host": address, "runtime": runtime, "image": wanted, "own_docker": False, "runsc": {}}
    return write(place, facts)


def lacks_runsc(place: Place, address: str) -> str:
    found = runsc.get(place)
    return (
        f"the Docker daemon at {address} has no gVisor runtime, and it is yours, so it is left as it is.\n"
        f"Either add this to its /etc/docker/daemon.json and restart it:\n"
        f'    {{"runtimes": {{"runsc": {{"path": "{found.wrapper}"}}}}}}\n'
        f"or let Sandgate start a daemon of its own beside it:\n"
        f"    bin/up --own-docker"
    )


def write(place: Place, facts: dict[str, Any]) -> dict[str, Any]:
    facts["keeper"] = str(keeper.ensure(place)) if keeper.SOURCE.exists() else None
    part = place.engine_json.with_suffix(".new")
    part.write_text(json.dumps(facts, indent=2) + "\n")
    part.rename(place.engine_json)
    return facts
