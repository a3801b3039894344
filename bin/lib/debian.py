"""The distribution: installs missing packages (saying so first), finds its mirror, leaves its sources alone."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lib.say import Stop, run, say

POLICY = Path("/usr/sbin/policy-rc.d")
SOURCES = Path("/etc/apt")


def need(program: str, packages: str, *, why: str) -> None:
    """Installs `packages` unless `program` is there already."""
    if not find(program):
        install(packages.split(), why=why)


def find(program: str) -> str | None:
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin")


def install(packages: list[str], *, why: str) -> None:
    say(f"installing {' '.join(packages)} from Debian ({why})")
    if os.geteuid() != 0 or not find("apt-get"):
        raise Stop(f"{', '.join(packages)} missing, and only root on Debian can install them: apt-get install them.")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Its failure may be that of a source which has nothing to do with these packages: the install decides.
    subprocess.run(["apt-get", "update"], env=env, stdin=subprocess.DEVNULL, capture_output=True)
    with services_kept_down():
        command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
        run(command, env=env, fix="Check the network and `apt-get update`, then try again.")


@contextmanager
def services_kept_down() -> Iterator[None]:
    """A package's daemon must not start by itself: Debian asks policy-rc.d, and 101 means no."""
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink(missing_ok=True)


def mirror() -> str:
    """The archive this machine already uses, so that a closed network's own mirror is found."""
    if chosen := os.environ.get("SANDGATE_DEBIAN_MIRROR"):
        return chosen.rstrip("/")
    for file in [SOURCES / "sources.list", *sorted((SOURCES / "sources.list.d").glob("*"))]:
        if file.suffix in (".list", ".sources") and file.is_file() and (found := mirror_in(file.read_text())):
            return found
    raise Stop("apt's sources on this machine name no Debian archive; name one with SANDGATE_DEBIAN_MIRROR=http://….")


def mirror_in(sources: str) -> str | None:
    """From either of apt's two formats. The security archive has another path and is not taken for it."""
    found = re.search(r"^(?:deb |URIs:)[^#\n]*?(https?://\S+/debian)/?(?=\s|$)", sources, re.MULTILINE)
    return found[1] if found else None
