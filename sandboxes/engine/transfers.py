"""Files over the channel: content in, content out, neither ever held whole.

Owns the windows of both directions. Must never believe what the sandbox says about size or hash without counting.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Self

from sandboxes.errors import SandboxError
from sandboxes.runner import frames
from sandboxes.runner.files import WINDOW_BYTES

from . import answers
from .channel import Call, Channel, ChannelLost
from .link import Link
from .shapes import Listing, WriteRequest, WriteResult

ACK_BYTES = 256 << 10
STALL_S = 120.0
"""A runner that is well sends the next piece, or says that it took one, in far less: a disk may be slow."""
LISTING_BYTES = 16 << 20


class Interrupted(SandboxError):
    """The connection broke in the middle of a file. Nothing was written; the same call may be made again."""

    code = "channel_lost"


class Overdue(SandboxError):
    """It may have come to something; the runner does not tell."""

    code = "sandbox_unresponsive"


async def _next(call: Call, path: str) -> frames.Frame:
    if (frame := call.poll()) is not None:
        return frame
    try:
        async with asyncio.timeout(STALL_S):
            return await call.next()
    except TimeoutError as error:
        raise Overdue(f"The sandbox has said nothing about {path} for {STALL_S:g} s. Try again, or stop it.") from error


class Upload:
    """One write. Content is kept while it fits one window, so that a small file survives a break of the channel."""

    def __init__(self, link: Link, action_id: str, asked: WriteRequest, content: AsyncIterator[bytes]) -> None:
        self._link = link
        self._id = action_id
        self._asked = asked
        self._content = content
        self._kept: list[bytes] | None = []
        self._taken_bytes = 0
        self._all_taken = False
        self._sha256 = hashlib.sha256()

    async def run(self) -> WriteResult:
        while True:
            channel = await self._link.ready()
            call = channel.call()
            try:
                answer = await (self._once(channel, call) if self._kept is not None else self._ask(channel, call))
            except ChannelLost:
                continue
            finally:
                channel.release(call)
            result = answers.write_result(answer)
            if self._all_taken and (result.size, result.sha256) != (self._taken_bytes, self._sha256.hexdigest()):
                raise frames.BrokenFrame("the sandbox wrote other bytes than were sent")
            return result

    async def _ask(self, channel: Channel, call: Call) -> dict[str, Any]:
        """After a break in the middle of a long file: the runner may have had all of it by then."""
        channel.send(frames.pack_request(channel.tag, call.ref, {"op": "resume", "id": self._id}))
        answer = (await _next(call, self._asked.path)).message()
        if answer.get("unknown") is True:
            raise Interrupted(f"The connection broke while {self._asked.path} was sent. Nothing was written.")
        return answer

    async def _once(self, channel: Channel, call: Call) -> dict[str, Any]:
        asked = self._asked
        message = {"op": "write", "id": self._id, "path": asked.path, "size": asked.size, "mode": asked.mode}
        if asked.base is not None:
            message["base"] = asked.base
        if asked.version is not None:
            message["version"] = asked.version
        if asked.seal:
            message["seal"] = True
        channel.send(frames.pack_request(channel.tag, call.ref, message))
        sent = credited = 0
        async with aclosing(self._pieces()) as pieces:
            async for data in pieces:
                while True:
                    is_full = sent - credited >= WINDOW_BYTES
                    if (news := await _next(call, asked.path) if is_full else call.poll()) is None:
                        break
                    if news.kind == frames.RESULT:  # refused before the end: no use in sending the rest
                        return news.message()
                    credited = _credit(news, credited, sent)
                channel.send(frames.pack(channel.tag, frames.DATA, data, ref=call.ref))
                sent += len(data)
                await channel.drain()
        channel.send(frames.pack(channel.tag, frames.DATA, ref=call.ref, flags=frames.END))
        while (frame := await _next(call, asked.path)).kind != frames.RESULT:
            credited = _credit(frame, credited, sent)
        return frame.message()

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """What was kept from a try before, then the rest of the content."""
        for data in list(self._kept or ()):
            yield data
        async for block in self._content:
            for at in range(0, len(block), frames.CHUNK_BYTES):
                data = bytes(block[at : at + frames.CHUNK_BYTES])
                self._taken_bytes += len(data)
                self._sha256.update(data)
                self._keep(data)
                yield data
        self._all_taken = True

    def _keep(self, data: bytes) -> None:
        if self._taken_bytes > WINDOW_BYTES:
            self._kept = None
        elif self._kept is not None:
            self._kept.append(data)


def _credit(frame: frames.Frame, credited: int, sent: int) -> int:
    if frame.kind != frames.CREDIT or not credited <= frame.offset <= sent:
        raise frames.BrokenFrame("credit for what was not sent")
    return frame.offset


class Incoming:
    """Content that a sandbox sends: take `chunks()` to its end, or `close()`. `info` is hostile until it is checked."""

    def __init__(self, link: Link, channel: Channel, call: Call, path: str, info: dict[str, Any]) -> None:
        self._link = link
        self._channel = channel
        self._call = call
        self._asked = path
        self.info = info
        self.sha256: str | None = None

    @classmethod
    async def ask(cls, link: Link, message: dict[str, Any], *attached: bytes) -> Self:
        while True:
            channel = await link.ready()
            call = channel.call()
            try:
                channel.send(frames.pack_request(channel.tag, call.ref, message, *attached))
                first = await _next(call, str(message["path"]))
                if first.kind == frames.INFO:
                    return cls(link, channel, call, str(message["path"]), first.message())
                answers.ok(first.message())
                raise frames.BrokenFrame("content without its size")
            except ChannelLost:
                channel.release(call)
            except BaseException:
                channel.release(call)
                raise

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self._checked()) as content:
                async for data in content:
                    yield data
        except ChannelLost as error:
            await self._link.ready()  # or BoxGone, when there is no sandbox to read from again
            raise Interrupted(f"The connection broke while {self._asked} was read. Read it again.") from error
        except frames.BrokenFrame as error:
            self._link.end("crashed")
            raise self._link.gone() from error
        finally:
            await self.close()

    async def _checked(self) -> AsyncGenerator[bytes, None]:
        got = acked = 0
        sha256 = hashlib.sha256()
        while (frame := await _next(self._call, self._asked)).kind == frames.CONTENT:
            if frame.offset != got:
                raise frames.BrokenFrame("content out of order")
            got += len(frame.payload)
            sha256.update(frame.payload)
            yield frame.payload
            if got - acked >= ACK_BYTES:
                acked = got
                self._channel.ack(self._call, got)
        good = answers.ok(frame.message())
        if answers.number(good, "size") != got or answers.sha256(good) != sha256.hexdigest():
            raise frames.BrokenFrame("content other than its hash")
        self.sha256 = sha256.hexdigest()

    async def close(self) -> None:
        """Tells the runner to stop, if it has not come to the end."""
        self._channel.release(self._call)


class FileRead(Incoming):
    """A file that is being read. `sha256`, of what was read, is there when all of it was."""

    def __init__(self, link: Link, channel: Channel, call: Call, path: str, info: dict[str, Any]) -> None:
        super().__init__(link, channel, call, path, info)
        self.path = answers.text(info, "path")
        self.size = answers.number(info, "size")
        self.mode = answers.number(info, "mode", most=0o7777)
        self.names = answers.number(info, "names") if "names" in info else 1  # a sandbox started before it was told
        self.is_sealed = answers.flag(info, "sealed") if "sealed" in info else False

    @classmethod
    async def open(
        cls, link: Link, path: str, *, offset: int = 0, limit: int | None = None, fixed: bool = False
    ) -> "FileRead":
        """`offset` below 0 counts from the end; `fixed`: no byte beyond `size`, however the file grows meanwhile."""
        return await cls.ask(link, {"op": "read", "path": path, "offset": offset, "limit": limit, "fixed": fixed})


async def listing(link: Link, path: str, *, depth: int) -> Listing:
    """What lies in the directory `path`, down to `depth`."""
    coming = await Incoming.ask(link, {"op": "list", "path": path, "depth": depth})
    try:
        content = bytearray()
        async with aclosing(coming.chunks()) as chunks:
            async for chunk in chunks:
                content += chunk
                if len(content) > LISTING_BYTES:
                    raise frames.BrokenFrame("a listing without an end")
        top, truncated = answers.text(coming.info, "path"), answers.flag(coming.info, "truncated")
        return Listing(top, await asyncio.to_thread(answers.entries, content), truncated)
    finally:
        await coming.close()
