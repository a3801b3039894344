"""What pages hear is read once for all of them, and none misses a change that was there when it asked."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async

from console.pages import tail
from console.workspaces import changes, db, ledger
from console.workspaces.models import Change

pytestmark = pytest.mark.usefixtures("readings")


@pytest.fixture
def readings(monkeypatch):
    """How often the table is asked; each reading lets others come meanwhile."""
    found: list[int] = []
    real = changes.after

    def counted(workspace_id: str, seq: int, *, limit: int) -> list[Change]:
        found.append(seq)
        return real(workspace_id, seq, limit=limit)

    monkeypatch.setattr(changes, "after", counted)
    yield found
    db.close()


def record(workspace_id: str, count: int = 1) -> None:
    for _ in range(count):
        with ledger.opened(workspace_id) as workspace:
            changes.record(workspace, subject="action", subject_id=f"act_{workspace.change_seq}", status="pending")


def numbers(found: list[tuple[int, str]]) -> list[int]:
    assert [json.loads(text)["seq"] for _, text in found] == [number for number, _ in found]
    return [number for number, _ in found]


def told(story) -> None:
    asyncio.run(story())
    assert tail._tails == {}, "nothing is kept for nobody"


def test_twenty_pages_that_ask_together_read_twice_at_most(committed_cast, readings) -> None:
    place = committed_cast.workspace.pk

    async def story() -> None:
        with tail.of(place) as found:
            start = await db.read(lambda: committed_cast.workspace.change_seq)
            for _ in range(5):
                await sync_to_async(record)(place)
                readings.clear()
                heard = await asyncio.gather(*(found.after(start) for _ in range(20)))
                assert len(readings) <= 2
                assert all(each == heard[0] for each in heard)
        assert numbers(heard[0]) == list(range(start + 1, start + 6))

    told(story)


def test_who_asks_while_another_reads_hears_of_what_came_meanwhile(committed_cast, monkeypatch) -> None:
    """The first one's reading may have begun before the second one's change: it is no answer to the second."""
    place, real = committed_cast.workspace.pk, db.read

    async def story() -> None:
        with tail.of(place) as found:
            read, go_on = asyncio.Event(), asyncio.Event()

            async def slow(*args, **more):
                answer = await real(*args, **more)
                read.set()
                await go_on.wait()
                return answer

            monkeypatch.setattr(db, "read", slow)
            first = asyncio.create_task(found.after(0))
            await read.wait()
            await sync_to_async(record)(place)
            second = asyncio.create_task(found.after(0))
            await asyncio.sleep(0)
            go_on.set()
            before, after = numbers(await first), numbers(await second)
            assert len(after) == len(before) + 1

    told(story)


def test_one_who_leaves_while_reading_takes_nothing_from_those_behind(committed_cast, monkeypatch) -> None:
    place, real = committed_cast.workspace.pk, db.read

    async def story() -> None:
        with tail.of(place) as found:
            begun = asyncio.Event()

            async def endless(*args, **more):
                begun.set()
                await asyncio.sleep(60)

            await sync_to_async(record)(place)
            monkeypatch.setattr(db, "read", endless)
            first, second = (asyncio.create_task(found.after(0)) for _ in range(2))
            await begun.wait()
            monkeypatch.setattr(db, "read", real)
            first.cancel()
            assert numbers(await second)

    told(story)


def test_pages_far_apart_each_hear_without_a_gap(committed_cast, monkeypatch) -> None:
    """One that was asleep asks for what is not kept any more, and gets it in parts."""
    place = committed_cast.workspace.pk
    monkeypatch.setattr(tail, "KEPT", 5)
    monkeypatch.setattr(tail, "READ", 3)

    async def story() -> None:
        with tail.of(place) as found:
            start = numbers(await found.after(0))[-1:] or [0]
            await sync_to_async(record)(place, 4)
            assert numbers(await found.after(start[0])) == [start[0] + each for each in range(1, 5)]
            await sync_to_async(record)(place, 8)
            assert numbers(await found.after(start[0] + 10)) == [start[0] + 11, start[0] + 12]
            assert numbers(await found.after(start[0] + 1)) == [start[0] + each for each in (2, 3, 4)]

    told(story)
