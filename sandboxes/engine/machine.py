"""What doctor says of the machine that sandboxes run on: what it is, whether limits bite, room on its disks, its clock.

Owns these facts. Must never believe what Docker says it could do where what it did can be looked at.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CGROUPS = Path("/sys/fs/cgroup")
ROOM_BYTES = 5 << 30
"""Less is one careless sandbox from nothing: disks are files that grow into their size."""
CLOCK_S = 30.0
_NEEDED = {"MemoryLimit": "memory", "CpuCfsQuota": "CPU", "PidsLimit": "processes"}


@dataclass(frozen=True)
class Check:
    """`fix` says what to do when `ok` is false."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def about(info: Mapping[str, Any]) -> Check:
    words = (
        f"Linux {info.get('KernelVersion')}, cgroup v{info.get('CgroupVersion', '?')} by {info.get('CgroupDriver')}, "
        f"{info.get('NCPU')} CPUs, {int(info.get('MemTotal') or 0) >> 20} MB of memory"
    )
    return Check("machine", True, words)


def can_limit(info: Mapping[str, Any]) -> Check:
    missing = [name for key, name in _NEEDED.items() if not info.get(key)]
    detail = f"Docker cannot limit {', '.join(missing)}" if missing else "Docker can limit memory, CPU and processes"
    fix = (
        "Mount the cgroup controllers that are missing, or start the kernel with cgroup_enable=memory; restart Docker."
    )
    return Check("limits", not missing, detail, fix)


def clock(info: Mapping[str, Any], now: datetime) -> Check:
    """Deadlines are compared with this server's clock, and containers are dated by Docker's."""
    fix = "Set both clocks from the same time servers."
    try:
        docker = datetime.fromisoformat(str(info.get("SystemTime"))[:26].rstrip("Z")).replace(tzinfo=UTC)
    except ValueError:
        return Check("clock", False, f"Docker's time cannot be read: {info.get('SystemTime')!r}", fix)
    apart_s = abs((docker - now).total_seconds())
    return Check("clock", apart_s < CLOCK_S, f"Docker's and this server's are {apart_s:.1f} s apart", fix)


def room(*places: Path) -> Check:
    """Where disks of sandboxes, kept outputs and images lie."""
    free = {place: shutil.disk_usage(place).free for place in places if place.is_dir()}
    short = [place for place, left in free.items() if left < ROOM_BYTES]
    detail = "; ".join(f"{left / (1 << 30):.1f} GB free in {place}" for place, left in free.items())
    fix = f"Make room until {ROOM_BYTES >> 30} GB are free, or move them: SANDGATE_VAR, Docker's data-root."
    return Check("disk space", not short, detail or "no folder of ours is on this machine", fix)


def bites(pid: int, *, memory_mb: int, cpus: float, processes: int) -> Check:
    """The limits of a sandbox as the kernel has them, by the process that holds it on this machine."""
    fix = "Docker took the limits and the kernel does not hold them: look at Docker's log and its cgroup driver."
    found = {name: applied for name in ("memory", "cpu", "pids") if (applied := _applied(pid, name)) is not None}
    if not found:
        return Check("limits hold", False, f"no cgroup of process {pid} is to be found under {CGROUPS}", fix)
    wanted = {"memory": memory_mb << 20, "cpu": cpus, "pids": processes}
    wrong = [name for name, most in wanted.items() if not 0 < found.get(name, 0) <= most * 1.01]
    shown = {**found, **({"memory": f"{int(found['memory']) >> 20} MB"} if "memory" in found else {})}
    detail = ", ".join(f"{name} {shown.get(name, 'not set')}" for name in wanted)
    return Check("limits hold", not wrong, f"{detail} for a sandbox, as the kernel has it", fix)


def _applied(pid: int, controller: str) -> float | None:
    """v1 has a hierarchy for each controller, v2 one for all (number 0, no name)."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return None
    for number, names, path in (line.split(":", 2) for line in lines):
        if controller in names.split(","):
            return _read_v1(CGROUPS / controller / path.lstrip("/"), controller)
        if number == "0" and not names and (CGROUPS / "cgroup.controllers").exists():
            return _read_v2(CGROUPS / path.lstrip("/"), controller)
    return None


def _read_v1(folder: Path, controller: str) -> float | None:
    if controller == "cpu":
        quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        return quota / period if quota and period else None
    return _number(folder / {"memory": "memory.limit_in_bytes", "pids": "pids.max"}[controller])


def _read_v2(folder: Path, controller: str) -> float | None:
    if controller != "cpu":
        return _number(folder / f"{controller}.max")
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # `max` is no limit
        return None


def _number(file: Path) -> float | None:
    try:
        return float(int(file.read_text()))
    except (OSError, ValueError):
        return None
