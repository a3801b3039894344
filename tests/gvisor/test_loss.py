"""A sandbox that ends under its callers: each gets a typed error within 5 s, and the reason is true."""

import asyncio
import threading
import time

import pytest

from sandboxes.engine import RunRequest, WriteRequest, containers
from sandboxes.errors import BoxGone
from tests.gvisor.engines import Collected, OnePass


def callers(bench, box):
    """A running command, a read in the middle and a write in the middle."""
    bench.write(box, "/work/long", bytes(4 << 20))

    async def half_read():
        found = await box.read(OnePass(box.sandbox_id, "read"), "/work/long")
        async for _ in found.chunks():
            await asyncio.sleep(0.2)

    async def half_written():
        yield bytes(100_000)
        await asyncio.sleep(1.5)
        yield bytes(100_000)

    def write():
        request = WriteRequest(path="/work/half", size=200_000)
        return box.write(OnePass(box.sandbox_id, "write"), request, half_written())

    request = RunRequest(argv=["sleep", "600"], timeout_s=700)
    started = [bench.begin(box.run(OnePass(box.sandbox_id, "run"), request, Collected())) for _ in range(3)]
    started += [bench.begin(half_read()), bench.begin(write())]
    time.sleep(0.5)
    return started


def ends_with(bench, box, blow):
    """The reasons that the callers and `on_lost` were given, after `blow`."""
    lost, heard = [], threading.Event()
    box.on_lost = lambda reason: (lost.append(reason), heard.set())
    waiting = callers(bench, box)
    blow(bench.docker())
    struck_at = time.monotonic()
    reasons = set()
    for call in waiting:
        with pytest.raises(BoxGone) as caught:
            call.result(10)
        reasons.add(caught.value.reason)
    assert time.monotonic() - struck_at < 5
    heard.wait(5)
    with pytest.raises(BoxGone):
        bench.bash(box, "echo late")
    assert len(lost) == len(reasons) == 1
    assert reasons == set(lost)
    return lost[0]


def test_killed_from_outside(bench, fresh_box):
    assert ends_with(bench, fresh_box, lambda docker: docker.api.kill(fresh_box.container_id)) == "crashed"


def test_removed_from_outside(bench, fresh_box):
    blow = lambda docker: docker.api.remove_container(fresh_box.container_id, force=True)  # noqa: E731
    assert ends_with(bench, fresh_box, blow) == "crashed"


def test_restarted_from_outside_is_not_the_sandbox_we_knew(bench, fresh_box):
    blow = lambda docker: docker.api.restart(fresh_box.container_id, timeout=0)  # noqa: E731
    assert ends_with(bench, fresh_box, blow) == "crashed"


def test_whole_sandbox_out_of_memory(bench):
    box = bench.create(memory_mb=128)
    fill = "import os\nfor i in range(400):\n  open(f'/tmp/{i}', 'wb').write(bytes(1 << 20)) if i < 60 else None\n"
    hogs = "for i in $(seq 40); do python3 -c 'b = bytearray(30 << 20); import time; time.sleep(30)' & done; wait"

    def blow(docker):
        bench.begin(bench.running(box, "python3", "-c", fill))
        bench.begin(bench.bashing(box, hogs))
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline and docker.api.inspect_container(box.container_id)["State"]["Running"]:
            time.sleep(0.1)

    try:
        assert ends_with(bench, box, blow) == "oom"
    finally:
        bench.do(bench.engine.remove(box.container_id))


def test_removal_tells_the_callers_why(bench):
    box = bench.create()
    waiting = callers(bench, box)
    bench.do(bench.engine.remove(box.container_id, reason="idle"))
    for call in waiting:
        with pytest.raises(BoxGone) as caught:
            call.result(5)
        assert caught.value.reason == "idle"
    assert bench.left_over() == []


def test_sandbox_that_meets_the_containers_process_limit(bench, monkeypatch):
    """gVisor's kernel dies of it. Commands meet their own limit long before, so the test lowers the container's."""
    monkeypatch.setattr(containers, "PIDS_EACH", 0)
    monkeypatch.setattr(containers, "PIDS_BESIDE", 96)
    box = bench.create()

    def blow(docker):
        bench.begin(bench.bashing(box, "for i in $(seq 150); do sleep 60 & done; wait"))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and docker.api.inspect_container(box.container_id)["State"]["Running"]:
            time.sleep(0.1)

    try:
        assert ends_with(bench, box, blow) == "process_limit"
    finally:
        bench.do(bench.engine.remove(box.container_id))
