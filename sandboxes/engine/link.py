"""One sandbox's connection over its whole life: made, lost, found again, or given up with a reason.

Owns when to attach anew and when to call a sandbox ended. On end-of-file the daemon is asked; end-of-file alone says
nothing. Must answer within GIVE_UP_S: until then callers wait, afterwards each has a typed error. One that only says
nothing is given up so soon when its daemon says nothing either, or that it is paused; a busy one is waited for.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar

from sandboxes import counters
from sandboxes.errors import BoxGone, OutOfReach
from sandboxes.runner import frames

from . import answers
from .attach import AttachFailed
from .channel import Channel, ChannelLost
from .daemon import Daemon, Unreachable
from .ending import look

GIVE_UP_S = 4.5
AGAIN_S = 0.1
ASK_AGAIN_S = 0.5
STEADY_S = 1.0
"""A connection that broke sooner is not made again at once: a runner that always hangs up would keep the loop busy."""
HELLO_S = 3.0
FIRST_HELLO_S = 30.0

T = TypeVar("T")

_WORDS = {
    "deleted": "It was deleted.",
    "oom": "It ran out of memory.",
    "process_limit": "It ran into its limit of processes.",
    "disk_limit": "Its system grew beyond what its disk may hold.",
    "halted": "A reviewer halted it.",
    "crashed": "It crashed or was removed from outside.",
    "host_lost": "It went with its host.",
}


class Link:
    def __init__(self, daemon: Daemon, sandbox_id: str, container_id: str, marker: bytes) -> None:
        self._daemon = daemon
        self._sandbox_id = sandbox_id
        self._container_id = container_id
        self._marker = marker
        self._channel: Channel | None = None
        self._changed = asyncio.Event()
        self._recovery: asyncio.Task[None] | None = None
        self._doubts: asyncio.Task[None] | None = None
        self._closed = False
        self._made_at = float("-inf")
        self.boot = ""
        self.ended_reason = ""
        self._unheard = False  # given up, and nobody could say whether it still runs
        self.on_lost: Callable[[str], None] | None = None
        self.reconnects = 0

    async def attach(self) -> Channel:
        """Before the container starts, so that nothing it says is missed."""
        channel = Channel(self._marker, lambda: self._broke(channel), lambda: self._doubt(channel))
        try:
            await channel.connect(self._daemon.docker_host, self._container_id)
        except BaseException:
            channel.close()
            raise
        return channel

    async def greet(self, channel: Channel, *, timeout_s: float) -> None:
        """Hello and welcome; from then on this is the channel. A runner that started anew is not the one we knew."""
        try:
            boot = answers.boot(await channel.hello(timeout_s=timeout_s), version=frames.VERSION)
        except BaseException:
            channel.close()
            raise
        if self.boot and boot != self.boot:
            channel.close()
            raise BoxGone(f"Sandbox {self._sandbox_id} was restarted; what ran in it is gone.", reason="crashed")
        self.boot = boot
        self._channel, self._made_at = channel, time.monotonic()
        self._ring()

    async def ready(self) -> Channel:
        """The channel, once there is one; BoxGone when there will be none."""
        while self._channel is None:
            if self.ended_reason or self._closed:
                raise self.gone()
            await self._changed.wait()
        return self._channel

    def gone(self) -> BoxGone:
        if not self.ended_reason:
            return BoxGone(f"The connection to sandbox {self._sandbox_id} was closed.", reason="host_lost")
        if self._unheard:
            return OutOfReach(self._sandbox_id)
        why = _WORDS.get(self.ended_reason, "")
        return BoxGone(f"Sandbox {self._sandbox_id} has ended. {why} Create a new one.", reason=self.ended_reason)

    async def guarded(self, work: Awaitable[T]) -> T:
        """A sandbox that breaks the protocol is not to be talked to any more."""
        try:
            return await work
        except frames.BrokenFrame as error:
            self.end("crashed")
            raise self.gone() from error

    def now(self) -> Channel | None:
        return self._channel

    def _ring(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _broke(self, channel: Channel) -> None:
        if channel is not self._channel:
            return
        self._channel = None
        if channel.broken:
            self.end("crashed")
        else:
            self._start_recovery()

    def _doubt(self, channel: Channel) -> None:
        if channel is self._channel and (self._doubts is None or self._doubts.done()):
            self._doubts = asyncio.create_task(self._ask_about(channel), context=Context())

    async def _ask_about(self, channel: Channel) -> None:
        """Until it says something, or its fate is known."""
        while channel is self._channel and channel.silent_s:
            try:
                state = await look(self._daemon, self._container_id)
                is_away = state.paused
            except Unreachable:
                state, is_away = None, True
            if channel is not self._channel or not channel.silent_s:
                return
            if state is not None and not state.running:
                return channel.give_up()
            if is_away and channel.silent_s >= GIVE_UP_S:
                self._unheard = True
                return self.end("host_lost")
            await asyncio.sleep(ASK_AGAIN_S)

    def _start_recovery(self) -> None:
        if not self._closed and self._recovery is None:
            # A context of its own: no work of the request that once opened the channel.
            self._recovery = asyncio.create_task(self._recover(), context=Context())

    async def _recover(self) -> None:
        if time.monotonic() - self._made_at < STEADY_S:
            await asyncio.sleep(AGAIN_S)
        reason = await self._find_again()
        self._recovery = None
        if reason:
            self.end(reason)
        elif self._channel is None:  # it broke again meanwhile
            self._start_recovery()

    async def _find_again(self) -> str:
        """Empty when the channel stands again, else why the sandbox is at its end."""
        give_up_at = time.monotonic() + GIVE_UP_S
        away = False
        while (left_s := give_up_at - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left_s):
                    state = await look(self._daemon, self._container_id)
                    if not state.running:
                        # a daemon that stopped took the sandbox with it, whatever exit code it then shows
                        return "host_lost" if away and state.reason == "crashed" else state.reason
                    await self.greet(await self.attach(), timeout_s=HELLO_S)
                    self.reconnects += 1
                    counters.reconnected()
                    return ""
            except BoxGone as error:
                return error.reason
            except frames.BrokenFrame:
                return "crashed"
            except Unreachable:
                away = True
                await asyncio.sleep(AGAIN_S)
            except (AttachFailed, ChannelLost, TimeoutError):
                await asyncio.sleep(AGAIN_S)
        self._unheard = True
        return "host_lost"

    def end(self, reason: str) -> None:
        """Once and for all: every caller that waits, and every later one, gets BoxGone."""
        if self.ended_reason or self._closed:
            return
        self.ended_reason = reason
        self._drop()
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost(reason)

    async def close(self) -> None:
        """Lets go of the sandbox, which goes on."""
        self._closed = True
        self.on_lost = None
        tasks = [task for task in (self._recovery, self._doubts) if task is not None]
        self._recovery = self._doubts = None
        self._drop()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _drop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self._ring()
