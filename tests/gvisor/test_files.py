import asyncio
import hashlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import AsyncIterator

import pytest

from sandboxes.engine import Refusal, WriteRequest
from sandboxes.errors import FileError
from tests.gvisor.engines import OnePass
from tests.gvisor.served import until

KB, MB = 1 << 10, 1 << 20


@pytest.mark.parametrize("size", [0, 1, 18433, 131073, 1 * MB, 16 * MB + 1])
def test_bytes_come_back_as_they_went(bench, box, size):
    content = os.urandom(size)
    written = bench.write(box, f"/work/sizes/{size}", content)
    assert (written.path, written.size) == (f"/work/sizes/{size}", size)
    assert written.sha256 == hashlib.sha256(content).hexdigest()
    assert bench.read(box, f"/work/sizes/{size}") == content


def test_100_mb_each_way_in_little_memory(bench, box):
    block = os.urandom(256 * KB)

    async def blocks() -> AsyncIterator[bytes]:
        for _ in range(400):
            yield block

    async def there_and_back() -> tuple[str, str, int]:
        request = WriteRequest(path="/work/big", size=100 * MB)
        written = await box.write(OnePass(box.sandbox_id, "write"), request, blocks())
        found = await box.read(OnePass(box.sandbox_id, "read"), "/work/big")
        got = hashlib.sha256()
        async for chunk in found.chunks():
            got.update(chunk)
        return written.sha256, got.hexdigest(), found.size

    bench.write(box, "/work/warm", block)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    written, read, size = bench.do(there_and_back())
    assert (written, size) == (read, 100 * MB)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 20 * KB
    bench.bash(box, "rm /work/big")


@pytest.mark.parametrize(
    "name",
    [
        "..foo",
        "a%2Fb",
        "a b#c?.txt",
        "ünï.txt",
        "отчёт.pdf",
        "two\nlines",
        "\"'`$HOME",
        "-rf",
        "\udcff\udcfe",
        "x" * 255,
    ],
)
def test_odd_names_are_only_names(bench, box, name):
    bench.write(box, f"/work/odd/{name}", name.encode("utf-8", "surrogateescape"))
    assert bench.read(box, f"/work/odd/{name}") == name.encode("utf-8", "surrogateescape")
    assert bench.run(box, "cat", "--", f"/work/odd/{name}").out == name.encode("utf-8", "surrogateescape")


def test_parents_are_made_and_all_belongs_to_agent(bench, box):
    bench.write(box, "/work/new/er/est/file", b"x")
    ran = bench.bash(box, "stat -c '%U %G %a' /work/new /work/new/er/est /work/new/er/est/file")
    assert ran.text == "agent agent 755\nagent agent 755\nagent agent 644\n"


def test_mode_is_set_when_given_and_kept_when_not(bench, box):
    bench.write(box, "/work/mode", b"#!/bin/sh\necho ran\n", mode=0o755)
    assert bench.run(box, "/work/mode").text == "ran\n"
    bench.write(box, "/work/mode", b"#!/bin/sh\necho again\n")
    assert bench.run(box, "/work/mode").text == "again\n"
    bench.write(box, "/work/mode", b"", mode=0o600)
    assert bench.bash(box, "stat -c %a /work/mode").text == "600\n"


def test_write_goes_to_what_a_link_names(bench, box):
    bench.bash(box, "echo old > /work/target; ln -s target /work/link")
    assert bench.write(box, "/work/link", b"new").path == "/work/target"
    assert bench.bash(box, "cat /work/target; test -L /work/link && echo link").text == "newlink\n"


def test_part_of_a_file(bench, box):
    bench.write(box, "/work/part", bytes(range(100)))
    assert bench.read(box, "/work/part", offset=10, limit=5) == bytes(range(10, 15))
    assert bench.read(box, "/work/part", offset=95) == bytes(range(95, 100))
    assert bench.read(box, "/work/part", offset=1000) == b""


