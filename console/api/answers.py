"""Answers that may be large: written as JSON piece by piece, so that nobody else waits for one and no second copy of it
is held. Small ones go back to ninja as models."""

import asyncio
import codecs
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from pydantic import BaseModel

from sandboxes.outputs import Kept

WHOLE_BYTES = 1 << 18
PIECE_CHARACTERS = 1 << 16
JSON = "application/json; charset=utf-8"


async def large(answer: BaseModel, *, size_bytes: int) -> HttpResponseBase:
    """`size_bytes`: about how much text is in it."""
    if size_bytes <= WHOLE_BYTES:
        return HttpResponse(answer.model_dump_json().encode(), content_type=JSON)
    return StreamingHttpResponse(_paced(answer.model_dump(mode="json")), content_type=JSON)


async def printed(answer: BaseModel, **texts: Kept) -> HttpResponseBase:
    """`answer` with what a command printed as its fields `texts`: read, made text and made JSON as it is sent, because
    10 MiB of each would otherwise be held three times over. Their place in it is empty."""
    if sum(kept.size_bytes for kept in texts.values()) <= WHOLE_BYTES:
        if any(kept.size_bytes for kept in texts.values()):
            answer = answer.model_copy(update=await asyncio.to_thread(_read, texts))
        return HttpResponse(answer.model_dump_json().encode(), content_type=JSON)
    return StreamingHttpResponse(_paced(answer.model_dump(mode="json") | texts), content_type=JSON)


def _read(texts: Mapping[str, Kept]) -> dict[str, str]:
    return {name: kept.read().decode(errors="replace") for name, kept in texts.items()}


async def _paced(value: Any) -> AsyncIterator[bytes]:
    pieces = _pieces(value)
    while piece := await asyncio.to_thread(next, pieces, ""):  # it may read a file, and a client may take all at once
        yield piece.encode()


def _pieces(value: Any) -> Iterator[str]:
    """The JSON of `value` in pieces; only texts are ever large."""
    if isinstance(value, dict):
        for before, (name, item) in zip(_separators("{"), value.items(), strict=False):
            yield f"{before}{json.dumps(name)}:"
            yield from _pieces(item)
        yield "}" if value else "{}"
    elif isinstance(value, str | Kept):
        yield '"'
        for piece in _decoded(value) if isinstance(value, Kept) else _cut(value):
            if piece:  # an empty one would end the answer
                yield json.dumps(piece, ensure_ascii=False)[1:-1]
        yield '"'
    else:
        yield json.dumps(value)


def _cut(value: str) -> Iterator[str]:
    return (value[at : at + PIECE_CHARACTERS] for at in range(0, len(value), PIECE_CHARACTERS))


def _decoded(kept: Kept) -> Iterator[str]:
    """As `text` would have it, a piece at a time: a character that two pieces share is no U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in kept.pieces():
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _separators(first: str) -> Iterator[str]:
    yield first
    while True:
        yield ","


async def text(content: bytes) -> str:
    """What commands print, as text: bytes that are no UTF-8 become U+FFFD; NUL and all else survive."""
    if len(content) <= WHOLE_BYTES:
        return content.decode(errors="replace")
    return await asyncio.to_thread(content.decode, errors="replace")
