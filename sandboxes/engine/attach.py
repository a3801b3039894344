"""The byte stream to PID 1 of a container: Docker's attach, spoken by the event loop itself.

Owns one upgraded connection and its demultiplexing. Always reads: an attach that is held and not read stops the
daemon's `kill` and `inspect` of that container. Must never put a bound on what the daemon says by trusting it: pieces
are passed on as they come, nothing is collected.
"""

import asyncio
import urllib.parse
from collections.abc import Callable

CONNECT_S = 10.0
ANSWER_LIMIT_BYTES = 16 << 10
STDERR_KEPT_BYTES = 2048
DOCKER_PORT = 2375
_HEAD_BYTES = 8
_STDERR = 2


class AttachFailed(Exception):
    """The daemon is away, or will not attach to this container."""


class Attached(asyncio.Protocol):
    """`on_data` gets stdout as it comes; `on_lost` is called once, when the stream ended for whatever reason."""

    def __init__(self, on_data: Callable[[bytes], None], on_lost: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._head = bytearray()
        self._kind = 0
        self._left = 0
        self.stderr = bytearray()

    # --- asyncio.Protocol ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._answer.done():
            data = self._answered(data)
        view = memoryview(data)
        while view and self._transport is not None:
            if self._left == 0:
                view = self._next_head(view)
                continue
            piece, view = view[: self._left], view[self._left :]
            self._left -= len(piece)
            if self._kind == _STDERR:
                self.stderr += piece
                del self.stderr[:-STDERR_KEPT_BYTES]
            else:
                self._on_data(bytes(piece))

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        if not self._answer.done():
            self._answer.set_exception(AttachFailed("the daemon closed the connection"))
        elif self._transport is not None:
            self._on_lost()
        self._transport = None

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # ---------------------------------------------------------------------------------------------------------------

    def _next_head(self, view: memoryview) -> memoryview:
        missing = _HEAD_BYTES - len(self._head)
        self._head += view[:missing]
        if len(self._head) == _HEAD_BYTES:
            self._kind = self._head[0]
            self._left = int.from_bytes(self._head[4:8], "big")
            self._head.clear()
        return view[missing:]

    def _answered(self, data: bytes) -> bytes:
        """Takes the HTTP answer off the front; what follows it already belongs to the stream."""
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            if len(self._head) > ANSWER_LIMIT_BYTES:
                self._refuse("an endless answer")
            return b""
        status = bytes(self._head[:end]).split(b"\r\n", 1)[0]
        rest = bytes(self._head[end + 4 :])
        self._head.clear()
        if b" 101 " in status + b" " or b" 200 " in status + b" ":
            self._answer.set_result(None)
            return rest
        self._refuse(f"{status.decode('latin-1')} {rest[:300].decode('utf-8', 'replace')}")
        return b""

    def _refuse(self, why: str) -> None:
        self._answer.set_exception(AttachFailed(why))
        self.close()

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    async def drain(self) -> None:
        await self._writable.wait()

    def close(self) -> None:
        """No `on_lost` follows."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    async def answered(self) -> None:
        await self._answer


async def attach(
    docker_host: str, container_id: str, on_data: Callable[[bytes], None], on_lost: Callable[[], None]
) -> Attached:
    """Connects stdin, stdout and stderr of PID 1; also of a container that has yet to be started."""
    loop = asyncio.get_running_loop()
    where = urllib.parse.urlsplit(docker_host)
    stream = Attached(on_data, on_lost)
    try:
        async with asyncio.timeout(CONNECT_S):
            if where.scheme == "unix":
                await loop.create_unix_connection(lambda: stream, where.path)
            else:
                await loop.create_connection(lambda: stream, str(where.hostname), where.port or DOCKER_PORT)
            query = "stream=1&stdin=1&stdout=1&stderr=1"
            stream.write(
                f"POST /containers/{container_id}/attach?{query} HTTP/1.1\r\nHost: docker\r\n"
                "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n".encode("ascii")
            )
            await stream.answered()
    except (OSError, TimeoutError) as error:
        stream.close()
        raise AttachFailed(f"{docker_host}: {error or 'no answer'}") from error
    except BaseException:
        stream.close()
        raise
    return stream
