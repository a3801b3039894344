"""What doctor says of a machine, from what Docker and the kernel say; each fault with its fix."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sandboxes.engine import machine

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
INFO = {"MemoryLimit": True, "CpuCfsQuota": True, "PidsLimit": True, "SystemTime": "2026-01-02T03:04:05.123456789Z"}


@pytest.mark.parametrize(
    ("lacks", "named"), [("MemoryLimit", "memory"), ("CpuCfsQuota", "CPU"), ("PidsLimit", "processes")]
)
def test_a_docker_that_cannot_limit_is_told_with_what_and_a_fix(lacks, named):
    assert machine.can_limit(INFO).ok
    for info in ({**INFO, lacks: False}, {key: value for key, value in INFO.items() if key != lacks}):
        check = machine.can_limit(info)
        assert (check.ok, named in check.detail, bool(check.fix)) == (False, True, True)


@pytest.mark.parametrize("apart_s", [-3600, -31, 31, 86400 * 365])
def test_clocks_that_are_apart_are_told(apart_s):
    assert machine.clock(INFO, NOW).ok
    assert not machine.clock(INFO, NOW + timedelta(seconds=apart_s)).ok


@pytest.mark.parametrize("said", ["", "yesterday", None, 12, "2026-13-40T00:00:00Z"])
def test_a_time_that_is_none_is_a_fault_and_no_crash(said):
    assert not machine.clock({"SystemTime": said}, NOW).ok


@pytest.mark.parametrize("said", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.123456789Z"])
def test_dockers_time_is_read_with_any_number_of_digits(said):
    assert machine.clock({"SystemTime": said}, NOW).ok


def test_a_disk_that_is_nearly_full_is_told_by_its_folder(tmp_path, monkeypatch):
    assert machine.room(tmp_path, tmp_path / "is not there").ok
    monkeypatch.setattr(machine, "ROOM_BYTES", 1 << 62)
    check = machine.room(tmp_path)
    assert not check.ok
    assert str(tmp_path) in check.detail


HELD = {"memory": "536870912\n", "cpu": "100000 100000\n", "pids": "1024\n"}
V1 = {
    "memory/box/memory.limit_in_bytes": "536870912\n", "cpu,cpuacct/box/cpu.cfs_quota_us": "100000\n",
    "cpu,cpuacct/box/cpu.cfs_period_us": "100000\n", "pids/box/pids.max": "1024\n",
}  # fmt: skip
V2 = {
    "cgroup.controllers": "",
    "box/memory.max": "536870912\n",
    "box/cpu.max": "100000 100000\n",
    "box/pids.max": "1024\n",
}


def judged(tmp_path, monkeypatch, files, lines, **changed):
    for name, content in {**files, **changed}.items():
        file = tmp_path / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    proc = tmp_path / "proc-cgroup"
    proc.write_text(lines)
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "Path", lambda path: proc if path == "/proc/77/cgroup" else Path(path))
    (tmp_path / "cgroup/cpu").symlink_to("cpu,cpuacct")
    return machine.bites(77, memory_mb=512, cpus=1.0, processes=1024)


ONE = "9:name=systemd:/box\n8:pids:/box\n5:memory:/box\n3:cpu,cpuacct:/box\n"
TWO = "0::/box\n"


@pytest.mark.parametrize(("files", "lines"), [(V1, ONE), (V2, TWO)], ids=["v1", "v2"])
def test_limits_that_the_kernel_holds_are_read_from_it(tmp_path, monkeypatch, files, lines):
    assert judged(tmp_path, monkeypatch, files, lines).ok


@pytest.mark.parametrize(
    ("files", "lines", "changed"),
    [
        (V1, ONE, {"memory/box/memory.limit_in_bytes": "9223372036854771712\n"}),
        (V1, ONE, {"cpu,cpuacct/box/cpu.cfs_quota_us": "-1\n"}),
        (V1, ONE, {"pids/box/pids.max": "max\n"}),
        (V2, TWO, {"box/memory.max": "max\n"}),
        (V2, TWO, {"box/cpu.max": "max 100000\n"}),
        (V2, TWO, {"box/pids.max": "4194304\n"}),
        (V1, "", {}),
        (V1, "5:memory:/box\n", {}),
    ],
)
def test_a_limit_that_the_kernel_does_not_hold_is_a_fault(tmp_path, monkeypatch, files, lines, changed):
    check = judged(tmp_path, monkeypatch, files, lines, **changed)
    assert not check.ok
    assert check.fix
