"""The daemon's word that a sandbox's process was killed for memory: gVisor itself only shows a command that ended.

Owns one stream of events. Must never be needed for correctness: while it is down, such commands merely lack a reason.
"""

import asyncio
import json
import urllib.parse
from collections.abc import Callable
from contextlib import suppress

LINE_LIMIT_BYTES = 64 << 10
AGAIN_S = 1.0


async def watch_oom(docker_host: str, instance_label: str, on_oom: Callable[[str], None]) -> None:
    """Calls `on_oom` with a container's id; for ever, until it is cancelled."""
    filters = json.dumps({"type": ["container"], "event": ["oom"], "label": [instance_label]})
    # HTTP/1.0: the answer comes as plain lines, not in chunks
    ask = f"GET /events?filters={urllib.parse.quote(filters)} HTTP/1.0\r\nHost: docker\r\n\r\n"
    while True:
        with suppress(OSError, ValueError):
            await _listen(docker_host, ask.encode("ascii"), on_oom)
        await asyncio.sleep(AGAIN_S)


async def _listen(docker_host: str, ask: bytes, on_oom: Callable[[str], None]) -> None:
    where = urllib.parse.urlsplit(docker_host)
    if where.scheme == "unix":
        reader, writer = await asyncio.open_unix_connection(where.path, limit=LINE_LIMIT_BYTES)
    else:
        reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=LINE_LIMIT_BYTES)
    try:
        writer.write(ask)
        while line := await reader.readline():
            if line.startswith(b"{"):
                event = json.loads(line)
                on_oom(str(event.get("Actor", {}).get("ID", "")))
    finally:
        writer.close()
