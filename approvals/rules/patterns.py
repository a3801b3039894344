"""What a pattern matches: words of a command, or a path. Pure.

A pattern of `run` is written as a shell would read it and means what `approvals.shell` says. Of a path: `*` and `?`
stop at `/`, `**` does not; it begins with `/`. Names are compared as protected names are, and an allowing rule
compares them as they stand, too: what only looks the same it does not allow.
"""

import posixpath
import re
import shlex
from collections.abc import Sequence
from functools import lru_cache

from approvals import shell
from approvals.paths import fold

PATTERN_CHARS = 500
_ANY = re.compile(r"\*\*|\*|\?")
_WILD = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def check(tool: str, pattern: str, *, allows: bool) -> str:
    """Why it cannot be one, as the end of `A pattern …`; empty when it can."""
    if not pattern.strip() or len(pattern) > PATTERN_CHARS:
        return f"has 1 to {PATTERN_CHARS} characters"
    if not pattern.isascii() or not pattern.isprintable():
        return "is printable ASCII on one line"
    if tool != "run":
        plain = pattern.startswith("/") and posixpath.normpath(pattern) == pattern and pattern != "/"
        return "" if plain and not pattern.startswith("//") else "is a full path, such as /work/docs/**"
    try:
        named = words(pattern)
    except ValueError:
        return "is written as a shell would read it; a quote is not closed"
    if not named:
        return "names a program"
    why = shell.pattern_fault(named) if allows else ""
    return f"cannot be this: {why[:1].lower()}{why[1:].rstrip('.')}" if why else ""


@lru_cache(maxsize=4096)
def words(pattern: str) -> tuple[str, ...]:
    return tuple(shlex.split(pattern))


def allows_command(pattern: str, argv: Sequence[str]) -> bool:
    return shell.allows(words(pattern), argv)


def names_command(pattern: str, argv: Sequence[str]) -> bool:
    """For what tightens: a program is meant wherever it lies, its options in any order."""
    return shell.forbids(words(pattern), argv)


def allows_path(pattern: str, path: str) -> bool:
    """`..` could lead anywhere."""
    return posixpath.normpath(path) == path and bool(_compiled(pattern, False).fullmatch(path))


def names_path(pattern: str, path: str) -> bool:
    """Also a folder above it: what lies below a folder that is denied is denied."""
    parts = folded(posixpath.normpath(path)).split("/")
    upto = ("/".join(parts[:end]) for end in range(2, len(parts) + 1))
    return any(_compiled(pattern, True).fullmatch(each) for each in upto)


def folded(path: str) -> str:
    """Its names as protected ones are compared."""
    return "/" + "/".join(part for each in path.split("/") if each for part in fold(each).split("/") if part)


@lru_cache(maxsize=4096)
def _compiled(pattern: str, folded: bool) -> re.Pattern[str]:
    text, at, body = _folded_pattern(pattern) if folded else pattern, 0, ""
    for wild in _ANY.finditer(text):
        body += re.escape(text[at : wild.start()]) + _WILD[wild[0]]
        at = wild.end()
    return re.compile(body + re.escape(text[at:]), re.DOTALL)


def _folded_pattern(pattern: str) -> str:
    return "/" + "/".join(fold(part) for part in pattern.split("/") if part)
