"""A Docker daemon for one container whose PID 1 is a liar: it speaks the protocol; what it says is the test's."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sandboxes.engine.box import Box
from sandboxes.engine.link import Link
from sandboxes.runner import frames

MARKER = bytes(range(32))
RUNNING = {"Config": {"Labels": {}}, "State": {"Running": True}}
KILLED = {"Config": {"Labels": {}}, "State": {"Running": False, "ExitCode": 137, "OOMKilled": False}}


class Liar:
    """`answer(say, frame)` is called with each frame from the host, after the hello."""

    def __init__(self, path: Path, answer: Callable[["Liar", frames.Frame], Awaitable[None]]) -> None:
        self.path = path
        self.answer = answer
        self.tag = b""
        self.state: dict[str, Any] = RUNNING
        self.attaches = 0
        self.head = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: x\r\n\r\n"
        self.boot = "boot1"
        self._writer: asyncio.StreamWriter | None = None

    async def call(self, work: Any, *, timeout_s: float = 0) -> Any:
        """Instead of Daemon.call: the only question asked here is inspect."""
        return self.state

    @property
    def docker_host(self) -> str:
        return f"unix://{self.path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # the host has let go of it: what it did not hear is no matter
            await self._serve(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.attaches += 1
        self._writer = writer
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.head)
        parser = frames.Parser(limit_bytes=frames.FROM_HOST_LIMIT)
        while data := await reader.read(65536):
            for frame in parser.feed(data):
                self.tag = parser.tag or b""
                if frame.kind == frames.HELLO:
                    self.say(frames.WELCOME, {"version": frames.VERSION, "boot": self.boot, "running": []})
                else:
                    await self.answer(self, frame)
        writer.close()

    def say(self, kind: int, payload: bytes | dict[str, Any], **fields: Any) -> None:
        body = json.dumps(payload).encode() if isinstance(payload, dict) else payload
        self.raw(frames.pack(self.tag, kind, body, **fields))

    def raw(self, data: bytes, stream: int = 1) -> None:
        assert self._writer is not None
        self._writer.write(bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data)

    def hang_up(self) -> None:
        assert self._writer is not None
        self._writer.close()


async def boxed(liar: Liar, scene: Callable[[Box], Awaitable[Any]]) -> Any:
    """`scene` with a box on the liar."""
    server = await asyncio.start_unix_server(liar.serve, liar.path)
    link = Link(liar, "sbx_liar", "c" * 64, MARKER)  # type: ignore[arg-type]
    box = Box(link, "sbx_liar", "c" * 64)
    try:
        await link.greet(await link.attach(), timeout_s=3)
        async with asyncio.timeout(30):
            return await scene(box)
    finally:
        await box.close()
        server.close()
