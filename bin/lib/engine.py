"""Puts the parts together into a working engine and writes `engine.json`, which the product reads."""

import json
from dataclasses import dataclass
from typing import Any

import docker

from lib import image, keeper, registration, runsc
from lib.daemon import OwnDaemon, theirs
from lib.place import Place
from lib.say import Stop


@dataclass
class Engine:
    facts: dict[str, Any]
    own: OwnDaemon | None  # None: the daemon is the user's, and we never stop it


def ready(place: Place, *, own_docker: bool) -> Engine:
    own = OwnDaemon(place)
    address = None if own_docker or own.chosen_before() else theirs()
    return with_theirs(place, address) if address else with_own(place, own)


def with_own(place: Place, own: OwnDaemon) -> Engine:
    found = runsc.get(place)
    runtimes = registration.candidates(found)
    own.start(runtimes)
    client = docker.DockerClient(base_url=own.address, timeout=120)
    wanted = image.ensure(client, place.cache)
    runtime = registration.first_working(client, wanted, remembered_first(place, list(runtimes)))
    client.close()
    facts = {
        "docker_host": own.address,
        "runtime": runtime,
        "image": wanted,
        "own_docker": True,
        "runsc": {"path": str(found.path), "version": found.version},
    }
    return write(place, facts, own)


def with_theirs(place: Place, address: str) -> Engine:
    client = docker.DockerClient(base_url=address, timeout=120)
    names = [name for name in client.info()["Runtimes"] if "runsc" in name or "gvisor" in name]
    if not names:
        raise Stop(lacks_runsc(place, address))
    wanted = image.ensure(client, place.cache)
    runtime = registration.first_working(client, wanted, remembered_first(place, names))
    client.close()
    facts = {"docker_host": address, "runtime": runtime, "image": wanted, "own_docker": False, "runsc": {}}
    return write(place, facts, None)


def remembered_first(place: Place, names: list[str]) -> list[str]:
    try:
        last = json.loads(place.engine_json.read_text())["runtime"]
    except (OSError, ValueError, KeyError):
        return names
    return sorted(names, key=lambda name: name != last)


def lacks_runsc(place: Place, address: str) -> str:
    found = runsc.get(place)
    return (
        f"the Docker daemon at {address} has no gVisor runtime, and it is yours, so it is left as it is.\n"
        f"Either add this to its /etc/docker/daemon.json and restart it:\n"
        f'    {{"runtimes": {{"runsc": {{"path": "{found.wrapper}"}}}}}}\n'
        f"or let Sandgate start a daemon of its own beside it:\n"
        f"    bin/up --own-docker"
    )


def write(place: Place, facts: dict[str, Any], own: OwnDaemon | None) -> Engine:
    facts["keeper"] = str(keeper.ensure(place)) if keeper.SOURCE.exists() else None
    part = place.engine_json.with_suffix(".new")
    part.write_text(json.dumps(facts, indent=2) + "\n")
    part.rename(place.engine_json)
    return Engine(facts, own)
