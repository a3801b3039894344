"""Limits that hold: whoever eats too much is told why, and the sandbox, its neighbour and this process go on."""

import asyncio
from time import monotonic

import pytest

from sandboxes.errors import FileError, SandboxError

NEIGHBOUR_S = 30  # a machine that is busy with nothing else answers in a tenth of a second


@pytest.fixture(scope="module")
def small(bench):
    """One sandbox with little of everything, for a module's tests."""
    return bench.create(cpus=0.5, memory_mb=256, disk_mb=128, processes=60, open_files=256)


@pytest.fixture(scope="module")
def neighbour(bench):
    return bench.create()


async def alive(bench, *boxes):
    """Each answers a command of its own."""
    ran = await asyncio.gather(*(bench.bashing(box, "echo here", timeout_s=NEIGHBOUR_S) for box in boxes))
    return [each.text for each in ran] == ["here\n"] * len(boxes)


def attack(bench, box, neighbour, command, **more):
    """Runs it; while it runs the neighbour answers, and afterwards the sandbox itself does."""

    async def both():
        running = asyncio.create_task(bench.bashing(box, command, **more))
        await asyncio.sleep(1)
        assert await alive(bench, neighbour)
        return await running

    ran = bench.do(both())
    assert bench.do(alive(bench, box, neighbour))
    return ran


def test_a_fork_bomb_meets_the_limit_and_is_stopped_by_its_commands_id(bench, small, neighbour):
    ran = attack(bench, small, neighbour, "bomb() { bomb | bomb & }; bomb; sleep 4; echo end", action_id="act_bomb")
    assert b"Resource temporarily unavailable" in ran.err
    assert ran.result.left_running
    bench.do(small.stop("act_bomb"))
    assert bench.bash(small, "ps -u agent --no-headers -o comm").text.split() == ["ps"]


def test_threads_count_as_processes(bench, small):
    code = (
        "import threading, time\nn = 0\ntry:\n"
        " while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1\n"
        "except RuntimeError as e: print(n, e)"
    )
    number, _, why = bench.run(small, "python3", "-c", code).text.partition(" ")
    assert 40 < int(number) <= 60
    assert "can't start new thread" in why


def test_open_files_end_at_the_limit(bench, small):
    code = "f=[]\ntry:\n while True: f.append(open('/dev/null'))\nexcept OSError as e: print(len(f), e.strerror)"
    ran = bench.run(small, "python3", "-c", code)
    number, _, why = ran.text.partition(" ")
    assert 200 < int(number) < 256
    assert why == "Too many open files\n"


def test_a_memory_hog_ends_and_says_why(bench, small, neighbour):
    ran = attack(bench, small, neighbour, "python3 -c 'a = []\nwhile True: a.append(bytearray(b\"x\" * (8 << 20)))'")
    assert ran.code != 0
    assert ran.result.reason == "oom"


def test_a_full_disk_is_told_and_can_be_emptied(bench, small, neighbour):
    ran = attack(bench, small, neighbour, "head -c 300M /dev/zero > /work/big; stat -c %s /work/big")
    assert b"No space left on device" in ran.err
    assert 64 << 20 < int(ran.text) < 128 << 20
    with pytest.raises(FileError) as refusal:
        bench.write(small, "/work/more", bytes(1 << 20))
    assert refusal.value.code == "no_space"
    assert bench.bash(small, "rm /work/big; ls /work").text == ""
    assert bench.write(small, "/work/more", b"fits").size == 4


def test_a_file_larger_than_the_disk_can_only_be_a_hole(bench, small):
    ran = bench.bash(small, "truncate -s 1G /work/hole; stat -c %s /work/hole; head -c 32M /dev/zero > /work/fits")
    assert (ran.text, ran.err) == (f"{1 << 30}\n", b"")
    assert b"No space left on device" in bench.bash(small, "cp --sparse=never /work/hole /work/full").err
    assert bench.bash(small, "rm /work/hole /work/full /work/fits").code == 0


def test_the_small_tmp_is_memory_and_capped(bench, small):
    ran = bench.bash(small, "head -c 100M /dev/zero > /tmp/big; stat -c %s /tmp/big; rm /tmp/big; echo $TMPDIR")
    assert b"No space left on device" in ran.err
    assert ran.text.split() == [str(64 << 20), "/var/tmp"]


def test_many_small_files_end_at_the_disks_own_measure(bench, small, neighbour):
    code = (
        "import os\nos.mkdir('/work/many'); n=0\ntry:\n"
        " while n < 100_000: os.close(os.open(f'/work/many/{n}', os.O_CREAT | os.O_WRONLY)); n += 1\n"
        "except OSError as e: print(n, e.strerror)"
    )
    ran = attack(bench, small, neighbour, f'python3 -c "{code}"', timeout_s=120)
    number, _, why = ran.text.partition(" ")
    assert 10_000 < int(number) < 100_000
    assert why == "No space left on device\n"
    with pytest.raises(SandboxError) as refusal:
        bench.write(small, "/work/one-more", b"x")
    assert refusal.value.code == "no_space"
    assert bench.bash(small, "rm -r /work/many", timeout_s=60).code == 0


def test_output_without_end_is_counted_and_costs_no_memory(bench, small, neighbour):
    class Dropped:
        """A sink that keeps nothing, as a server keeps only the two ends."""

        got = 0

        async def put(self, stream, offset, data):
            self.got = max(self.got, offset + len(data))

    from sandboxes.engine import RunRequest
    from tests.gvisor.engines import OnePass

    sink = Dropped()
    request = RunRequest(argv=["yes"], timeout_s=3)
    result = bench.do(small.run(OnePass(small.sandbox_id, "run"), request, sink))
    assert result.timed_out
    assert sink.got == result.stdout_bytes > 1 << 20
    assert bench.do(alive(bench, small, neighbour))


def test_more_processors_are_not_had_than_were_given(bench, small):
    began = monotonic()
    ran = bench.bash(small, "for i in 1 2 3; do (timeout 3 sh -c 'while :; do :; done') & done; wait; times | tail -1")
    minutes, seconds = ran.text.split()[0].rstrip("s").split("m")
    used_s, passed_s = int(minutes) * 60 + float(seconds), monotonic() - began
    assert used_s < 0.75 * passed_s, (used_s, passed_s)


def test_a_wish_beyond_the_machine_is_no_reason_to_fail(bench):
    box = bench.create(cpus=64, memory_mb=65536, processes=4000, open_files=16384)
    assert bench.bash(box, "ulimit -u; ulimit -n").text.split() == ["4000", "16384"]
    bench.do(bench.engine.remove(box.container_id))


def test_commands_leave_nothing_behind(bench, small):
    def left():
        return bench.bash(small, "find / -xdev -newer /work/mark -type f; df --output=iused /work /tmp | tail -2").text

    bench.bash(small, "touch /work/mark")
    before = left()

    async def many():
        for _ in range(8):
            await asyncio.gather(*(bench.running(small, "true") for _ in range(10)))

    bench.do(many())
    assert left() == before
