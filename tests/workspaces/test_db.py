"""The door to the ORM: bounded threads that keep their handles, one writer, and work that outlives its caller."""

import asyncio
import gc
import os
import threading
import time

import pytest
from django.conf import settings
from django.db import connection, transaction

from console.workspaces import db
from console.workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _close_after():
    yield
    db.close()


def names():
    return sorted(Workspace.objects.values_list("name", flat=True))


def handles_of_the_database():
    gc.collect()  # those of threads that have ended, of tests before, go with them
    # Each handle holds the log open for itself; a closed one's hold on the database itself SQLite keeps for the next.
    name, fds = f"{connection.settings_dict['NAME']}-wal", f"/proc/{os.getpid()}/fd"
    return [fd for fd in os.listdir(fds) if os.path.realpath(f"{fds}/{fd}") == name]


def test_reads_and_writes_reach_the_same_database():
    async def main():
        await db.write(Workspace.objects.create, name="Harbour Works")
        return await db.read(names)

    assert asyncio.run(main()) == ["Harbour Works"]


def test_one_writer_at_a_time_and_always_the_same():
    inside, most, threads = 0, 0, set()

    @transaction.atomic
    def work(name):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threads.add(threading.current_thread())
        Workspace.objects.create(name=name)
        time.sleep(0.002)
        inside -= 1

    async def main():
        await asyncio.gather(*[db.write(work, f"w{n:02}") for n in range(40)])
        return await db.read(names)

    assert asyncio.run(main()) == [f"w{n:02}" for n in range(40)]
    assert (most, len(threads)) == (1, 1)


def test_a_hundred_reads_at_once_take_a_few_threads_and_as_many_handles():
    used = set()

    def look():
        used.add(threading.current_thread())
        time.sleep(0.01)
        return Workspace.objects.count()

    async def main():
        await asyncio.gather(*[db.read(look) for _ in range(100)])
        return len(handles_of_the_database())

    before = len(handles_of_the_database())
    assert asyncio.run(main()) - before <= settings.DB_READERS
    assert len(used) <= settings.DB_READERS


def test_a_caller_that_is_cancelled_leaves_the_work_to_end_and_announce():
    began, announced = threading.Event(), threading.Event()

    @transaction.atomic
    def work():
        began.set()
        time.sleep(0.2)
        Workspace.objects.create(name="after all")
        transaction.on_commit(announced.set)

    async def main():
        calling = asyncio.create_task(db.write(work))
        await asyncio.to_thread(began.wait, 5)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert not announced.is_set(), "the caller did not wait for it"
        await asyncio.to_thread(announced.wait, 5)
        return await db.read(names)

    assert asyncio.run(main()) == ["after all"]


def test_a_failure_reaches_the_caller_and_rolls_back():
    @transaction.atomic
    def work():
        Workspace.objects.create(name="never")
        raise ValueError("no")

    async def main():
        with pytest.raises(ValueError, match="no"):
            await db.write(work)
        return await db.read(names)

    assert asyncio.run(main()) == []


def test_two_loops_share_the_threads_and_closing_gives_the_handles_back():
    db.close()  # what tests before left open
    before = len(handles_of_the_database())
    asyncio.run(db.read(names))
    asyncio.run(db.write(names))
    assert len(handles_of_the_database()) > before
    db.close()
    assert len(handles_of_the_database()) == before
    assert asyncio.run(db.read(names)) == []


def test_handles_are_closed_one_after_the_other_so_that_the_last_folds_the_log_in(monkeypatch):
    inside, most, calls, close_all = 0, 0, 0, db.connections.close_all

    def watched():
        nonlocal inside, most, calls
        inside, calls = inside + 1, calls + 1
        most = max(most, inside)
        time.sleep(0.01)
        close_all()
        inside -= 1

    asyncio.run(db.read(names))
    monkeypatch.setattr(db.connections, "close_all", watched)
    db.close()
    assert (calls, most) == (settings.DB_READERS, 1)
