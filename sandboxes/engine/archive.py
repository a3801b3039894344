"""The files of a sandbox that was set down, as a tar: for people to look at, somewhere else.

Owns the container that Docker reads them through. Must never start it: nothing of what is in quarantine runs again, and
nothing of it is mounted where a program of ours would follow its links.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import docker
from docker.types import Mount

from . import kit
from .daemon import Daemon
from .names import LABEL_INSTANCE, LABEL_SANDBOX, container_name
from .shapes import EngineConfig

PIECE_BYTES = 256 << 10
WORK = f"{kit.VOLUME_AT}/work"


async def pieces(daemon: Daemon, config: EngineConfig, sandbox_id: str, disk: str) -> AsyncGenerator[bytes, None]:
    """Of `/work` on the volume `disk`. The container is left, for whoever takes the sandbox down again."""
    container_id = await daemon.call(lambda client: _create(client, config, sandbox_id, disk))
    # Docker holds the container for as long as this connection is open: it is dropped before anything else is done.
    packed = await daemon.call(lambda client: client.api.get_archive(container_id, WORK, chunk_size=PIECE_BYTES)[0])
    try:
        while piece := await asyncio.to_thread(next, packed, b""):
            yield cast(bytes, piece)
    finally:
        packed.close()
        del packed


def _create(client: docker.DockerClient, config: EngineConfig, sandbox_id: str, disk: str) -> str:
    wanted: dict[str, Any] = {
        "image": config.image,
        "entrypoint": ["false"],
        "name": container_name(config.instance, sandbox_id),
        "runtime": config.runtime,
        "network_mode": "none",
        "read_only": True,
        "labels": {LABEL_INSTANCE: config.instance, LABEL_SANDBOX: sandbox_id},
        "mounts": [Mount(kit.VOLUME_AT, disk, read_only=True, no_copy=True)],
    }
    return str(client.containers.create(**wanted).id)
