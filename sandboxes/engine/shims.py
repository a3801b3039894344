"""The shim that stands between containerd and one container, when it answers no more.

A shim has been seen to outlive its container and hold every call about it, with no process left below it; containerd
takes care of what a dead one leaves. Owns finding such a shim by its container's id. Must never touch the shim of a
container that is not being removed.
"""

import os
import signal
from pathlib import Path

PROGRAM = b"containerd-shim-runc-v2"


def end_stuck(container_id: str, *, even_with_children: bool = False, proc: Path = Path("/proc")) -> list[int]:
    """Kills the container's shim if nothing that lives is below it, or `even_with_children`. Returns the pids that were
    killed: none where Docker runs elsewhere, or is not ours to kill for."""
    if os.geteuid() != 0:
        return []
    killed = []
    for pid in _shims(container_id, proc):
        if even_with_children or not _lives_below(pid, proc):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
    return killed


def _shims(container_id: str, proc: Path) -> list[int]:
    return [int(each.name) for each in proc.glob("[0-9]*") if _is_shim_of(each, container_id)]


def _is_shim_of(process: Path, container_id: str) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:  # gone meanwhile
        return False
    if os.path.basename(words[0]) != PROGRAM or b"-id" not in words[:-1]:
        return False
    return words[words.index(b"-id") + 1] == container_id.encode()


def _lives_below(pid: int, proc: Path) -> bool:
    return any(state not in "ZX" for state in (_state(each, parent=pid) for each in proc.glob("[0-9]*")) if state)


def _state(process: Path, *, parent: int) -> str:
    """Its letter in `stat`; "" when it is gone, or another's child."""
    try:
        state, its_parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[:2]
    except OSError:
        return ""
    return state.decode() if int(its_parent) == parent else ""
