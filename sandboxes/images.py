"""Which named images Docker has, for those who allow them. Must never pull one, nor stand in the way of a setting."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from . import host
from .engine import Engine
from .errors import SandboxError

ASK_S = 2.0


async def missing(names: Sequence[str]) -> list[str]:
    """Those that Docker does not have now; none where nobody can tell in time."""
    hub = host.current
    if not names or hub is None or hub.boxes.engine is None or not hub.boxes.is_answering:
        return []
    with suppress(TimeoutError, SandboxError):
        return await hub.ask(_missing(hub.boxes.engine, names))
    return []


async def _missing(engine: Engine, names: Sequence[str]) -> list[str]:
    async with asyncio.timeout(ASK_S):
        return [name for name in names if not await engine.has_image(engine.config.image_in_docker(name))]
