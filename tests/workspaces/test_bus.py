"""Doorbells: none is lost between listening and reading, from any thread, and a lost one costs at most a second."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from console.workspaces import bus


@pytest.fixture(autouse=True)
def _open_again() -> Iterator[None]:
    yield
    bus._closing.clear()
    assert not bus._bells, "every listener has left"


def answering(*answers):
    """A read that answers these in turn, the last for ever."""
    left = list(answers)

    async def read():
        return left.pop(0) if len(left) > 1 else left[0]

    return read


def test_what_is_there_is_answered_at_once():
    assert asyncio.run(bus.wait_for(answering("found"), "t", timeout_s=0)) == "found"


def test_a_ring_from_another_thread_wakes_a_waiter():
    async def main():
        threading.Timer(0.1, bus.announce, ["t"]).start()
        began = time.monotonic()
        assert await bus.wait_for(answering(None, "found"), "other", "t", timeout_s=5) == "found"
        return time.monotonic() - began

    assert asyncio.run(main()) < 1


def test_a_change_between_listening_and_waiting_is_not_lost():
    async def main():
        rung = []

        async def read():
            if rung:
                return "found"
            rung.append(True)
            bus.announce("t")  # the change comes while the first read is under way
            return None

        began = time.monotonic()
        assert await bus.wait_for(read, "t", timeout_s=5) == "found"
        return time.monotonic() - began

    assert asyncio.run(main()) < 1


def test_a_lost_ring_costs_one_reading_more(monkeypatch):
    monkeypatch.setattr(bus, "REREAD_S", (0.1, 0.2))
    assert asyncio.run(bus.wait_for(answering(None, "found"), "never rung", timeout_s=5)) == "found"


def test_when_the_time_is_over_it_reads_once_more():
    assert asyncio.run(bus.wait_for(answering(None, "late"), "t", timeout_s=0.05)) == "late"
    assert asyncio.run(bus.wait_for(answering(None), "t", timeout_s=0.05)) is None


def test_a_ring_for_another_topic_wakes_nobody():
    async def main():
        reads = 0

        async def read():
            nonlocal reads
            reads += 1

        waiting = asyncio.create_task(bus.wait_for(read, "mine", timeout_s=0.3))
        await asyncio.sleep(0.05)
        bus.announce("theirs")
        await waiting
        return reads

    assert asyncio.run(main()) == 2, "at the start and at the end"


@pytest.mark.parametrize("turns", range(6))
def test_a_cancel_that_comes_with_a_ring_is_a_cancel(turns):
    """asyncio.wait_for of Python 3.11 loses it when it comes 0 to 2 turns of the loop after the ring."""

    async def main():
        async def forever():
            with bus.listening("t") as bell:
                while True:
                    await bell.wait_s(60)

        waiting = asyncio.create_task(forever())
        await asyncio.sleep(0.01)
        bus.announce("t")
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        async with asyncio.timeout(1):
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(main())


def test_waiters_on_several_loops_are_all_rung():
    found, ready = [], threading.Barrier(5)

    async def main():
        async def read():
            if rung.is_set():
                return "found"
            ready.wait(5)
            return None

        found.append(await bus.wait_for(read, "t", timeout_s=5))

    rung = threading.Event()
    threads = [threading.Thread(target=asyncio.run, args=[main()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    ready.wait(5)
    rung.set()
    time.sleep(0.05)
    bus.announce("t")
    for thread in threads:
        thread.join(5)
    assert found == ["found"] * 4


def test_a_listener_whose_loop_is_closed_harms_nobody():
    async def leave_it():
        stack = bus.listening("t")
        stack.__enter__()
        return stack

    stack = asyncio.run(leave_it())
    bus.announce("t")
    stack.__exit__(None, None, None)


def test_closing_ends_waits_and_lets_none_begin():
    async def main():
        threading.Timer(0.1, bus.close).start()
        began = time.monotonic()
        assert await bus.wait_for(answering(None), "t", timeout_s=5) is None
        assert await bus.wait_for(answering(None), "t", timeout_s=5) is None
        return time.monotonic() - began

    assert asyncio.run(main()) < 1
    assert bus.is_closing()


def test_follow_rings_for_what_others_wrote_and_outlives_a_failing_table(monkeypatch, caplog):
    monkeypatch.setattr(bus, "FOLLOW_EVERY_S", 0.02)
    asked = []

    async def newer(last):
        asked.append(last)
        if len(asked) == 2:
            raise RuntimeError("database is locked")
        return (7, set()) if last < 0 else (last + 1, {"t"} if last > 8 else set())

    async def main():
        following = asyncio.create_task(bus.follow(newer))
        with bus.listening("t") as bell:
            began = time.monotonic()
            await bell.wait_s(5)
            took_s = time.monotonic() - began
        following.cancel()
        return took_s

    assert asyncio.run(main()) < 1
    assert asked[:5] == [-1, 7, 7, 8, 9], "from now on, and from the same place again after a failure"
    assert "could not be read" in caplog.text
