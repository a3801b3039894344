"""The processes of gVisor on this machine, ended without asking Docker: for a halt, which cannot wait for its turn.

Owns finding them: by the control group of their container, which is a few files whatever else runs here, and where that
tells nothing by a look at all processes. Whatever runs in a sandbox are threads of its sentry, and end with it. Must
never touch a process that does not name one of these containers or is in its group, nor one that took over the number
of another.
"""

import os
import signal
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("runsc-sandbox", "runsc-gofer")
# As Docker names the group of a container: v2 with systemd and without, then v1.
GROUPS = ("system.slice/docker-{}.scope", "docker/{}", "pids/system.slice/docker-{}.scope", "pids/docker/{}")


def kill(container_ids: Collection[str], *, proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """How many were killed: none where Docker runs elsewhere, or is not ours to kill for."""
    if os.geteuid() != 0 or not container_ids:
        return 0
    killed = {each: _kill_by_group(each, proc, groups) for each in container_ids}
    left = {each.encode() for each, count in killed.items() if not count}
    everything = (int(name) for name in (os.listdir(proc) if left else ()) if name.isdigit())
    return sum(killed.values()) + sum(_kill(pid, left, proc) for pid in everything)


def _kill_by_group(container_id: str, proc: Path, groups: Path) -> int:
    for place in GROUPS if container_id.isalnum() else ():
        group = groups / place.format(container_id)
        with suppress(OSError):  # there is none, here
            pids = sorted(map(int, (group / "cgroup.procs").read_text().split()))
            return _kill_whole(group, pids) or _kill_programs(pids, container_id, proc)
    return 0


def _kill_whole(group: Path, pids: list[int]) -> int:
    """In one write, which no fork escapes. Only v2 has it."""
    if not pids or not (group / "cgroup.kill").exists():
        return 0
    (group / "cgroup.kill").write_text("1")
    return len(pids)


def _kill_programs(pids: Iterable[int], container_id: str, proc: Path) -> int:
    """They are the oldest, so what follows them, hundreds in one that forks, is not looked at."""
    killed = 0
    for pid in pids:
        killed += _kill(pid, {container_id.encode()}, proc)
        if killed == len(PROGRAMS):
            break
    return killed


def _is_of(process: Path, names: set[bytes]) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:  # gone meanwhile
        return False
    return os.path.basename(words[0]).decode("ascii", "replace") in PROGRAMS and not names.isdisjoint(words)


def _kill(pid: int, names: set[bytes], proc: Path) -> bool:
    if not _is_of(proc / str(pid), names):
        return False
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if _is_of(proc / str(pid), names):  # looked at again: the number may be another's by now
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        finally:
            os.close(handle)
    return False
