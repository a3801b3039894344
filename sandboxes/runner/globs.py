"""Patterns for names of files: `*`, `?`, `[…]` within a name, `**` for any number of directories, `{a,b}`.

Owns their meaning, for `glob`, for the file filter of `grep` and for .gitignore. Must never take more time than the
length of the pattern times that of the path: the patterns are an agent's, or lie in a repository that nobody read.
"""

import re
from collections.abc import Iterator, Sequence

PATTERN_CHARACTERS = 1000
ALTERNATIVES = 200
_MANY = None
"""A part `**`."""
_STAR = object()


class BadPattern(ValueError):
    """A sentence that begins with what is wrong."""


class Glob:
    """One pattern without braces, as its parts between slashes. `**` as a part stands for any number of parts."""

    __slots__ = ("parts",)

    def __init__(self, pattern: str) -> None:
        parts = [_MANY if part == "**" else re.compile(translated(part)) for part in cut(pattern)]
        if parts and parts[-1] is _MANY:  # what lies below, not the directory itself
            parts.append(re.compile(translated("*")))
        self.parts: Sequence[re.Pattern[str] | None] = parts

    def matches(self, path: Sequence[str]) -> bool:
        """Back to the last `**` alone: what an earlier one took need never be taken back."""
        at = part = 0
        again: tuple[int, int] | None = None
        while at < len(path):
            is_over = part == len(self.parts)
            wanted = None if is_over else self.parts[part]
            if not is_over and wanted is _MANY:
                part += 1
                again = (part, at)
            elif wanted is not None and wanted.fullmatch(path[at]):
                part, at = part + 1, at + 1
            elif again is not None:
                part, at = again[0], again[1] + 1
                again = (part, at)
            else:
                return False
        return all(rest is _MANY for rest in self.parts[part:])


class Globs:
    """An agent's pattern. Without a slash it is for the name, at any depth. Raises BadPattern."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > PATTERN_CHARACTERS or "\0" in pattern or not pattern.strip("/"):
            raise BadPattern(f"a pattern has 1 to {PATTERN_CHARACTERS} characters, such as src/**/*.py")
        self._names: list[re.Pattern[str]] = []
        self._paths: list[Glob] = []
        for each in alternatives(pattern):
            self._add(each)

    def _add(self, pattern: str) -> None:
        is_path = "/" in pattern
        if pattern.endswith("/"):
            raise BadPattern("a pattern is for files: what is in a directory is d/*, all below it d/**")
        while pattern.startswith("./"):
            pattern = pattern[2:]
        if pattern.startswith("/") or ".." in cut(pattern):
            raise BadPattern("a pattern is relative to `path`: name the directory there")
        if is_path:
            self._paths.append(Glob(pattern))
        else:
            self._names.append(re.compile(translated(pattern)))

    def matches(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        if any(each.fullmatch(name) for each in self._names):
            return True
        return bool(self._paths) and any(each.matches(path.split("/")) for each in self._paths)


def cut(pattern: str) -> list[str]:
    """At each slash, which nothing escapes and no class contains."""
    return [part for part in pattern.split("/") if part]


def translated(part: str) -> str:
    """As a regular expression in which each `*` but the last is taken as short as it can be, and never tried again."""
    pieces = [""]
    for token in _tokens(part):
        if token is not _STAR:
            pieces[-1] += str(token)
        elif len(pieces) == 1 or pieces[-1]:
            pieces.append("")
    if len(pieces) == 1:
        return f"(?s:{pieces[0]})"
    first, *middle, last = pieces
    return f"(?s:{first}" + "".join(f"(?>.*?{piece})" for piece in middle) + f".*{last})"


def _tokens(part: str) -> Iterator[object]:
    at = 0
    while at < len(part):
        character = part[at]
        at += 1
        if character == "*":
            yield _STAR
        elif character == "?":
            yield "."
        elif character == "[" and (found := _class(part, at)) is not None:
            token, at = found
            yield token
        elif character == "\\" and at < len(part):
            yield re.escape(part[at])
            at += 1
        else:
            yield re.escape(character)


def _class(part: str, at: int) -> tuple[str, int] | None:
    """From behind the `[`: the class, and where it ends. None when it never ends: then it is a bracket."""
    negated = at < len(part) and part[at] in "!^"
    at += negated
    members: list[str] = []
    start = at
    while at < len(part) and (part[at] != "]" or at == start):
        at += part[at] == "\\" and at + 1 < len(part)
        members.append(part[at])
        at += 1
        if at + 1 < len(part) and part[at] == "-" and part[at + 1] != "]":
            at += 1 + (part[at + 1] == "\\" and at + 2 < len(part))
            members[-1] += part[at]
            at += 1
    if at >= len(part):
        return None
    ranges = [each for each in members if len(each) == 1 or each[0] <= each[1]]
    inside = "".join("-".join(re.escape(character) for character in each) for each in ranges)
    if not inside:
        return ("." if negated else "(?!)"), at + 1
    return f"[{'^' if negated else ''}{inside}]", at + 1


def alternatives(pattern: str) -> list[str]:
    """Every way to choose in its braces. Raises BadPattern for a brace without its end, and for too many ways."""
    done, open_ = [], [pattern]
    while open_:
        pattern = open_.pop()
        if (found := _first_brace(pattern)) is None:
            done.append(pattern)
        else:
            before, choices, after = found
            open_.extend(before + choice + after for choice in reversed(choices))
        if len(done) + len(open_) > ALTERNATIVES:
            raise BadPattern(f"its braces stand for more than {ALTERNATIVES} patterns; use fewer")
    return done


def _first_brace(pattern: str) -> tuple[str, list[str], str] | None:
    depth = at = 0
    begin = start = -1
    choices: list[str] = []
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 1
        elif character == "[" and (found := _class(pattern, at + 1)) is not None:
            at = found[1] - 1
        elif character == "{":
            depth += 1
            if depth == 1:
                begin, start = at, at + 1
        elif character in ",}" and depth == 1:
            choices.append(pattern[start:at])
            start = at + 1
            if character == "}":
                return pattern[:begin], choices, pattern[at + 1 :]
        elif character == "}" and depth:
            depth -= 1
        at += 1
    if depth:
        raise BadPattern("a brace is not closed; write \\{ for the character itself")
    return None
