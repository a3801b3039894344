"""The frames that the host and a runner exchange, and the parser that both use.

Owns the bytes on the wire: header, checksum, finding the next frame after a broken one.
Must never trust a length, and never take content for a frame: a frame counts only when it carries the tag of the
session it belongs to, which nobody inside the sandbox can know.

A stream from the host begins, at each new connection, with the sandbox's secret marker (MARKER_BYTES) and a HELLO whose
tag opens the session. The marker is looked for inside unfinished frames too, so the half frame of a client that died
never swallows what the next one sends. Content cannot hold the marker by accident or intent: it is random and secret.
"""

import json
import struct
import zlib
from collections.abc import Iterator

from .hints import Any

VERSION = 2
MAGIC = b"SGF1"
TAG_BYTES = 8
MARKER_BYTES = 32
# magic, tag, kind, flags, (spare), ref, length, offset, crc32 of all before it and of the payload
HEADER = struct.Struct(">4s8sBBHIIQ")
CRC = struct.Struct(">I")
HEAD_BYTES = HEADER.size + CRC.size

CHUNK_BYTES = 128 << 10
FROM_RUNNER_LIMIT = CHUNK_BYTES + 4096
FROM_HOST_LIMIT = 12 << 20

# from the host
HELLO, REQUEST, DATA, ACK, CANCEL, SETTLE, PING = 1, 2, 3, 4, 5, 6, 7
# from the runner
WELCOME, RESULT, OUT, INFO, CONTENT, CREDIT, PONG = 16, 17, 18, 19, 20, 21, 22

# flags
STDOUT, STDERR, END = 1, 2, 4


class BrokenFrame(Exception):
    """A frame of this session that is not one: from a sandbox this is an attack or a fault, never noise."""


class Frame:
    __slots__ = ("flags", "kind", "offset", "payload", "ref")

    def __init__(self, kind: int, flags: int, ref: int, offset: int, payload: bytes) -> None:
        self.kind = kind
        self.flags = flags
        self.ref = ref
        self.offset = offset
        self.payload = payload

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def message(self) -> dict[str, Any]:
        """The payload as a JSON object; anything else is a BrokenFrame."""
        try:
            found = json.loads(self.payload)
        except (ValueError, RecursionError) as error:
            raise BrokenFrame(f"kind {self.kind}: not JSON") from error
        if not isinstance(found, dict):
            raise BrokenFrame(f"kind {self.kind}: not an object")
        return found


def pack(tag: bytes, kind: int, payload: bytes = b"", *, ref: int = 0, offset: int = 0, flags: int = 0) -> bytes:
    head = HEADER.pack(MAGIC, tag, kind, flags, 0, ref, len(payload), offset)
    return b"".join((head, CRC.pack(zlib.crc32(payload, zlib.crc32(head))), payload))


def pack_message(tag: bytes, kind: int, message: dict[str, Any], *, ref: int = 0) -> bytes:
    return pack(tag, kind, json.dumps(message, separators=(",", ":")).encode("ascii"), ref=ref)


def pack_hello(tag: bytes, marker: bytes, message: dict[str, Any]) -> bytes:
    """What a connection begins with."""
    return marker + pack_message(tag, HELLO, {**message, "marker": marker.hex()})


def pack_request(tag: bytes, ref: int, message: dict[str, Any], *attachments: bytes) -> bytes:
    """A REQUEST: u32 length of the JSON, the JSON, then its attachments one after the other."""
    text = json.dumps(message, separators=(",", ":")).encode("ascii")
    return pack(tag, REQUEST, b"".join((CRC.pack(len(text)), text, *attachments)), ref=ref)


def request_parts(frame: Frame) -> tuple[dict[str, Any], bytes]:
    """The JSON of a REQUEST and the bytes attached to it."""
    if len(frame.payload) < CRC.size:
        raise BrokenFrame("request without a length")
    (size,) = CRC.unpack_from(frame.payload)
    end = CRC.size + size
    if end > len(frame.payload):
        raise BrokenFrame("request shorter than it says")
    text = Frame(frame.kind, 0, frame.ref, 0, frame.payload[CRC.size : end])
    return text.message(), frame.payload[end:]