@pytest.mark.parametrize(
    ("make", "path", "code"),
    [
        ("", "/work/none", "file_not_found"),
        ("", "/work", "is_a_directory"),
        ("", "/etc/shadow", "permission_denied_in_sandbox"),
        ("", "/root/x", "permission_denied_in_sandbox"),
        ("", "/opt/sandgate/keeper", "permission_denied_in_sandbox"),
        ("", "/opt/sandgate/runner/runner.py", "permission_denied_in_sandbox"),
        ("", "/mnt/work", "permission_denied_in_sandbox"),
        ("ln -sf /etc/shadow /work/l1", "/work/l1", "permission_denied_in_sandbox"),
        ("ln -sf l2 /work/l2", "/work/l2", "bad_path"),
        ("touch /work/f", "/work/f/x", "bad_path"),
        ("", "/work/" + "x" * 300, "bad_path"),
        ("", "/work/nul\0", "bad_path"),
        ("mkfifo /work/fifo", "/work/fifo", "not_a_file"),
        ("", "/dev/zero", "not_a_file"),
    ],
)
def test_read_errors_tell_why(bench, box, make, path, code):
    bench.bash(box, make or "true")
    with pytest.raises(FileError) as caught:
        bench.read(box, path)
    assert caught.value.code == code
    assert path.split("\0")[0] in str(caught.value)


@pytest.mark.parametrize(
    ("make", "path", "code"),
    [
        ("", "/work", "is_a_directory"),
        ("mkdir -p /work/dir", "/work/dir", "is_a_directory"),
        ("", "/work/new/", "bad_path"),
        ("touch /work/f", "/work/f/x", "bad_path"),
        ("", "/etc/passwd", "permission_denied_in_sandbox"),
        ("", "/usr/bin/evil", "permission_denied_in_sandbox"),
        ("", "/opt/sandgate/keeper", "permission_denied_in_sandbox"),
        ("", "/mnt/x", "permission_denied_in_sandbox"),
        ("ln -sf /opt/sandgate/keeper /work/l3", "/work/l3", "permission_denied_in_sandbox"),
        ("ln -sfn / /work/l4", "/work/l4/etc/passwd", "permission_denied_in_sandbox"),
        ("mkdir -p /work/ro; chmod 555 /work/ro", "/work/ro/x", "permission_denied_in_sandbox"),
        ("mkfifo /work/fifo2", "/work/fifo2", "not_a_file"),
        ("", "/dev/null", "not_a_file"),
        ("", "/work/" + "x" * 300, "bad_path"),
    ],
)
def test_write_errors_tell_why_and_leave_nothing(bench, box, make, path, code):
    bench.bash(box, make or "true")
    with pytest.raises(FileError) as caught:
        bench.write(box, path, b"content")
    assert caught.value.code == code
    assert bench.bash(box, "find /work -name '.sandgate-*'").out == b""


def test_full_disk_is_told_and_leaves_the_old_file(bench):
    box = bench.create(disk_mb=32)
    bench.write(box, "/work/kept", b"old")
    with pytest.raises(FileError) as caught:
        bench.write(box, "/work/kept", bytes(40 * MB))
    assert caught.value.code == "no_space"
    assert bench.read(box, "/work/kept") == b"old"
    assert bench.bash(box, "head -c 50000000 /dev/zero > /work/fill").err.endswith(b"No space left on device\n")
    assert bench.bash(box, "rm /work/fill; find / -xdev -name '.sandgate-*' 2>/dev/null").out == b""
    assert bench.write(box, "/work/kept", b"new").size == 3
    bench.do(bench.engine.remove(box.container_id))


@pytest.mark.parametrize("announced", [5, 50])
def test_content_of_another_size_than_announced_is_not_written(bench, box, announced):
    async def ten() -> AsyncIterator[bytes]:
        yield bytes(10)

    request = WriteRequest(path="/work/size", size=announced)
    with pytest.raises(Refusal):
        bench.do(box.write(OnePass(box.sandbox_id, "write"), request, ten()))
    assert bench.bash(box, "ls -A /work | grep -c -e size$ -e sandgate").text == "0\n"


def test_content_that_fails_half_way_leaves_nothing(bench, box):
    async def broken() -> AsyncIterator[bytes]:
        yield bytes(300 * KB)
        raise RuntimeError("the client went away")

    request = WriteRequest(path="/work/half", size=MB)
    with pytest.raises(RuntimeError):
        bench.do(box.write(OnePass(box.sandbox_id, "write"), request, broken()))
    assert bench.bash(box, "sleep 0.3; ls -A /work | grep -c -e half -e sandgate").text == "0\n"


