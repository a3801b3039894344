"""Answers that may be large: serialised off the loop and sent as they are. Small ones go back to ninja as models."""

import asyncio

from django.http import HttpResponse
from pydantic import BaseModel

ON_LOOP_BYTES = 1 << 18


async def large(answer: BaseModel, *, size_bytes: int, status: int = 200) -> HttpResponse:
    """`size_bytes`: about how much text is in it."""
    content = _json(answer) if size_bytes <= ON_LOOP_BYTES else await asyncio.to_thread(_json, answer)
    return HttpResponse(content, status=status, content_type="application/json; charset=utf-8")


def _json(answer: BaseModel) -> bytes:
    return answer.model_dump_json().encode()


async def text(content: bytes) -> str:
    """What commands print, as text: bytes that are no UTF-8 become U+FFFD; NUL and all else survive."""
    if len(content) <= ON_LOOP_BYTES:
        return content.decode(errors="replace")
    return await asyncio.to_thread(content.decode, errors="replace")