class Parser:
    """Bytes in, frames out. With `tag`: one session, strict once its first frame was found (the host's side).
    Without: the runner's side, which takes the first MARKER_BYTES it ever reads as the marker and forgives noise."""

    def __init__(self, *, limit_bytes: int, tag: bytes | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.tag = tag
        self.marker: bytes | None = None
        self.skipped_bytes = 0
        self._strict = tag is not None
        self._found = False
        self._waits_for_hello = False
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        if self._strict:
            yield from self._frames(len(self._buffer))
            return
        if self.marker is None:
            if len(self._buffer) < MARKER_BYTES:
                return
            self.marker = bytes(self._buffer[:MARKER_BYTES])
        while (at := self._buffer.find(self.marker, self._searched)) >= 0:
            yield from self._frames(at)
            at = self._buffer.find(self.marker)
            self._drop(at + MARKER_BYTES, skipped=at)
            self._searched = 0
            self._waits_for_hello = True
        yield from self._frames(len(self._buffer))
        self._searched = max(0, len(self._buffer) - MARKER_BYTES + 1)

    def _frames(self, end: int) -> Iterator[Frame]:
        """Whole frames that lie before `end`; what is taken is dropped from the buffer."""
        while True:
            end -= self._seek(end)
            if end < HEAD_BYTES:
                return
            _, tag, kind, flags, _, ref, size, offset = HEADER.unpack_from(self._buffer)
            if size > self.limit_bytes:
                end -= self._broken(f"{size} bytes are more than {self.limit_bytes}")
                continue
            if end < HEAD_BYTES + size:
                return
            payload = bytes(memoryview(self._buffer)[HEAD_BYTES : HEAD_BYTES + size])
            (crc,) = CRC.unpack_from(self._buffer, HEADER.size)
            if crc != zlib.crc32(payload, zlib.crc32(memoryview(self._buffer)[: HEADER.size])):
                end -= self._broken("checksum")
                continue
            if self._waits_for_hello and not self._opens(kind, payload):
                end -= self._broken("no hello")
                continue
            self._drop(HEAD_BYTES + size)
            end -= HEAD_BYTES + size
            self._found, self._waits_for_hello, self.tag = True, False, tag
            yield Frame(kind, flags, ref, offset, payload)

    def _seek(self, end: int) -> int:
        """Drops what cannot begin a frame of this session, and says how much that was."""
        wanted = MAGIC if self._waits_for_hello or self.tag is None else MAGIC + self.tag
        if self._buffer.startswith(wanted) or wanted.startswith(self._buffer[: min(end, len(wanted))]):
            return 0
        if self._strict and self._found:
            raise BrokenFrame("bytes between frames")
        at = self._buffer.find(wanted, 0, end)
        gone = at if at >= 0 else max(0, end - max(len(wanted) - 1, self._begun_marker(end)))
        self._drop(gone, skipped=gone)
        return gone

    def _begun_marker(self, end: int) -> int:
        """How many of the last bytes may be the beginning of a marker whose rest is still to come."""
        if self.marker is None:
            return 0
        most = min(end, MARKER_BYTES - 1)
        return next((n for n in range(most, 0, -1) if self._buffer[end - n : end] == self.marker[:n]), 0)

    def _opens(self, kind: int, payload: bytes) -> bool:
        """Only a HELLO that repeats the marker opens a session: late bytes of an older client may come in between."""
        return kind == HELLO and self.marker is not None and self.marker.hex().encode() in payload

    def _broken(self, why: str) -> int:
        if self._strict and self._found:
            raise BrokenFrame(why)
        self._drop(1, skipped=1)
        return 1

    def _drop(self, n: int, *, skipped: int = 0) -> None:
        del self._buffer[:n]
        self._searched = max(0, self._searched - n)
        self.skipped_bytes += skipped
