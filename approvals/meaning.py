"""What a command comes to, for the cool-down alone: two calls that differ only in blanks, a comment at the end, how
their directory is written, their time or whether they run in the background are one that was denied; so are two whose
scripts differ only in blanks at ends of lines and in empty lines at their end.

Errs towards the same, which denies. Must never stand for the digest: what is approved is approved byte for byte.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import payloads
from .models import Action

LEFT_OUT = frozenset({"timeout_s", "background"})
MOST_BYTES = 256 << 10  # a longer text is the same only byte for byte
_COMMENT_AT_END = re.compile(r"(?:^|[ \t;\n])#[^'\"`)}\\\n]*\Z")
_EDGES = " \t\r\n;"


@dataclass(frozen=True)
class Meaning:
    """`call`: compared with `==`. `script`: the one that it is bound to."""

    call: Any
    script: Mapping[str, Any] | None

    def is_denied_with(self, denied: Action) -> bool:
        """A side that is bound to no script may be any text: one that is too long to be bound, or is away for now."""
        return any(
            self.call == each.call and (None in (self.script, each.script) or self._has_same_script(each))
            for each in _all_of(denied)
        )

    def is_approved_with(self, approved: Action) -> bool:
        return any(self.call == each.call and self._has_same_script(each) for each in _all_of(approved))

    def _has_same_script(self, other: "Meaning") -> bool:
        """With another text it is another command, however it is written: what was denied is what that text does,
        wherever a link leads to it."""
        one, two = self.script, other.script
        if one is None or two is None:
            return one is two
        return one["sha256"] == two["sha256"] or _text(one) == _text(two)


def of(arguments: Mapping[str, Any], profile: Mapping[str, Any], script: Mapping[str, Any] | None) -> Meaning:
    said = {name: value for name, value in arguments.items() if name not in LEFT_OUT}
    if "command" in said:
        said["command"] = _line(said["command"])
    if isinstance(cwd := said.get("cwd"), str):
        said["cwd"] = "/" + posixpath.normpath(cwd).lstrip("/")
    return Meaning((said, dict(profile)), script)


def _all_of(action: Action) -> Iterator[Meaning]:
    """Of what was decided, and of what its agent had asked for before somebody edited it."""
    yield of(action.arguments, action.profile, action.script)
    if action.edited and (first := action.edits.order_by("at").first()):
        yield of(first.arguments_before, action.profile, first.script_before)


def _text(script: Mapping[str, Any]) -> bytes | str:
    """Not by a pattern, which long runs of blanks would hold up. Its hash when it is kept no more."""
    try:
        content = payloads.content(script)
    except OSError:
        return str(script["sha256"])
    return b"\n".join(line.rstrip() for line in content.split(b"\n")).rstrip()


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
