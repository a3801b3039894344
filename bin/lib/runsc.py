"""gVisor's `runsc`: the machine's own when new enough, else Debian 13's package through a private apt configuration."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lib import debian
from lib.place import Place
from lib.say import Stop, run, say

SUITE = "trixie"
OLDEST = 20240729  # older ones cannot seal files: bind mounts inside the sandbox fail
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# Releases before about 2025 take every network namespace for the host's where /proc/sys/net/core/rmem_default exists,
# which is everywhere on newer kernels, and refuse to start. Hidden from runsc alone, it keeps its own network stack.
WRAPPER = """#!/bin/sh
exec unshare --mount --propagation slave /bin/sh -c \\
    'mount -t tmpfs none /proc/sys/net; exec {runsc} "$@"' runsc "$@"
"""


@dataclass(frozen=True)
class Runsc:
    path: Path
    version: str
    wrapper: Path


def get(place: Place) -> Runsc:
    home = place.var / "runsc"
    home.mkdir(exist_ok=True)
    path = on_machine() or from_debian(home, place.cache)
    wrapper = home / "runsc-unshare"
    wrapper.write_text(WRAPPER.format(runsc=path))
    wrapper.chmod(0o755)
    return Runsc(path=path, version=version(path), wrapper=wrapper)


def version(path: Path) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True)
    except OSError:
        return "unknown"  # a daemon elsewhere, or one that knows the program by another way
    found = re.search(r"version (\S+)", done.stdout)
    return found[1] if found else "unknown"


def release(text: str) -> int:
    found = re.search(r"20\d{6}", text)
    return int(found[0]) if found else 0


def on_machine() -> Path | None:
    found = debian.find("runsc")
    if not found:
        return None
    if release(version(Path(found))) >= OLDEST:
        return Path(found)
    say(f"{found} is {version(Path(found))}, too old to seal files (needs {OLDEST}); taking Debian 13's instead")
    return None


def from_debian(home: Path, cache: Path) -> Path:
    path = home / "runsc"
    if not path.exists():
        debs = sorted(cache.glob("runsc_*.deb"))
        deb = debs[-1] if debs else download(cache)
        run(["dpkg-deb", "-x", str(deb), str(home / "package")])
        (home / "package/usr/bin/runsc").rename(path)
        shutil.rmtree(home / "package")
    return path


def download(cache: Path) -> Path:
    say("fetching runsc (gVisor) from Debian 13; the system's own package sources stay as they are")
    apt = cache / "apt"
    for folder in ("lists/partial", "archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    (apt / "sources.list").write_text(f"deb [signed-by={KEYRING}] {debian.mirror()} {SUITE} main\n")
    options = {
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": apt,
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt,
        "APT::Sandbox::User": "root",
    }
    command = ["apt-get", *(f"-o{key}={value}" for key, value in options.items())]
    fix = "Install a runsc of 2024-07-29 or newer into /usr/local/bin (see gvisor.dev) and try again."
    run([*command, "update"], fix=fix)
    run([*command, "download", "runsc"], cwd=str(cache), fix=fix)
    debs = sorted(cache.glob("runsc_*.deb"))
    if not debs:
        raise Stop(f"Debian 13 gave no runsc package for this machine. {fix}")
    return debs[-1]
