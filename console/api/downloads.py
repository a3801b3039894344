"""Bytes that go out as they are: which part of them, and under which name.

Owns the headers that keep sandbox bytes from ever being a page of the console's origin.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from posixpath import basename
from typing import Annotated
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Header

from .errors import refusal

_RANGE = re.compile(r"\s*bytes\s*=\s*([0-9]{0,99})\s*-\s*([0-9]{0,99})\s*\Z", re.IGNORECASE)
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ._-]")
NOWHERE = (1 << 53) - 1
"""No file has so many bytes, and a digest can express it."""
BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
RangeHeader = Annotated[
    str | None,
    Header(
        alias="Range", description="One range of bytes, `bytes=0-1023` or `bytes=-500`. Several are answered whole."
    ),
]


@dataclass(frozen=True)
class Part:
    """What `Range` asks for: from `offset` on (below 0: from the end), `limit` bytes; None: to the end."""

    offset: int
    limit: int | None

    def within(self, size: int) -> tuple[int, int] | None:
        """(offset, length) in a content of `size` bytes; None when nothing of it is there."""
        start = max(0, size + self.offset) if self.offset < 0 else self.offset
        length = size - start if self.limit is None else min(self.limit, size - start)
        return (start, length) if length > 0 else None


def part_of(request: HttpRequest, *, etag: str = "") -> Part | None:
    """None: all of it. What is no single range of bytes, or holds only for other bytes than these (`If-Range`), counts
    as not said, as the standard has it."""
    found = _RANGE.match(request.headers.get("Range", ""))
    condition = request.headers.get("If-Range")
    if not found or found[1] == found[2] == "" or (condition is not None and condition.strip() != etag):
        return None
    if not found[1]:
        return Part(-_number(found[2]), None) if _number(found[2]) else Part(NOWHERE, None)
    first, last = _number(found[1]), _number(found[2]) if found[2] else None
    if last is not None and last < first:
        return None
    return Part(first, None if last is None else last - first + 1)


def _number(digits: str) -> int:
    return min(int(digits), NOWHERE)


def whole(name: str, size: int | None, content: AsyncIterator[bytes] | None) -> HttpResponseBase:
    """`size` None: its end alone tells. `content` None: the headers alone, for HEAD."""
    return _of(200, name, size, content)


def partial(name: str, size: int, span: tuple[int, int], content: AsyncIterator[bytes] | None) -> HttpResponseBase:
    offset, length = span
    response = _of(206, name, length, content)
    response.headers["Content-Range"] = f"bytes {offset}-{offset + length - 1}/{size}"
    return response


def nothing_there(name: str, size: int) -> HttpResponseBase:
    response = refusal(f"{name} has {size} bytes, and none where `Range` says.", "range_not_satisfiable")
    response.headers["Content-Range"] = f"bytes */{size}"
    return response


def _of(status: int, name: str, length: int | None, content: AsyncIterator[bytes] | None) -> HttpResponseBase:
    response = StreamingHttpResponse(content, status=status) if content is not None else HttpResponse(status=status)
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": disposition(name),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Accept-Ranges": "bytes",
        **({"Content-Length": str(length)} if length is not None else {}),
    }
    for header, value in headers.items():
        response.headers[header] = value
    return response


def disposition(path: str) -> str:
    """The last part of `path`, twice: for all clients, and exactly (RFC 5987). Nothing in a name ends the header."""
    name = basename(path) or "file"
    exact = quote(name, safe="", errors="surrogateescape")
    return f"attachment; filename=\"{_NOT_PLAIN.sub('_', name)}\"; filename*=UTF-8''{exact}"
