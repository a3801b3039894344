"""What .gitignore files leave out of a search. Works without a repository too; `.ignore` and global files count not.

Owns the rules' meaning, which is git's. Must never read more than RULES_BYTES of one such file: whoever writes them may
be anybody.
"""

import os
import re
from collections.abc import Sequence

from .globs import Glob, translated

FILE_NAME = ".gitignore"
RULES_BYTES, RULES = 64 << 10, 1000


class Rules:
    """Of one .gitignore. The last one that matches decides, so all are kept the other way round."""

    def __init__(self, text: str) -> None:
        self._names: list[tuple[int, bool, bool, str]] = []
        self._paths: list[tuple[int, bool, bool, Glob]] = []
        for number, line in enumerate(text.split("\n")[:RULES]):
            self._add(number, line.removesuffix("\r"))
        self._names.reverse()
        self._paths.reverse()
        self._for_files = _together([rule for rule in self._names if not rule[2]])
        self._for_dirs = _together(self._names)

    def _add(self, number: int, line: str) -> None:
        line = _without_blanks(line)
        if not line or line.startswith("#"):
            return
        if negated := line.startswith("!"):
            line = line[1:]
        only_dirs = line.endswith("/")
        pattern = line.removesuffix("/")
        if "" in pattern.removeprefix("/").split("/"):  # `//` is in no path
            return
        if "/" in pattern:
            self._paths.append((number, negated, only_dirs, Glob(pattern)))
        elif pattern == "**":
            self._names.append((number, negated, only_dirs, translated("*")))
        elif pattern:
            self._names.append((number, negated, only_dirs, translated(pattern)))

    def verdict(self, path: Sequence[str], *, is_dir: bool) -> bool | None:
        """Whether it is left out; None when no rule is about it. `path`: its parts, below this file's directory."""
        number, negated = -1, False
        rules, pattern = self._for_dirs if is_dir else self._for_files
        if pattern is not None and (found := pattern.fullmatch(path[-1])) is not None:
            number, negated = rules[(found.lastindex or 1) - 1][:2]
        for other, other_negated, only_dirs, glob in self._paths:
            if other < number:
                break
            if (is_dir or not only_dirs) and glob.matches(path):
                number, negated = other, other_negated
                break
        return None if number < 0 else not negated


_Names = list[tuple[int, bool, bool, str]]


def _together(rules: _Names) -> tuple[_Names, re.Pattern[str] | None]:
    """One expression for all of them: its first alternative that matches the whole name is the rule."""
    return rules, re.compile("|".join(f"({rule[3]})" for rule in rules)) if rules else None


def _without_blanks(line: str) -> str:
    """At its end, as far as no backslash keeps them."""
    bare = line.rstrip(" ")
    kept = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if kept % 2 and len(bare) < len(line) else bare


class Ignored:
    """The rules that hold in one directory: its own, then those above it."""

    __slots__ = ("_rules", "_depth", "_above")

    def __init__(self, rules: Rules | None, depth: int, above: "Ignored | None") -> None:
        self._rules = rules
        self._depth = depth
        self._above = above

    def leaves_out(self, path: Sequence[str], *, is_dir: bool) -> bool:
        """`path`: its parts, below the directory where the search begins or, above that, where rules begin."""
        level: Ignored | None = self
        while level is not None:
            if level._rules is not None:
                verdict = level._rules.verdict(path[level._depth :], is_dir=is_dir)
                if verdict is not None:
                    return verdict
            level = level._above
        return False


def rules_in(folder: str) -> Rules | None:
    """Of the .gitignore in it, if there is one that is a regular file."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = os.open(os.path.join(folder, FILE_NAME), flags)
    except OSError:
        return None
    try:
        return Rules(os.read(fd, RULES_BYTES).decode("utf-8", "surrogateescape"))
    except (OSError, re.error):
        return None
    finally:
        os.close(fd)
