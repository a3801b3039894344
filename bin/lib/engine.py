"""Puts the parts together into a working engine and writes `engine.json`, which the product reads."""

import json
import os
from collections.abc import Iterable
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


def ready(place: Place, daemon: OwnDaemon | None, images: Iterable[str] = ()) -> dict[str, Any]:
    """Starts and finds all parts, and returns what is in `engine.json` then. `images` are wanted beside the default one
    and those that were wanted before."""
    wanted = {*images, *remembered(place).get("images", ())}
    return with_own(place, daemon, wanted) if daemon else with_theirs(place, theirs() or "", wanted)


def with_own(place: Place, own: OwnDaemon, images: set[str]) -> dict[str, Any]:
    found = runsc.get(place)
    runtimes = registration.candidates(found)
    own.start(runtimes)
    paths = {name: found.path for name in runtimes}
    return proven(place, own.address, list(runtimes), own_docker=True, paths=paths, images=images)


def with_theirs(place: Place, address: str, images: set[str]) -> dict[str, Any]:
    with closing(docker.DockerClient(base_url=address, timeout=60)) as client:
        all_runtimes = client.info()["Runtimes"]
    paths = {
        name: Path(its.get("path", "")) for name, its in all_runtimes.items() if "runsc" in name or "gvisor" in name
    }
    if not paths:
        raise Stop(lacks_runsc(place, address))
    jail.need()
    return proven(place, address, list(paths), own_docker=False, paths=paths, images=images)


def proven(
    place: Place, address: str, runtimes: list[str], *, own_docker: bool, paths: dict[str, Path], images: set[str]
) -> dict[str, Any]:
    """What is written down has started a sandbox just now."""
    with closing(docker.DockerClient(base_url=address, timeout=120)) as client:
        wanted = image.ensure(client, place.cache, "default")
        others = {stock: image.ensure(client, place.cache, stock) for stock in sorted(images & image.STOCK.keys())}
        runtime = registration.first_working(client, wanted, remembered_first(place, runtimes))
    facts = {
        "docker_host": address,
        "runtime": runtime,
        "image": wanted,
        "images": others,
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
    last = remembered(place)
    worked = last.get("runtime") if last.get("kernel") == os.uname().release else None
    return sorted(runtimes, key=lambda runtime: runtime != worked)


def remembered(place: Place) -> dict[str, Any]:
    """What the last start wrote down."""
    try:
        found = json.loads(place.engine_json.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def lacks_runsc(place: Place, address: str) -> str:
    found = runsc.get(place)
    return (
        f"the Docker daemon at {address} has no gVisor runtime, and it is yours, so it is left as it is.\n"
        f"Either add this to its /etc/docker/daemon.json and restart it:\n"
        f'    {{"runtimes": {{"runsc": {{"path": "{found.wrapper}"}}}}}}\n'
        f"or let Sandgate start a daemon of its own beside it:\n"
        f"    bin/up --own-docker"
    )
