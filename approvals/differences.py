"""What an edit changed in a call's texts, as a unified difference for its agent. Pure."""

import difflib
from collections.abc import Mapping
from typing import Any

from . import payloads

TEXTS = ("command", "content", "path")  # what an edit may change


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return "".join(
        _of(name, text_of(before[name]), text_of(after[name]))
        for name in TEXTS
        if name in before and before[name] != after.get(name)
    )


def _of(name: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"{name} as proposed", f"{name} as run"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end\n" for line in lines)


def text_of(value: str | Mapping[str, Any]) -> str:
    """A text argument, fetched where it is kept."""
    return value if isinstance(value, str) else payloads.content(value).decode()
