"""What Docker lost: container processes, found by a mark on their command line, mounts and loop devices."""

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

SHIM = "containerd-shim-runc-v2"
OURS = {SHIM, "runsc-gofer", "runsc-sandbox", "runsc"}
LIMIT_S = 10


def end(mark: str, *, quiet_s: float) -> None:
    """Kills until none was seen for `quiet_s`: containerd cleans up behind a dead shim, and that can hang too.

    `mark` is a container's full id, or a directory with the instance id in it. Shims go last, since they collect
    their dead children: `runsc delete` waits for one that nobody collects.
    """
    began = seen_at = time.monotonic()
    while time.monotonic() - seen_at <= quiet_s and time.monotonic() - began < LIMIT_S:
        found = processes(mark)
        inner = [pid for pid, name in found.items() if name != SHIM]
        for pid in inner or found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if found:
            seen_at = time.monotonic()
        time.sleep(0.05)


def processes(mark: str) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            name = Path(os.fsdecode(words[0])).name
            if name in OURS and any(mark.encode() in word for word in words):
                found[int(entry.name)] = name
    return found


def unmount(*folders: Path) -> None:
    """A killed dockerd leaves mounts, under which nothing could be deleted. Innermost first."""
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split()[1]))
        if any(point.is_relative_to(folder) for folder in folders):
            subprocess.run(["umount", "--lazy", point], capture_output=True, process_group=0)


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
        subprocess.run(["losetup", "--detach", device], capture_output=True, process_group=0)
