"""Sandboxes on one Docker daemon: made, found again, removed.

Owns containers, their volumes and the connections to them. Must never run on anything but the gVisor runtime it was
given, and a create that fails or is cancelled at any stage leaves nothing.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

import docker
import docker.errors

from console.workspaces.stock import STOCK_IMAGES
from sandboxes.errors import BoxGone, NoRuntime, SandboxError, Silent
from sandboxes.runner.frames import MARKER_BYTES, BrokenFrame

from . import archive, containers, killing, kit, shims
from .attach import AttachFailed
from .box import Box
from .channel import ChannelLost
from .daemon import Daemon, NotFound, Refused, Unreachable
from .disks import Disks, NoDisk
from .ending import look
from .events import watch_oom
from .hostnet import NetworkFault
from .link import FIRST_HELLO_S, HELLO_S, Link
from .names import LABEL_INSTANCE, LABEL_MARKER, LABEL_ROOT_MB, LABEL_SANDBOX, checked
from .network import Network, Openings, no_openings
from .roots import Roots
from .rules import Lane
from .shapes import BoxSpec, EngineConfig, Found

log = logging.getLogger("sandgate.engine")
CREATES_AT_ONCE = 4
REMOVE_S = 30.0
STUCK_S, LONG_STUCK_S = 5.0, 10.0
"""Into a removal, and again: how long a shim may keep it up, when nothing is left below it, and at all."""

T = TypeVar("T")
U = TypeVar("U")


class CreateFailed(SandboxError):
    code = "create_failed"


class NotRemoved(NoRuntime):
    """Docker or the machine would not let go of something. Asked again, it goes on from there."""


class Engine:
    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.daemon = Daemon(config.docker_host)
        self._disks = Disks(self.daemon, config)
        self.network = Network(self.daemon, config)
        self.openings: Openings = no_openings
        """What is open to which sandbox although it is private; asked at the start and every two seconds."""
        self._roots = Roots(self.daemon)
        self._boxes: dict[str, Box] = {}
        self._removals: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._creating = asyncio.Semaphore(CREATES_AT_ONCE)
        self._runner = ""
        self._events: asyncio.Task[None] | None = None

    @property
    def disk_kind(self) -> str:
        """`loop` or `tmpfs`."""
        return self._disks.kind

    @property
    def can_network(self) -> bool:
        """False without root on Docker's own machine: then there is only `none`."""
        return self.network.possible

    async def network_ready(self) -> None:
        """Raises NoRuntime, with the cause and the fix, when no sandbox with a network could start now."""
        await self.network.ready()

    async def start(self) -> None:
        """Docker answers, the runtime and the image are there; NoRuntime, with the fix, when not."""
        info = await self.daemon.call(lambda client: client.info())
        if self.config.runtime not in info.get("Runtimes", {}):
            raise NoRuntime(
                f"Docker at {self.config.docker_host} has no runtime {self.config.runtime}. "
                "Run bin/up, which registers gVisor, or register it and restart Docker."
            )
        await self.image_id(STOCK_IMAGES[0])
        self._runner = await kit.install(self.daemon, self.config)
        label = f"{LABEL_INSTANCE}={self.config.instance}"
        self._events = asyncio.create_task(watch_oom(self.config.docker_host, label, self._oom))
        await self.network.start(self.openings, {each["Labels"][LABEL_SANDBOX] for each in await self._containers()})

    async def close(self) -> None:
        """Lets go of everything; sandboxes go on. What serves only sandboxes goes too when there is none."""
        if self._events is not None:
            self._events.cancel()
        for box in list(self._boxes.values()):
            await box.close()
        self._boxes.clear()
        self._roots.close()
        await self.network.close()
        with suppress(SandboxError, Refused):
            await kit.forget(self.daemon, self.config)
        self._disks.tidy()
        self.daemon.close()

    async def create(self, spec: BoxSpec, *, kept: bool = False) -> Box:
        """A sandbox whose runner answers; `kept`: on the disk of one that was set down, with its files. What was made
        before a failure is removed, also when cancelled, save a disk that was there before."""
        checked(spec.sandbox_id)
        async with self._creating, AsyncExitStack() as undo:
            await self._check_free(spec.sandbox_id, kept=kept)
            undo.push_async_callback(lambda: _to_its_end(self._discard(spec.sandbox_id, keep_disk=kept)))
            try:
                box = await self._create(spec, undo, kept=kept)
            except docker.errors.ImageNotFound as error:
                raise NoRuntime(f"There is no image {spec.image}. Run bin/up, which builds it.") from error
            except (Refused, NoDisk, AttachFailed, ChannelLost, BrokenFrame, TimeoutError) as error:
                raise CreateFailed(f"Sandbox {spec.sandbox_id} could not be made: {_said(error)}") from error
            undo.pop_all()
        return box

    async def _check_free(self, sandbox_id: str, *, kept: bool) -> None:
        """Before there is anything to undo: what is there already is not ours to remove."""
        if sandbox_id in {each["Labels"][LABEL_SANDBOX] for each in await self._containers()}:
            raise CreateFailed(f"Sandbox {sandbox_id} exists already.")
        if self._disks.keeps(sandbox_id) is not kept:
            raise CreateFailed(f"Sandbox {sandbox_id} has {'no disk any more' if kept else 'a disk already'}.")

    async def _create(self, spec: BoxSpec, undo: AsyncExitStack, *, kept: bool) -> Box:
        marker = secrets.token_bytes(MARKER_BYTES)
        make = self._disks.reopen(spec.sandbox_id) if kept else self._disks.make(spec.sandbox_id, spec.disk_mb)
        ensure = kit.ensure(self.daemon, self.config, self._runner)
        self._runner, (disk, lane) = await _to_its_end(_both(ensure, _both(make, self._lane(spec))))
        wanted = containers.options(self.config, spec, marker=marker, disk=disk, runner=self._runner)
        wanted |= containers.network(lane, self.network.resolvers)
        container_id = await _to_its_end(self.daemon.call(lambda client: containers.create(client, wanted)))
        link = Link(self.daemon, spec.sandbox_id, container_id, marker)
        undo.push_async_callback(link.close)
        if spec.writable_root:
            undo.callback(self._roots.forget, container_id)
            await self._roots.watch(container_id, limit_mb=spec.disk_mb, end=link.end)
        channel = await link.attach()
        undo.callback(channel.close)
        if lane is not None:
            await self.network.admit(lane)
        await _to_its_end(self.daemon.call(lambda client: client.api.start(container_id)))
        try:
            await link.greet(channel, timeout_s=FIRST_HELLO_S)
        except (ChannelLost, TimeoutError) as error:
            raise CreateFailed(
                f"Sandbox {spec.sandbox_id} started, but its runner did not answer. {channel.stderr}".strip()
            ) from error
        return self._add(Box(link, spec.sandbox_id, container_id, spec.env))

    async def _lane(self, spec: BoxSpec) -> Lane | None:
        return await self.network.make(spec.sandbox_id) if spec.network == "public" else None

    def _add(self, box: Box) -> Box:
        self._boxes[box.container_id] = box
        box.address = self.network.address(box.sandbox_id)
        return box

    async def open_up(self, sandbox_id: str) -> None:
        """What is open to a sandbox holds before anybody runs something in it, not up to two seconds later."""
        openings = await self.openings()
        if openings.get(sandbox_id):
            with suppress(NetworkFault):  # the watch goes on trying
                await self.network.look(openings)

    async def attach(self, sandbox_id: str, container_id: str, *, env: Mapping[str, str]) -> Box:
        """To a sandbox made earlier, by this process or one before it. BoxGone when it does not run any more."""
        state = await look(self.daemon, container_id)
        if state.running and state.label(LABEL_SANDBOX) != sandbox_id:
            raise BoxGone(f"Container {container_id[:12]} is not sandbox {sandbox_id}.", reason="crashed")
        if not state.running:
            raise BoxGone(f"Sandbox {sandbox_id} has ended ({state.reason}).", reason=state.reason)
        if (earlier := self._boxes.pop(container_id, None)) is not None:
            await earlier.close()
        link = Link(self.daemon, sandbox_id, container_id, bytes.fromhex(state.label(LABEL_MARKER)))
        if root_mb := state.label(LABEL_ROOT_MB):
            await self._roots.watch(container_id, limit_mb=int(root_mb), end=link.end)
        try:
            await link.greet(await link.attach(), timeout_s=HELLO_S * 2)
        except (AttachFailed, ChannelLost, BrokenFrame, TimeoutError) as error:
            self._roots.forget(container_id)
            raise Silent(f"The runner of sandbox {sandbox_id} does not answer: {_said(error)}") from error
        return self._add(Box(link, sandbox_id, container_id, env))

    async def found(self) -> list[Found]:
        """Every container with our label, whatever its state."""
        return [
            Found(
                sandbox_id=each["Labels"][LABEL_SANDBOX],
                container_id=each["Id"],
                running=each["State"] == "running",
                created_at=datetime.fromtimestamp(each["Created"], UTC),
            )
            for each in await self._containers()
        ]

    async def remove(self, container_id: str, *, reason: str = "deleted") -> None:
        """As `erase`, by the container."""
        box = self._boxes.get(container_id)
        sandbox_id = box.sandbox_id if box else (await look(self.daemon, container_id)).label(LABEL_SANDBOX)
        if sandbox_id:
            await self.erase(sandbox_id, reason=reason)

    async def cut_off(self, containers: Mapping[str, str], *, reason: str) -> None:
        """Of these sandboxes, with their containers, nothing runs or reaches anything from here on. Without Docker,
        which takes its time under the load that one of them may make. What is left is for `set_down` and `erase`."""
        for box in [box for box in self._boxes.values() if box.sandbox_id in containers]:
            box.end(reason)  # before its death is seen, which would be called a crash
        await asyncio.to_thread(killing.kill, set(containers.values()))
        try:
            await self.network.cut(containers)
        except NetworkFault as error:
            log.error("Networks of sandboxes could not be cut before their end: %s", error)

    async def erase(self, sandbox_id: str, *, reason: str = "deleted") -> None:
        """Container, volume and disk, whatever there is. Once more does no harm, and goes on after a NotRemoved. Calls
        that still wait get BoxGone with `reason`."""
        await self._take_down(sandbox_id, reason, keep_disk=False)

    async def set_down(self, sandbox_id: str, *, reason: str) -> None:
        """As `erase`, but the disk is put away, for `create(…, kept=True)`. Only where `keeps` says that it can be."""
        await self._take_down(sandbox_id, reason, keep_disk=True)

    async def archive(self, sandbox_id: str) -> AsyncGenerator[bytes, None]:
        """`/work` of one that was set down, as a tar; it is set down again at the end, or when nobody wants more."""
        checked(sandbox_id)
        try:
            disk = await self._disks.reopen(sandbox_id)
            async with aclosing(archive.pieces(self.daemon, self.config, sandbox_id, disk)) as packed:
                async for piece in packed:
                    yield piece
        except (Refused, NoDisk) as error:
            raise CreateFailed(f"The files of sandbox {sandbox_id} could not be read: {_said(error)}") from error
        finally:
            await _to_its_end(self._discard(sandbox_id, keep_disk=True))

    def keeps(self, sandbox_id: str) -> bool:
        """Whether its files are on a disk that outlives its container."""
        return self._disks.keeps(sandbox_id)

    async def disks(self) -> set[str]:
        """Ids of the sandboxes that have a disk or a volume here, in use or not."""
        return await self._disks.found()

    async def _take_down(self, sandbox_id: str, reason: str, *, keep_disk: bool) -> None:
        """The channel goes first: a held attach blocks the kill."""
        for box in [box for box in self._boxes.values() if box.sandbox_id == sandbox_id]:
            del self._boxes[box.container_id]
            self._roots.forget(box.container_id)
            box.end(reason)
            await box.close()
        try:
            await _to_its_end(self._discard(sandbox_id, keep_disk=keep_disk))
        except (Refused, NoDisk) as error:
            raise NotRemoved(f"Not all of sandbox {sandbox_id} could be removed: {_said(error)}") from error

    async def _discard(self, sandbox_id: str, *, keep_disk: bool) -> None:
        # One at a time: who deletes it and who takes it for a stray would stumble over each other's half-done work.
        async with self._removals.setdefault(sandbox_id, asyncio.Lock()):
            for each in await self._containers():
                if each["Labels"][LABEL_SANDBOX] == sandbox_id:
                    await self._remove(each["Id"], is_paused=each["State"] == "paused")
            await self.network.remove(sandbox_id)
            await (self._disks.put_away(sandbox_id) if keep_disk else self._disks.remove(sandbox_id))

    async def _remove(self, container_id: str, *, is_paused: bool) -> None:
        remove = partial(_remove, container_id=container_id, is_paused=is_paused)
        removal = asyncio.ensure_future(self.daemon.call(remove, timeout_s=REMOVE_S))
        for within_s, even_with_children in ((STUCK_S, False), (LONG_STUCK_S, True)):
            if (await asyncio.wait([removal], timeout=within_s))[0]:
                break
            if pids := await asyncio.to_thread(shims.end_stuck, container_id, even_with_children=even_with_children):
                log.warning("Removing %s hung: its shim %s was ended.", container_id[:12], pids)
        await removal

    async def _containers(self) -> list[dict[str, Any]]:
        labels = [f"{LABEL_INSTANCE}={self.config.instance}", LABEL_SANDBOX]
        return await self.daemon.call(lambda client: client.api.containers(all=True, filters={"label": labels}))

    async def image_id(self, name: str) -> str:
        """Of a stock image, or of one that an operator gave Docker under this name."""
        wanted = self.config.image_in_docker(name)
        try:
            image = await self.daemon.call(lambda client: client.images.get(wanted))
        except docker.errors.ImageNotFound as error:
            fix = "Run bin/up, which builds it." if name in STOCK_IMAGES else "Pull or build it there, then try again."
            raise NoRuntime(f"There is no image {wanted} in Docker. {fix}") from error
        return str(image.id)

    async def has_image(self, image_id: str) -> bool:
        try:
            await self.daemon.call(lambda client: client.api.inspect_image(image_id))
        except docker.errors.ImageNotFound:
            return False
        return True

    def _oom(self, container_id: str) -> None:
        if (box := self._boxes.get(container_id)) is not None:
            box.note_oom()


async def _both(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Side by side. When one fails the other comes to its end first: what is half made cannot be undone."""
    first, second = await asyncio.gather(one, other, return_exceptions=True)
    for result in (first, second):
        if isinstance(result, BaseException):
            raise result
    return cast(T, first), cast(U, second)


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """What a thread makes cannot be called back, and half removed is a leak: when cancelled, wait for it first."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _remove(client: docker.DockerClient, *, container_id: str, is_paused: bool) -> None:
    if is_paused:  # by somebody else, and then Docker cannot kill it
        with suppress(NotFound, Refused):
            client.api.unpause(container_id)
    with suppress(NotFound):
        try:
            client.api.remove_container(container_id, force=True, v=True)
        except Refused as error:
            if error.status_code != 409:
                raise
            # Somebody else is removing it. It must be gone when this returns: its disk goes next.
            client.api.wait(container_id, timeout=REMOVE_S, condition="removed")


def _said(error: Exception) -> str:
    return str(getattr(error, "explanation", "") or error or type(error).__name__)


__all__ = ["CreateFailed", "Engine", "Unreachable"]