def test_a_write_sent_twice_happens_once(bench, box):
    async def write(content: bytes) -> str:
        async def blocks() -> AsyncIterator[bytes]:
            yield content

        pass_ = OnePass(box.sandbox_id, "write", "act_w1")
        return (await box.write(pass_, WriteRequest(path="/work/w1", size=3), blocks())).sha256

    first = bench.do(write(b"one"))
    bench.bash(box, "echo changed > /work/w1")
    assert bench.do(write(b"one")) == first
    assert bench.bash(box, "cat /work/w1").text == "changed\n"


def test_reader_that_stops_holds_nobody_up(bench, box):
    bench.write(box, "/work/long", bytes(8 * MB))

    async def scene() -> tuple[int, str]:
        found = await box.read(OnePass(box.sandbox_id, "read"), "/work/long")
        chunks = found.chunks()
        got = len(await anext(chunks))
        await asyncio.sleep(0.5)
        said = (await bench.bashing(box, "echo free")).text
        await chunks.aclose()
        return got, said

    assert bench.do(scene())[1] == "free\n"
    assert len(bench.read(box, "/work/long")) == 8 * MB


def test_many_transfers_at_once(bench, box):
    async def one(n: int) -> bool:
        content = os.urandom(700 * KB)

        async def blocks() -> AsyncIterator[bytes]:
            yield content

        request = WriteRequest(path=f"/work/many/{n}", size=len(content))
        await box.write(OnePass(box.sandbox_id, "write"), request, blocks())
        found = await box.read(OnePass(box.sandbox_id, "read"), f"/work/many/{n}")
        return b"".join([chunk async for chunk in found.chunks()]) == content

    async def all_of_them() -> list[bool]:
        return await asyncio.gather(*(one(n) for n in range(20)))

    assert all(bench.do(all_of_them()))


def test_a_look_at_a_file_too_large_to_replace_is_refused_at_once_and_reads_no_further(bench, box, monkeypatch):
    bench.bash(box, "truncate -s 3G /work/huge")
    came = []
    channel = box._link.now()
    deliver = channel._take
    monkeypatch.setattr(channel, "_take", lambda frame: (came.append(len(frame.payload)), deliver(frame)))
    began = time.monotonic()
    with pytest.raises(FileError, match="/work/huge has 3221225472 bytes.*104857600.*remove") as refusal:
        bench.do(box.look("/work/huge"))
    assert refusal.value.code == "too_large"
    assert time.monotonic() - began < 1
    time.sleep(0.5)
    assert sum(came) < 4 * MB
    assert channel._calls == {}
    bench.bash(box, "rm /work/huge")


def test_a_file_at_the_limit_can_be_looked_at(bench, box):
    bench.bash(box, "truncate -s 100M /work/edge")
    seen = bench.do(box.look("/work/edge"))
    assert (seen.size, seen.content) == (100 * MB, None)
    bench.bash(box, "truncate -s 104857601 /work/edge")
    with pytest.raises(FileError, match="104857601"):
        bench.do(box.look("/work/edge"))
    bench.bash(box, "rm /work/edge")


def test_what_was_answered_is_whole_on_the_disk_when_the_sandbox_is_killed(bench, tmp_path):
    """The disk as the machine has it, without the runner or gVisor to ask."""
    if bench.engine.disk_kind != "loop":
        pytest.skip("without root a sandbox's disk is memory")
    box = bench.create()
    contents = {f"f{n}": os.urandom(200_000 if n % 2 else 3000) for n in range(10)}
    for name, content in contents.items():
        bench.write(box, f"/work/{name}", content)
    os.kill(bench.docker().containers.get(box.container_id).attrs["State"]["Pid"], signal.SIGKILL)
    file = bench.config.var / "disks" / f"{box.sandbox_id}.ext4"
    device = subprocess.check_output(["losetup", "-j", str(file)], text=True).split(":")[0]
    mount = ["mount", "-o", "ro,noload", device, tmp_path]
    until(lambda: subprocess.run(mount, capture_output=True).returncode == 0)  # once Docker has let go of it
    try:
        assert {name: (tmp_path / "work" / name).read_bytes() for name in contents} == contents
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    bench.do(bench.engine.remove(box.container_id))
