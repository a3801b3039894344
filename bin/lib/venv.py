"""The virtual environment `.venv`: made once, filled from hashed requirements, filled again when those files change."""

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

from lib import debian
from lib.place import CHECKOUT
from lib.say import Stop, run, say

VENV = CHECKOUT / ".venv"
PYTHON = VENV / "bin/python"


def enter(*requirements: str) -> None:
    """Returns inside the environment: from outside, this process becomes its Python and starts over."""
    if Path(sys.prefix).resolve() != VENV.resolve():
        make()
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    for name in requirements:
        fill(CHECKOUT / name)


def make() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 (this runs before anything has chosen a Python)
        raise Stop(f"{sys.executable} is Python {sys.version.split()[0]}; Sandgate needs 3.11 or newer.")
    if PYTHON.exists() and list(VENV.glob("lib/python*/site-packages/pip")):  # without: cut off while it was made
        return
    if not importlib.util.find_spec("ensurepip"):
        debian.install(["python3-venv"], why="to make a virtual environment")
    say("making the virtual environment .venv")
    run([sys.executable, "-m", "venv", "--clear", str(VENV)])


def fill(requirements: Path) -> None:
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    stamp = VENV / f"{requirements.stem}.sha256"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say(f"installing the pinned packages of {requirements.name} into .venv")
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]
    run(
        [*pip, "install", "--require-hashes", "-r", str(requirements)],
        fix="Check the network and pip's settings (`pip config list`), then try again.",
    )
    stamp.write_text(wanted)
