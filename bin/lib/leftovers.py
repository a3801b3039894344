"""What Docker lost: container processes, found by a mark on their command line, mounts and loop devices."""

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


def loops(folder: Path) -> list[Path]:
    """Loop devices whose file lies under `folder`, whether it still exists or not."""
    found = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):
            if Path(entry.read_text().strip().removesuffix(" (deleted)")).is_relative_to(folder):
                found.append(Path("/dev") / entry.parts[3])
    return found


def free_loops(folder: Path) -> None:
    """Sandbox disks of a console that was killed: nobody else would give their devices back."""
    for device in loops(folder):
        subprocess.run(["losetup", "--detach", device], capture_output=True)
