"""The network of sandboxes, in the order that keeps it closed: jail, then bridge, then start; and back the other way.

Owns lanes, jail and forwarding of this engine. Must never let a networked sandbox start unless the jail names it and
was set just before. It needs root on Docker's own machine; without, sandboxes get `network: none`.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial

from sandboxes.errors import NoRuntime, SandboxError

from . import forwarding, hostnet, lanes, resolvers
from .daemon import Daemon
from .hostnet import NetworkFault
from .jail import Jail
from .rules import Jailed, Lane, Opening
from .shapes import EngineConfig

log = logging.getLogger("sandgate.network")
LOOK_EVERY_S, AT_MOST_EVERY_S = 2.0, 0.1
"""By the clock; and when the kernel tells of changes, of which a firewall may make many."""
NO_ROOT = (
    "Sandboxes get no network here: the rules that keep them from private addresses need root on Docker's own machine. "
    "Ask for `network: none`, or run the console as root beside its Docker."
)
LOOK = "Look at `nft list ruleset` and `manage.py doctor`; sandboxes with `network: none` start without."
INSTALL = "Install nftables (`apt-get install nftables`), then try again; `network: none` works without."

Openings = Callable[[], Awaitable[Mapping[str, Collection[Opening]]]]
"""What is open now, by sandbox."""


async def no_openings() -> Mapping[str, Collection[Opening]]:
    return {}


class Network:
    def __init__(self, daemon: Daemon, config: EngineConfig) -> None:
        self.possible = os.geteuid() == 0 and config.docker_host.startswith("unix://")
        self.resolvers: tuple[str, ...] = ()
        self._config = config
        self._lanes = lanes.Lanes(daemon, config)
        self._forwarding = forwarding.Forwarding(config.run_dir)
        self._jail: Jail | None = None
        self._openings: dict[str, tuple[Opening, ...]] = {}
        self._why_not = "The engine has not been started." if self.possible else NO_ROOT
        self._refusal = ""
        self._watching: asyncio.Task[None] | None = None
        self._trouble = ""

    @property
    def repairs(self) -> int:
        return self._jail.repairs if self._jail else 0

    @property
    def block(self) -> str:
        """All addresses that sandboxes of this engine get."""
        return str(self._lanes.block) if self._jail else ""

    def address(self, sandbox_id: str) -> str | None:
        lane = self._lanes.known.get(sandbox_id)
        return lane.address if lane else None

    async def start(self, openings: Openings, containers: set[str]) -> None:
        """Takes over what is there; networks of none of these sandboxes go. A host that cannot do it is no fault here:
        `ready` says why to who wants a network."""
        if not self.possible:
            return
        try:
            await self._begin(await openings())
        except (NetworkFault, NoRuntime) as error:
            self._why_not = f"Sandboxes get no network: {str(error).rstrip('.')}. {_fix(error)}"
            log.error(self._why_not)
        for stray in set(self._lanes.known) - containers:
            await self.remove(stray)
        self._watching = asyncio.create_task(self._watch(openings))

    async def _begin(self, openings: Mapping[str, Collection[Opening]]) -> None:
        await self._lanes.find(await asyncio.to_thread(lanes.in_use))
        self._why_not = ""
        try:
            self.resolvers = resolvers.chosen()
        finally:  # sandboxes that run are jailed, whether more may start or not
            self._jail = Jail(Jailed(self._config.instance, self._lanes.block, self.resolvers))
            self._take(openings)
            await self._read_firewall()
            with suppress(NetworkFault):  # the jail remembers, and is tried again
                await self._set()

    def _take(self, openings: Mapping[str, Collection[Opening]]) -> None:
        self._openings = {sandbox_id: tuple(each) for sandbox_id, each in openings.items() if each}

    async def ready(self) -> None:
        """Raises NoRuntime with the cause and the fix when no networked sandbox can start."""
        if self._why_not or self._jail is None:
            raise NoRuntime(self._why_not)
        if self._jail.fault:
            raise NoRuntime(f"The network jail cannot be set ({self._jail.fault}). {_fix(self._jail.fault)}")

    async def make(self, sandbox_id: str) -> Lane:
        """A network for a new sandbox, through which nothing comes until `admit`."""
        await self.ready()
        await self.remove(sandbox_id)  # of a start before this one, whose end Docker did not take
        try:
            return await self._lanes.make(sandbox_id, await asyncio.to_thread(lanes.in_use))
        except NetworkFault as error:
            raise NoRuntime(f"Sandbox {sandbox_id} got no network: {error}. {_fix(error)}") from error

    async def admit(self, lane: Lane) -> None:
        """Right before its start: the whole jail is set, with this sandbox in it. NoRuntime: it must not start."""
        if self._refusal:
            await self._read_firewall()  # a user's Docker makes room for a bridge when it makes the bridge
        if self._refusal:
            raise NoRuntime(self._refusal)
        try:
            await self._set()
        except NetworkFault as error:
            why = f"Sandbox {lane.sandbox_id} was not started: the network jail cannot be set ({error})."
            raise NoRuntime(f"{why} {_fix(error)}") from error

    async def cut(self, sandbox_ids: Iterable[str]) -> None:
        """At once, and without Docker: their bridges, which nothing else is on, go down. Each, whatever another says:
        a process for each would take its turn on a machine that is busy."""
        known = [lane for each in sandbox_ids if (lane := self._lanes.known.get(each))]
        told = "".join(f"link set {lane.bridge} down\n" for lane in known)
        if told:
            await asyncio.to_thread(partial(hostnet.tool, "ip", "-force", "-batch", "-", told=told))

    async def remove(self, sandbox_id: str) -> None:
        """The container must be gone. Its address is free only once the jail has forgotten it."""
        lane = self._lanes.known.get(sandbox_id)
        if lane is None:
            return
        await self._lanes.remove(lane)
        self._openings.pop(sandbox_id, None)
        with suppress(NetworkFault):  # then it stays taken; the next round sets the jail without it
            await self._set()
            self._lanes.free(lane)

    async def _read_firewall(self) -> None:
        try:
            self._refusal = await asyncio.to_thread(forwarding.refusal, self._config.instance)
        except NetworkFault as error:
            self._refusal = f"The host's firewall cannot be read ({error}). {_fix(error)}"

    async def _set(self) -> None:
        """Guards before switches: nothing forwards before what must not be forwarded is dropped."""
        if self._jail is None:
            return
        guarded = await self._guarded()
        await self._jail.set(lanes=self._lanes.known.values(), openings=self._openings, guarded=guarded)
        await asyncio.to_thread(self._forwarding.turn, guarded, list(self._lanes.known.values()))

    async def _guarded(self) -> list[str]:
        private = {each.address for found in self._openings.values() for each in found}
        return await asyncio.to_thread(self._forwarding.ensure, private | set(self.resolvers))

    async def _watch(self, openings: Openings) -> None:
        """The kernel tells of each change to its tables, so a jail that was flushed is back in a moment; the clock is
        for what nobody tells of."""
        rung, loop, told = asyncio.Event(), asyncio.get_running_loop(), hostnet.changes()

        def ring() -> None:
            hostnet.heard(told)
            rung.set()

        loop.add_reader(told, ring)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await rung.wait()
                        await asyncio.sleep(AT_MOST_EVERY_S)
                rung.clear()
                await self._round(openings)
        finally:
            loop.remove_reader(told)
            told.close()

    async def _round(self, openings: Openings) -> None:
        try:
            await self.look(await openings())
            self._trouble = ""
        except (NetworkFault, SandboxError) as error:
            if str(error) != self._trouble:  # once, not each round
                log.error("The network jail could not be looked after, tried again until it can be: %s", error)
            self._trouble = str(error)
        except Exception:  # a boundary: a database that is locked must not end the watch
            log.exception("The network jail could not be looked after, next try in a moment.")

    async def look(self, openings: Mapping[str, Collection[Opening]]) -> None:
        """What is open now, and everything else as it was set."""
        if self._jail is None:
            return
        before = self._openings
        self._take(openings)
        await self._read_firewall()
        await self._jail.look()
        if self._openings != before or await self._guarded() != list(self._jail.now.guarded):
            await self._set()
        else:
            await asyncio.to_thread(self._forwarding.turn, self._jail.now.guarded, self._jail.now.lanes)

    async def verify(self, sandbox_id: str) -> None:
        """Raises NoRuntime unless the jail is as it was set, and names this sandbox."""
        before = self.repairs
        try:
            await self._set()
        except NetworkFault as error:
            raise NoRuntime(f"The network jail cannot be set ({error}). {_fix(error)}") from error
        if self.repairs != before or self._jail is None or not self._jail.names(sandbox_id):
            raise NoRuntime(f"The network jail does not stay as it is set: something else here changes it. {LOOK}")

    async def close(self) -> None:
        """Sandboxes that go on stay jailed. Without any, nothing stays on the host."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        if self._jail is not None and not self._lanes.known:
            await self._jail.remove()
            await asyncio.to_thread(self._forwarding.restore)


def _fix(why: object) -> str:
    if isinstance(why, NoRuntime):
        return ""
    return INSTALL if "nft: [Errno 2]" in str(why) else LOOK
