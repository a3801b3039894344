"""The default sandbox image: built from Debian packages alone, kept as a tar, imported where the daemon lacks it."""

import fcntl
import hashlib
import os
from pathlib import Path

import docker

from lib import debian
from lib.place import CHECKOUT
from lib.say import Stop, run, say

RECIPE = CHECKOUT / "images/default"
PARTS = ("build", "in-image.sh", "packages")
CHANGES = [
    "ENV PATH=/usr/local/bin:/usr/bin:/bin",
    "ENV LANG=C.UTF-8",
    "WORKDIR /work",
    'CMD ["/bin/bash"]',
]


def name() -> str:
    """Named by its recipe: another recipe is another image, and sandboxes made before keep theirs."""
    digest = hashlib.sha256()
    for part in PARTS:
        digest.update((RECIPE / part).read_bytes())
    digest.update("\n".join(CHANGES).encode())
    return f"sandgate/default:{digest.hexdigest()[:12]}"


def ensure(client: docker.DockerClient, cache: Path) -> str:
    if chosen := os.environ.get("SANDGATE_IMAGE"):
        return existing(client, chosen)
    wanted = name()
    if not client.images.list(name=wanted):
        tar = build(wanted, cache)
        say(f"importing the sandbox image {wanted}")
        repository, tag = wanted.split(":")
        client.api.import_image_from_file(str(tar), repository=repository, tag=tag, changes=CHANGES)
    return wanted


def existing(client: docker.DockerClient, chosen: str) -> str:
    if not client.images.list(name=chosen):
        raise Stop(f"SANDGATE_IMAGE is {chosen}, which this Docker daemon does not have: build or pull it first.")
    return chosen


def build(wanted: str, cache: Path) -> Path:
    tar = cache / f"{wanted.replace('/', '-').replace(':', '-')}.tar"
    with (cache / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two instances starting at once build it once
        if not tar.exists():
            debian.need("mmdebstrap", "mmdebstrap ca-certificates", why="builds the sandbox image")
            say("building the sandbox image from Debian packages (about a minute, once per machine)")
            part = tar.with_suffix(".part.tar")
            run([str(RECIPE / "build"), str(part), debian.mirror()])
            part.rename(tar)
    return tar
