"""What Docker lost: container processes, found by a mark in their command line that only ours carry, and mounts."""

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

OURS = {"containerd-shim-runc-v2", "runsc-gofer", "runsc-sandbox", "runsc"}


def end(mark: str) -> int:
    """`mark` is a container's full id, or a directory with the instance id in it. Returns how many were killed."""
    ended = 0
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else [b""]
            if Path(os.fsdecode(words[0])).name in OURS and any(mark.encode() in word for word in words):
                os.kill(int(entry.name), signal.SIGKILL)
                ended += 1
    return ended


def unmount(*folders: Path) -> None:
    """A killed dockerd leaves mounts, under which nothing could be deleted. Innermost first."""
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split()[1]))
        if any(point.is_relative_to(folder) for folder in folders):
            subprocess.run(["umount", "--lazy", point], capture_output=True)
