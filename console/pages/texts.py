"""Texts of actions as people can read them: fetched where they are kept, checked against their hashes.

Must never hand out a part of a text: what is too long for a page, or no text, says so.
"""

import codecs
import hashlib
from collections.abc import Mapping
from typing import Any

from approvals import payloads
from approvals.digest import INLINE_BYTES

from .words import number

DRAWN_BYTES = 2 << 20  # beyond this a page is too heavy to read in


class Undrawable(Exception):
    """A text that cannot be shown whole; the message says why, for the card."""


def text_of(value: str | Mapping[str, Any]) -> str:
    """A text argument, fetched where it is kept by its hash and checked against it. Raises Undrawable."""
    size = len(value.encode()) if isinstance(value, str) else int(value["size"])
    if size > DRAWN_BYTES:
        raise Undrawable(
            f"{number(size, 'byte')} are too many for a page, so nobody can read all of it. It can only be denied."
        )
    if isinstance(value, str):
        return value
    content = payloads.content(value)
    if hashlib.sha256(content).hexdigest() != value["sha256"]:
        raise Undrawable("What is kept on disk is not what was proposed. It can only be denied.")
    return content.decode()


def kept_text(sha256: str | None) -> str | None:
    """The text that would be replaced, where it was kept and is one that can be shown."""
    try:
        old = payloads.content({"sha256": sha256}) if sha256 else None
        return old.decode() if old is not None and len(old) <= DRAWN_BYTES and b"\0" not in old else None
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def is_text(reference: Mapping[str, Any]) -> bool:
    """False only for what no editor would show: not UTF-8, or with NUL in it, where it is too long to have each drawn.
    Large texts are texts."""
    is_short = int(reference["size"]) <= INLINE_BYTES
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with payloads.path(reference).open("rb") as file:
            while chunk := file.read(1 << 20):
                if "\0" in decoder.decode(chunk) and not is_short:
                    return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
