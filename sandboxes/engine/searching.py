"""`glob` and `grep`, over the channel.

Owns their requests, and the reading of what comes back: hostile input, checked field by field. Must never hold more of
an answer than ANSWER_BYTES.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from sandboxes.runner import frames

from . import answers
from .link import Link
from .shapes import GlobRequest, GrepRequest
from .transfers import Incoming

WORK = "/work"
"""Paths below are told from here on, and .gitignore files count from here on."""
ANSWER_BYTES = 1 << 20
ENTRIES = 1000
"""The most that a page may have; and `around` each match, CONTEXT lines before and after."""
CONTEXT = 20
LEFT_OUT = 20
_ENTRIES_OF = {"lines": "matches", "files": "paths", "count": "counts"}


async def glob(link: Link, request: GlobRequest) -> dict[str, Any]:
    found = await _asked(link, {"op": "glob", "base": WORK, **asdict(request)})
    return {"paths": _list(found, "paths", _path), **_summary(found)}


async def grep(link: Link, request: GrepRequest) -> dict[str, Any]:
    found = await _asked(link, {"op": "grep", "base": WORK, **asdict(request)})
    name = _ENTRIES_OF[request.mode]
    read: dict[str, Callable[[Any], Any]] = {"matches": _match, "paths": _path, "counts": _count}
    matches = _list(found, name, read[name])
    if not request.context and name == "matches":
        for match in matches:
            del match["before"], match["after"]
    return {
        name: matches,
        "files_searched": answers.number(found, "files_searched"),
        **_summary(found),
        "binary": answers.number(found, "binary"),
        "large_left_out": answers.flag(found, "large_left_out"),
    }


async def _asked(link: Link, message: dict[str, Any]) -> dict[str, Any]:
    coming = await Incoming.ask(link, message)
    try:
        content = bytearray()
        async with aclosing(coming.chunks()) as chunks:
            async for chunk in chunks:
                content += chunk
                if len(content) > ANSWER_BYTES:
                    raise frames.BrokenFrame("an answer without an end")
    finally:
        await coming.close()
    return await asyncio.to_thread(_object, content)


def _object(content: bytes | bytearray) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise frames.BrokenFrame("what was found is not JSON") from error
    if type(found) is not dict:
        raise frames.BrokenFrame("what was found is no object")
    return found


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "found": answers.number(found, "found"),
        "at_least": answers.flag(found, "at_least"),
        "incomplete": answers.flag(found, "incomplete"),
        "truncated": answers.flag(found, "truncated"),
        "next": None if found.get("next") is None else answers.number(found, "next"),
        "ignored": answers.number(found, "ignored"),
        "left_out": _list(found, "left_out", _path, most=LEFT_OUT),
        "unreadable": answers.number(found, "unreadable"),
    }


def _list(found: dict[str, Any], name: str, read: Callable[[Any], Any], *, most: int = ENTRIES) -> list[Any]:
    entries = found.get(name)
    if type(entries) is not list or len(entries) > most:
        raise frames.BrokenFrame(f"{name} are none")
    return [read(entry) for entry in entries]


def _path(value: Any) -> str:
    return _text(value)


def _text(value: Any) -> str:
    return answers.text({"text": value}, "text")


def _number(value: Any) -> int:
    return answers.number({"number": value}, "number")


def _count(found: Any) -> dict[str, Any]:
    path, count = _parts(found, 2)
    return {"path": _path(path), "count": _number(count)}


def _match(found: Any) -> dict[str, Any]:
    path, line, column, text, before, after = _parts(found, 6)
    return {
        "path": _path(path),
        "line": _number(line),
        "column": _number(column),
        "text": _text(text),
        "before": _list({"before": before}, "before", _line, most=CONTEXT),
        "after": _list({"after": after}, "after", _line, most=CONTEXT),
    }


def _line(found: Any) -> list[Any]:
    number, text = _parts(found, 2)
    return [_number(number), _text(text)]


def _parts(found: Any, count: int) -> list[Any]:
    if type(found) is not list or len(found) != count:
        raise frames.BrokenFrame("an entry that is none")
    return found
