"""The one door from async code to the ORM: `await db.read(fn, …)`, `await db.write(fn, …)`, from any loop.

Owns the database threads and, through them, the handles: each thread keeps one. `fn` is plain synchronous code and
brings its own `atomic` where it writes; it must never wait for a network, render, or call back into async code. One
writer thread on SQLite: its queue for the write lock is unfair, and a second thread makes only the slowest call slower.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import close_old_connections, connections

P = ParamSpec("P")
T = TypeVar("T")

CLOSE_S = 10


class Threads:
    """Started at first use. `close` ends them and closes their handles; a later use starts new ones."""

    def __init__(self, name: str, count: Callable[[], int]) -> None:
        self._name, self._count = name, count
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._count(), thread_name_prefix=self._name)
            return self._pool

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is None:
            return
        together = threading.Barrier(self._count(), timeout=CLOSE_S)  # so that each thread gets one of the calls below
        for _ in range(together.parties):
            pool.submit(_close_handle, together)
        pool.shutdown()


_one_closes = threading.Lock()


def _close_handle(together: threading.Barrier) -> None:
    with suppress(threading.BrokenBarrierError):
        together.wait()
    with _one_closes:  # of two that close at once, SQLite takes neither for the last, and the log stays unfolded
        connections.close_all()


_readers = Threads("db-read", lambda: settings.DB_READERS)
_writer = Threads("db-write", lambda: settings.DB_WRITERS)  # 1 on SQLite, a few on PostgreSQL


async def read(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `fn` answers, run on one of a few threads. No `atomic` in it: on SQLite that takes the write lock."""
    return await _run(_readers, fn, *args, **kwargs)


async def write(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `fn` answers, run on the writer's thread.

    Cancelling the caller ends the wait, never `fn`: once begun it goes on and commits, `on_commit` included. A call
    still in the queue is dropped, so whatever must happen together belongs into one `fn`.
    """
    return await _run(_writer, fn, *args, **kwargs)


async def _run(threads: Threads, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    def call() -> T:
        close_old_connections()  # drops a handle that broke, keeps a healthy one
        return fn(*args, **kwargs)

    # The caller's context goes along: log lines keep their request id.
    return await asyncio.get_running_loop().run_in_executor(threads.pool(), contextvars.copy_context().run, call)


def close() -> None:
    """End the threads and their handles, once what was asked of them is done."""
    _writer.close()
    _readers.close()
