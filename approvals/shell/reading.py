"""A command as data: what is plain in it, why not, and every program that it may reach.

Each part is worked out when it is first asked for: a call that no rule is about costs no second parser. Must never
raise: a fault in here is a line that is not plain.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from . import formatter, plain, reach, tree
from .scan import Command

DISAGREE = "Two parsers read it in different ways."
FAILED = "It could not be read."
EMPTY = "It has no command."
TOO_LONG = "It is longer than 8 KiB."
ODD = "It has characters other than printable ASCII, tabs and line ends."
REMEMBERED = 64  # each at most a thousand commands
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Simple:
    """One program with its words, as they will be handed to it."""

    argv: tuple[str, ...]


@dataclass(frozen=True)
class Read:
    """`line` of a shell, or the `argv` of a call without one."""

    line: str | None = None
    argv: tuple[str, ...] = ()
    _known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)  # of two threads the later one wins

    @property
    def plain(self) -> tuple[Simple, ...] | None:
        """The simple commands when that is all it is; None means that no rule can allow it."""
        return self._judged[0]

    @property
    def why_not(self) -> str:
        """One sentence for the card; empty when plain."""
        return self._judged[1]

    @property
    def reached(self) -> tuple[tuple[str, ...], ...]:
        """Every argv that it may run, as far as that can be told: for rules that deny."""
        return tuple(dict.fromkeys(command.argv for command in self.commands))

    @property
    def commands(self) -> tuple[Command, ...]:
        if "commands" not in self._known:
            self._known["commands"] = self._commands()
        found: tuple[Command, ...] = self._known["commands"]
        return found

    def _commands(self) -> tuple[Command, ...]:
        try:
            return reach.of_argv(self.argv) if self.line is None else reach.of_line(self.line)
        except Exception:
            _log.exception("Looking for the programs of a command failed; it asks")
            return ()

    @property
    def _judged(self) -> tuple[tuple[Simple, ...] | None, str]:
        if "judged" in self._known:
            known: tuple[tuple[Simple, ...] | None, str] = self._known["judged"]
            return known
        judged = self._judge()
        self._known["unsure"] = judged[1] in (formatter.UNCHECKED, FAILED)
        if not self.is_unsure:
            self._known["judged"] = judged
        return judged

    @property
    def is_unsure(self) -> bool:
        """Whether it could not be judged when that was last asked for, and may be the next time."""
        return bool(self._known.get("unsure"))

    def _judge(self) -> tuple[tuple[Simple, ...] | None, str]:
        try:
            return tuple(map(Simple, self._argvs())), ""
        except plain.NotPlain as why:
            return None, str(why)
        except Exception:
            _log.exception("Reading a command failed; it asks")
            return None, FAILED

    def _argvs(self) -> list[tuple[str, ...]]:
        if self.line is None:
            _check_words(self.argv)
            return [self.argv]
        found = plain.commands(self.line)
        if tree.commands(self.line, found.ends, found.blanks) != found:
            raise plain.NotPlain(DISAGREE)
        if formatter.commands(self.line) != found:
            raise plain.NotPlain(DISAGREE)
        return found.argvs


def read(line: str) -> Read:
    """What is known of a line is kept while it is among the last few dozen: several ask, one after the other."""
    return _remembered(line) if len(line) <= plain.LINE_BYTES else Read(line=line)


@lru_cache(maxsize=REMEMBERED)
def _remembered(line: str) -> Read:
    return Read(line=line)


def read_argv(argv: Sequence[str]) -> Read:
    return Read(argv=tuple(argv))


def _check_words(argv: tuple[str, ...]) -> None:
    if not argv or not argv[0]:
        raise plain.NotPlain(EMPTY)
    if sum(len(word) + 1 for word in argv) > plain.LINE_BYTES:
        raise plain.NotPlain(TOO_LONG)
    if any(plain.ODD.search(word) for word in argv):
        raise plain.NotPlain(ODD)
