"""The small static program that keeps one command's processes inside a sandbox: compiled once per source."""

import hashlib
import shutil
from pathlib import Path

from lib import debian
from lib.place import CHECKOUT, Place
from lib.say import run, say

SOURCE = CHECKOUT / "sandboxes/runner/keeper.c"


def ensure(place: Place) -> Path:
    built = place.cache / f"keeper-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
    if not built.exists():
        debian.need("gcc", "gcc libc6-dev", why="compiles a small program that runs in each sandbox")
        say("compiling the keeper")
        part = place.cache / f"{built.name}.{place.instance}"
        run(["gcc", "-O2", "-static", "-o", str(part), str(SOURCE)])
        part.rename(built)
    keeper = place.var / "keeper"
    if not keeper.exists() or keeper.read_bytes() != built.read_bytes():
        part = place.var / "keeper.new"
        shutil.copy(built, part)
        part.rename(keeper)
    return keeper
