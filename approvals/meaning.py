"""What a command comes to, for the cool-down alone: two calls that differ only in blanks, a comment at the end, how
their directory is written, their time or whether they run in the background are one that was denied.

Errs towards the same, which denies. Must never stand for the digest: what is approved is approved byte for byte.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import payloads
from .models import Action

LEFT_OUT = frozenset({"timeout_s", "background"})
MOST_BYTES = 256 << 10  # a longer text is the same only byte for byte
_COMMENT_AT_END = re.compile(r"(?:^|[ \t;\n])#[^'\"`)}\\\n]*\Z")
_EDGES = " \t\r\n;"


def of(arguments: Mapping[str, Any], profile: Mapping[str, Any], script: Mapping[str, Any] | None) -> Any:
    """Compared with `==`. With another script it is another command, however it is written: what was denied is what
    that one's text does."""
    said = {name: value for name, value in arguments.items() if name not in LEFT_OUT}
    if "command" in said:
        said["command"] = _line(said["command"])
    if isinstance(cwd := said.get("cwd"), str):
        said["cwd"] = "/" + posixpath.normpath(cwd).lstrip("/")
    return said, dict(profile), script and script["sha256"]


def all_of(action: Action) -> Iterator[Any]:
    """Of what was decided, and of what its agent had asked for before somebody edited it."""
    yield of(action.arguments, action.profile, action.script)
    if action.edited and (first := action.edits.order_by("at").first()):
        yield of(first.arguments_before, action.profile, first.script_before)


def _line(command: Any) -> Any:
    if isinstance(command, Mapping):
        if command["size"] > MOST_BYTES:
            return dict(command)
        try:
            command = payloads.content(command).decode()
        except (OSError, UnicodeDecodeError):
            return dict(command)
    stripped = command.strip(_EDGES)
    while (less := _COMMENT_AT_END.sub("", stripped).rstrip(_EDGES)) != stripped:
        stripped = less
    return stripped
