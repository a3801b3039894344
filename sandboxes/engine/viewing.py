"""Tagged reading and the drafts of edits, over the channel.

Owns the requests of both and of an edit, and the reading of what comes back: hostile input, checked field by field.
Must never hold more of an answer than VIEW_BYTES and DRAFT_BYTES.
"""

import asyncio
import hashlib
import json
import re
from contextlib import aclosing
from typing import Any

from sandboxes.errors import FileError
from sandboxes.runner import frames

from . import answers
from .link import Link
from .shapes import Draft, EditRequest, Form
from .transfers import Incoming

VIEW_BYTES = 2 << 20
DRAFT_BYTES = 8 << 20
EDITS_BYTES = 4 << 20
"""Of the edits as JSON, in ASCII."""
NEWLINES = ("LF", "CRLF", "mixed", "none")
_DATA = re.compile(r"[0-9A-Za-z+/=]*")


async def view(link: Link, path: str, *, offset: int | None, limit: int | None, form: Form) -> dict[str, Any]:
    message = {"op": "view", "path": path, "offset": offset, "limit": limit, "form": form}
    _, content = await _whole(link, message, most=VIEW_BYTES)
    return await asyncio.to_thread(_seen, content, form)


async def draft(link: Link, request: EditRequest) -> Draft:
    info, content = await _whole(link, edit_message("draft", request), packed(request), most=DRAFT_BYTES)
    size = answers.number(info, "old_bytes", most=len(content))
    old, new = content[:size], content[size:]
    found = Draft(
        path=answers.text(info, "path"),
        mode=answers.number(info, "mode", most=0o7777),
        sha256=hashlib.sha256(old).hexdigest(),
        becomes=hashlib.sha256(new).hexdigest(),
        old=old,
        new=new,
        carried=answers.flag(info, "carried"),
    )
    if found.sha256 != answers.sha256(info):
        raise frames.BrokenFrame("a draft of another file than it says")
    return found


def edit_message(op: str, request: EditRequest) -> dict[str, Any]:
    return {
        "op": op, "path": request.path, "version": request.version, "base": request.base, "becomes": request.becomes,
    }  # fmt: skip


def packed(request: EditRequest) -> bytes:
    """Raises FileError when there is too much of it."""
    data = json.dumps(list(request.edits), separators=(",", ":")).encode("ascii")
    if len(data) > EDITS_BYTES:
        detail = f"{request.path}: these edits take {len(data)} bytes; the limit is {EDITS_BYTES}. Send fewer at once."
        raise FileError("bad_edit", detail, path=request.path)
    return data


async def _whole(link: Link, message: dict[str, Any], *attached: bytes, most: int) -> tuple[dict[str, Any], bytes]:
    coming = await Incoming.ask(link, message, *attached)
    try:
        content = bytearray()
        async with aclosing(coming.chunks()) as chunks:
            async for chunk in chunks:
                content += chunk
                if len(content) > most:
                    raise frames.BrokenFrame("an answer without an end")
        return coming.info, bytes(content)
    finally:
        await coming.close()


def _seen(content: bytes, form: Form) -> dict[str, Any]:
    """Blocking, a little: for a thread."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise frames.BrokenFrame("a view that is not JSON") from error
    if type(found) is not dict:
        raise frames.BrokenFrame("a view that is no object")
    head = {
        "path": answers.text(found, "path"),
        "version": answers.version(found),
        "size": answers.number(found, "size"),
        "truncated": answers.flag(found, "truncated"),
        "next": None if found.get("next") is None else answers.number(found, "next"),
    }
    return head | (_text(found) if form == "text" else _bytes(found, form))


def _text(found: dict[str, Any]) -> dict[str, Any]:
    if found.get("newline") not in NEWLINES:
        raise frames.BrokenFrame("no such newline")
    cut = found.get("cut")
    if type(cut) is not list or len(cut) > answers.LINES or not all(type(number) is int for number in cut):
        raise frames.BrokenFrame("cut lines that are none")
    return {
        "line_count": answers.number(found, "line_count"),
        "from": answers.number(found, "from"),
        "to": answers.number(found, "to"),
        "newline": found["newline"],
        "final_newline": answers.flag(found, "final_newline"),
        "bom": answers.flag(found, "bom"),
        "lines": answers.lines(found),
        "cut": cut,
    }


def _bytes(found: dict[str, Any], form: Form) -> dict[str, Any]:
    data = found.get("data")
    if type(data) is not str or not _DATA.fullmatch(data):
        raise frames.BrokenFrame(f"no {form}")
    return {"form": form, "offset": answers.number(found, "offset"), "data": data}
