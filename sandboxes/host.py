"""The host: one asyncio loop on its own thread that owns the engine, its sandboxes and every execution. The rest of the
server reaches it through `current.ask(…)` only. Nothing starts on import; `manage.py up` starts it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from django.conf import settings

from approvals.notices import loop as notices
from console.workspaces import bus, changes, db
from console.workspaces.errors import SandgateError

from . import halting, hourly
from .boxes import Boxes
from .clock import Clock
from .dispatch import Dispatcher
from .errors import NoRuntime
from .reads import Reads

T = TypeVar("T")
log = logging.getLogger("sandgate.host")
STOP_S = 20


class Hub:
    """`start` returns when the loops run; `on_death` is called when they end by themselves, which they never should."""

    def __init__(self, *, on_death: Callable[[], None]) -> None:
        self._thread, self._ready = threading.Thread(target=self._run, name="hub"), threading.Event()
        self._on_death, self.error = on_death, None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main_task: asyncio.Task[None] | None = None
        self.boxes: Boxes
        self.dispatcher: Dispatcher
        self.reads: Reads
        self._clock: Clock

    error: BaseException | None

    def start(self, timeout_s: float = 60) -> None:
        self._thread.start()
        if not self._ready.wait(timeout_s) or self.error:
            raise RuntimeError("The sandbox host did not start; the log above says why.") from self.error

    def stop(self, timeout_s: float = STOP_S) -> bool:
        """Ends every sandbox. False: it did not end in time."""
        if self._loop and self._main_task:
            with suppress(RuntimeError):  # its loop has ended
                self._loop.call_soon_threadsafe(self._main_task.cancel)
        if self._thread.ident:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` here for a request. The shield keeps its cancellation out: wrap_future would carry it over."""
        assert self._loop is not None
        answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            answer.add_done_callback(_unheard)
            raise

    def soon(self, act: Callable[[], None]) -> None:
        """`act` runs on this loop, some time: for what a request has to say as it ends. Never waits."""
        assert self._loop is not None
        with suppress(RuntimeError):  # its loop has ended, and with it all that could be told
            self._loop.call_soon_threadsafe(act)

    async def state(self) -> dict[str, bool]:
        """Whether the loops here turn, and whether what sandboxes run on answers."""
        return await self.ask(self._state())

    async def _state(self) -> dict[str, bool]:
        return {"loops": self._clock.is_ticking, "sandbox_host": self.boxes.is_answering}

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass  # stop()
        except BaseException as error:  # the thread's boundary: the server must not go on without its hub
            log.exception("The sandbox host died.")
            self.error = error
            self._on_death()
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._main_task = asyncio.get_running_loop(), asyncio.current_task()
        self.boxes = Boxes(settings.VAR, settings.INSTANCE)
        self.dispatcher, self.reads = Dispatcher(self.boxes), Reads(self.boxes)
        self._clock = Clock(self.boxes, self.dispatcher)
        try:
            await self._open()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(bus.follow(lambda last: db.read(changes.newer, last)))
                tasks.create_task(self.dispatcher.run())
                tasks.create_task(self._clock.run())
                tasks.create_task(halting.run(self.boxes))
                tasks.create_task(self.boxes.pool.run())
                tasks.create_task(hourly.run())
                tasks.create_task(notices.run())
                self._ready.set()
        finally:
            # Cancelled already: each step of the way down must still be allowed to finish.
            await self.boxes.close()
            await self.dispatcher.close()
            await self.reads.close()

    async def _open(self) -> None:
        try:
            await self.boxes.open()
        except NoRuntime as error:
            log.error("Sandboxes cannot start: %s", error.detail)
            return
        await self.dispatcher.recover()


def _unheard(answer: asyncio.Future[Any]) -> None:
    """Its request has left. That something was refused is then nobody's business; a fault still is."""
    error = None if answer.cancelled() else answer.exception()
    if error and not isinstance(error, SandgateError):
        log.error("What a request asked for failed after it had left.", exc_info=error)


current: Hub | None = None


def follows(action_id: str) -> bool:
    """Whether this process runs that action now."""
    return current is not None and current.dispatcher.follows(action_id)


def hub() -> Hub:
    """The running one; without it there is no way to a sandbox."""
    if current is None:
        raise NoRuntime("This process has no sandbox host. Start the console with `manage.py up`.")
    return current
