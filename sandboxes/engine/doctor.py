"""Proves the engine's parts by using them: versions lie. Yields one Check for each, stops where the rest cannot work.

Owns nothing that stays: it works under an instance name of its own, so that a console that runs is not disturbed.
Must never run a command in a sandbox: it has no Pass. That a sandbox starts and its runner answers is proof enough.
"""

import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import docker

from console.workspaces.stock import STOCK_IMAGES
from sandboxes.errors import SandboxError

from . import machine, netcheck
from .box import Box
from .daemon import Daemon, NotFound
from .engine import Engine
from .machine import Check
from .shapes import BoxSpec, EngineConfig

VITAL = ("docker", "gVisor runtime", "image", "keeper")
"""Without one of these nothing after it can work."""
SEAL_S = 60
SEALED, OPEN = 0, 3
# Binds a file over itself, read-only, and tries to write it: what protects paths from commands.
SEAL = f"""
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
path = b"/tmp/sealed"
open(path, "w").close()
mount = lambda *a: libc.mount(*a) and sys.exit(ctypes.get_errno())
mount(path, path, None, 4096, None)
mount(None, path, None, 4096 | 32 | 1, None)
try:
    open(path, "a")
except OSError:
    sys.exit({SEALED})
sys.exit({OPEN})
"""


async def checks(var: Path, instance: str, images: Collection[str] = ()) -> AsyncIterator[Check]:
    """`images`: names that somebody allows beside the default one."""
    try:
        config = EngineConfig.load(var, instance)
    except SandboxError as error:
        yield Check("engine.json", False, str(error), "Run bin/up, which writes it.")
        return
    daemon = Daemon(config.docker_host)
    try:
        async for check in _parts(daemon, config):
            yield check
            if not check.ok and check.name in VITAL:
                return
        yield await _images(daemon, config, images)
        async for check in _sandbox(config):
            yield check
        yield await _sealing(daemon, config)
    finally:
        daemon.close()


async def _parts(daemon: Daemon, config: EngineConfig) -> AsyncIterator[Check]:
    try:
        info = await daemon.call(lambda client: client.info(), timeout_s=10)
    except SandboxError as error:
        yield Check("docker", False, str(error), "Start Docker, or run bin/up, which starts one of its own.")
        return
    yield Check("docker", True, f"{info.get('ServerVersion')} at {config.docker_host}")
    yield machine.about(info)
    yield machine.can_limit(info)
    yield machine.clock(info, datetime.now(UTC))
    yield machine.room(config.var, Path(info.get("DockerRootDir") or "/"))
    known = config.runtime in info.get("Runtimes", {})
    detail = f"{config.runtime} is {'registered' if known else 'not among ' + ', '.join(info.get('Runtimes', {}))}"
    yield Check(
        "gVisor runtime", known, detail, "Run bin/up, or add the runtime to Docker's configuration; restart it."
    )
    try:
        image = await daemon.call(lambda client: client.images.get(config.image), timeout_s=10)
        yield Check("image", True, f"{config.image}, {str(image.id)[7:19]}")
    except NotFound:
        yield Check("image", False, f"{config.image} is not in Docker", "Run bin/up, which builds it.")
    ready = config.keeper.is_file() and os.access(config.keeper, os.X_OK)
    yield Check("keeper", ready, str(config.keeper), "Run bin/up, which compiles it.")


async def _images(daemon: Daemon, config: EngineConfig, names: Collection[str]) -> Check:
    """A stock image that nobody has built is no fault: it is allowed everywhere, and may be wanted nowhere."""
    stock, named = STOCK_IMAGES[1:], sorted(set(names) - set(STOCK_IMAGES))

    def there(client: docker.DockerClient) -> set[str]:
        found = {tag for image in client.images.list() for tag in [*image.tags, str(image.id)]}
        return {name for name in [*stock, *named] if _is_there(config, name, found)}

    known = await daemon.call(there, timeout_s=10)
    gone = [name for name in named if name not in known]
    built = [f"{name} is {'there' if name in known else f'not built (bin/up --image {name})'}" for name in stock]
    others = f"{len(named)} more are named by admins, all there" if named else "no more are named by admins"
    detail = "; ".join([*built, f"not in Docker: {', '.join(gone)}" if gone else others])
    fix = "Load them into this Docker with `docker load`, or allow them no longer."
    return Check("allowed images", not gone, detail, fix)


def _is_there(config: EngineConfig, name: str, there: Collection[str]) -> bool:
    try:
        wanted = config.image_in_docker(name)
    except SandboxError:
        return False
    return wanted in there or f"{wanted}:latest" in there


async def _sandbox(config: EngineConfig) -> AsyncIterator[Check]:
    """A whole one: disk, container, gVisor, runner, and what the kernel keeps it to."""
    with tempfile.TemporaryDirectory(prefix="sandgate-doctor-") as var:
        engine = Engine(replace(config, instance=f"{config.instance}-{secrets.token_hex(3)}", var=Path(var)))
        try:
            await engine.start()
            started_at = time.monotonic()
            spec = BoxSpec(sandbox_id=f"sbx_doctor{secrets.token_hex(4)}", image=config.image, disk_mb=64)
            box = await engine.create(spec)
            took_ms = int((time.monotonic() - started_at) * 1000)
            yield Check("sandbox", True, f"started in {took_ms} ms; disks are capped by {engine.disk_kind}")
            if config.docker_host.startswith("unix://"):  # else its processes are another machine's
                yield await _limits(engine, box, spec)
            await engine.remove(box.container_id)
            yield await netcheck.check(engine, spec)
        except SandboxError as error:
            fix = "Look at Docker's log; run bin/up, which tries the ways gVisor has."
            yield Check("sandbox", False, str(error), fix)
        finally:
            await engine.close()


async def _limits(engine: Engine, box: Box, spec: BoxSpec) -> Check:
    found = await engine.daemon.call(lambda client: client.api.inspect_container(box.container_id))
    most = int(found["HostConfig"]["PidsLimit"])
    return machine.bites(int(found["State"]["Pid"]), memory_mb=spec.memory_mb, cpus=spec.cpus, processes=most)


async def _sealing(daemon: Daemon, config: EngineConfig) -> Check:
    fix = "This gVisor cannot bind a file. Install a newer runsc (2024 or later)."
    try:
        code = await daemon.call(lambda client: _seal(client, config), timeout_s=SEAL_S)
    except (docker.errors.DockerException, SandboxError) as error:
        return Check("sealing", False, str(error), fix)
    words = {SEALED: "a sealed file cannot be written", OPEN: "a sealed file can be written"}
    return Check("sealing", code == SEALED, words.get(code, f"mount: {os.strerror(code)}"), fix)


def _seal(client: docker.DockerClient, config: EngineConfig) -> int:
    options: dict[str, Any] = {"network_mode": "none", "read_only": True, "cap_drop": ["ALL"], "cap_add": ["SYS_ADMIN"]}
    container = client.containers.create(
        config.image,
        entrypoint=["python3", "-I", "-c", SEAL],
        command=[],
        user="0:0",
        runtime=config.runtime,
        tmpfs={"/tmp": "size=1m"},
        **options,
    )
    try:
        container.start()
        return int(container.wait(timeout=SEAL_S)["StatusCode"])
    finally:
        container.remove(force=True)
