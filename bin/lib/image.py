"""The stock sandbox images: built from Debian packages alone, kept as tars, imported where the daemon lacks them."""

import fcntl
import hashlib
import os
from pathlib import Path

import docker

from lib import debian
from lib.place import CHECKOUT
from lib.say import Stop, run, say

RECIPES = CHECKOUT / "images"
STOCK = {"default": ("default",), "node": ("default", "node")}
"""An image by its name, and whose packages it holds. The product knows the names too: `console.workspaces.stock`."""
CHANGES = [
    "ENV PATH=/usr/local/bin:/usr/bin:/bin",
    "ENV LANG=C.UTF-8",
    "WORKDIR /work",
    'CMD ["/bin/bash"]',
]


def packages(stock: str) -> list[Path]:
    return [RECIPES / part / "packages" for part in STOCK[stock]]


def name(stock: str) -> str:
    """Named by its recipe: another recipe is another image, and sandboxes made before keep theirs."""
    digest = hashlib.sha256()
    for part in (RECIPES / "build", RECIPES / "in-image.sh", *packages(stock)):
        digest.update(part.read_bytes())
    digest.update("\n".join(CHANGES).encode())
    return f"sandgate/{stock}:{digest.hexdigest()[:12]}"


def ensure(client: docker.DockerClient, cache: Path, stock: str) -> str:
    """Its name in Docker, where it is when this returns."""
    if stock == "default" and (chosen := os.environ.get("SANDGATE_IMAGE")):
        return existing(client, chosen)
    wanted = name(stock)
    if not client.images.list(name=wanted):
        tar = build(stock, wanted, cache)
        say(f"importing the sandbox image {wanted}")
        repository, tag = wanted.split(":")
        client.api.import_image_from_file(str(tar), repository=repository, tag=tag, changes=CHANGES)
    return wanted


def existing(client: docker.DockerClient, chosen: str) -> str:
    if not client.images.list(name=chosen):
        raise Stop(f"SANDGATE_IMAGE is {chosen}, which this Docker daemon does not have: build or pull it first.")
    return chosen


def build(stock: str, wanted: str, cache: Path) -> Path:
    tar = cache / f"{wanted.replace('/', '-').replace(':', '-')}.tar"
    with (cache / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two instances starting at once build it once
        if not tar.exists():
            debian.need("mmdebstrap", "mmdebstrap ca-certificates", why="builds the sandbox image")
            say(f"building the sandbox image {stock} from Debian packages (a minute or two, once per machine)")
            part = tar.with_suffix(".part.tar")
            run([str(RECIPES / "build"), str(part), debian.mirror(), *map(str, packages(stock))])
            part.rename(tar)
    return tar
