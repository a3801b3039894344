"""Flags of a call: what a reviewer should look at twice. They explain a card; they never lower a verdict.

Of all texts: characters that show nothing or pass for others. Of a command by an agent: what it may do, as far as
`approvals.shell` can tell.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any

from approvals import payloads, shell
from approvals.digest import INLINE_BYTES
from approvals.draw import ends_in_crlf, survey
from console.workspaces.models import Agent

from .toolsets import run

HIDDEN = "hidden_characters"
SURVEY_BYTES = 4 << 20
NOT_PLAIN = re.compile(rb"[^\n\t\x20-\x7e]")


def of(tool: str, arguments: Mapping[str, Any], agent: Agent | None) -> tuple[str, ...]:
    """Nobody looks at a card of a call that is not an agent's."""
    found: set[str] = set()
    for value in _texts(arguments):
        found |= _of_text(value if isinstance(value, payloads.Held) else payloads.hold(value.encode()))
    if tool == "run" and agent:
        found |= {*shell.flags(run.read(arguments))}
    return tuple(sorted(found))


def over(old: bytes, arguments: Mapping[str, Any], flags: tuple[str, ...]) -> tuple[str, ...]:
    """Those of a write that replaces a text: a U+000D that ends a line hides nothing, where each of both ends so."""
    content = arguments["content"]
    held = content if isinstance(content, payloads.Held) else payloads.hold(content.encode())
    if HIDDEN not in flags or max(len(old), held["size"]) > SURVEY_BYTES:
        return flags
    new = held.content.decode(errors="replace")
    if not (ends_in_crlf(old.decode(errors="replace")) and ends_in_crlf(new)):
        return flags
    plain = {**arguments, "content": new.replace("\r\n", "\n")}
    return flags if HIDDEN in of("write", plain, None) else tuple(flag for flag in flags if flag != HIDDEN)


async def read_ahead(tool: str, arguments: Mapping[str, Any], agent: Agent | None) -> None:
    """What rules will ask about a line costs a process of its own: begun here, and not while the one thread that
    writes waits for it."""
    if tool == "run" and agent and agent.mode_of(tool, is_write=False) == "rules" and "command" in arguments:
        await asyncio.to_thread(lambda: run.read(arguments).plain)


def _texts(value: object) -> Iterator[str | payloads.Held]:
    """Also those in words of a command and lines of an edit."""
    if isinstance(value, str | payloads.Held):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


def _of_text(held: payloads.Held) -> set[str]:
    if not any(NOT_PLAIN.search(piece) for piece in held.pieces()):
        return set()
    if held["size"] > SURVEY_BYTES:
        return {"large"}
    content = held.content
    try:
        seen = survey(content.decode())
    except UnicodeDecodeError:
        return {"binary"}
    if b"\0" in content and held["size"] > INLINE_BYTES:  # as the card has it
        return {"binary"}
    return {flag for flag, there in ((HIDDEN, seen.hidden), ("lookalikes", seen.lookalikes)) if there}
