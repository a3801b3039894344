"""The one file that a command would run, where its words alone say which: its first word, or an interpreter's script.

A table, from the manuals, of how each interpreter is told its script. Must never name a file when an option before it
is not understood: that could make another one, or none, the script.
"""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import plain
from .never import SYSTEM_FOLDERS
from .reading import Read

FIRST_LINE, FIRST_LINE_BYTES = "#!", 127
"""How a first line begins that names what reads the file, and what the kernel reads of it."""


@dataclass(frozen=True)
class Script:
    """`argv` as it runs; `at`: which of its words names the file; `program`: what reads it, "" when the file says;
    `span`: where that word stands in the line, None without one."""

    argv: tuple[str, ...]
    at: int
    program: str
    span: slice | None = field(default=None, compare=False)

    @property
    def word(self) -> str:
        return self.argv[self.at]


@dataclass(frozen=True)
class _Options:
    """`letters` take no value; one of `values`, the last in its word, takes the next; `commands` are no files."""

    letters: str = ""
    values: str = ""
    words: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()


_KNOWN = {
    # python(1): not -c, -m, -i, -X, nor a dash
    "python": _Options("bBdEIOPqsSuvx", "W"),
    # bash(1), dash(1): not -c, -s, -i, -l, nor a file that is read first
    "bash": _Options("efuvxnhbmBCEHPT", "o", frozenset(("--norc", "--noprofile", "--posix", "--verbose"))),
    "sh": _Options("efuvxnabmC", "o"),
    "dash": _Options("efuvxnabmC", "o"),
    # node(1): not -r, --import, --loader, --env-file, --test
    "node": _Options(
        words=frozenset(
            "--no-warnings --trace-warnings --no-deprecation --trace-deprecation --throw-deprecation --use-strict"
            " --enable-source-maps".split()
        ),
        commands=frozenset(("inspect", "debug")),
    ),
    # perlrun(1), ruby(1): no code, no modules, no other folder, no search along PATH
    "perl": _Options("wWtTUc"),
    "ruby": _Options("w"),
}
_VERSIONED = re.compile(r"(python|perl|ruby)[0-9]+(?:\.[0-9]+)*")


def script_in(read: Read) -> Script | None:
    """Of a single plain command; None for whatever else it may run. Never raises."""
    found = likely_script(read)
    plain_ones = read.plain if found else None
    return found if found and plain_ones and [each.argv for each in plain_ones] == [found.argv] else None


def likely_script(read: Read) -> Script | None:
    """By the cheapest reader alone: None for most lines, and where `script_in` finds one, that one."""
    argv, spans = _only_command(read)
    folder, name = posixpath.split(argv[0]) if argv else ("", "")
    if folder and folder not in SYSTEM_FOLDERS:
        return Script(argv, 0, "", spans[0])
    known = _options_of(name)
    at = _first_operand(argv, known) if known else 0
    return Script(argv, at, name, spans[at]) if at else None


def program_of(text: str) -> str:
    """What reads a file that begins so, when it is run by its name or its interpreter obeys its first line; "" when
    that is not one that is known here, with options that are."""
    first = text.partition("\n")[0]
    if FIRST_LINE not in first:
        return "bash"  # which started it, and reads itself what the kernel does not know
    if not first.startswith(FIRST_LINE) or len(first.encode()) > FIRST_LINE_BYTES:
        return ""  # perl obeys it after blanks, a colon or a byte order mark, and all of one that the kernel cuts
    words = re.findall(r"[^ \t]+", first[len(FIRST_LINE) :])
    folder, name = posixpath.split(words[0]) if words else ("", "")
    if name == "env" and len(words) > 1:
        words = words[1:]
        name = words[0]
    known = _options_of(name)
    is_known = folder in SYSTEM_FOLDERS and known is not None and all(_is_flag(word, known) for word in words[1:])
    return name if is_known else ""


def _only_command(read: Read) -> tuple[tuple[str, ...], Sequence[slice | None]]:
    """Its words, and where each stands in the line. None of either when there are more commands, or none."""
    if read.line is None:
        return read.argv, [None] * len(read.argv)
    try:
        found = plain.commands(read.line)
    except plain.NotPlain:
        return (), ()
    return (found.argvs[0], found.spans[0]) if len(found.argvs) == 1 else ((), ())


def _options_of(name: str) -> _Options | None:
    versioned = _VERSIONED.fullmatch(name)
    return _KNOWN.get(versioned[1] if versioned else name)


def _first_operand(argv: Sequence[str], known: _Options) -> int:
    """Where it is; 0 when there is none, or that cannot be told."""
    at = 1
    while at < len(argv) and argv[at].startswith(("-", "+")):
        word = argv[at]
        at += 1
        if word == "--":
            break
        if _takes_next(word, known):
            at += 1
        elif not _is_flag(word, known):
            return 0
    return at if at < len(argv) and argv[at] and argv[at] not in known.commands else 0


def _takes_next(word: str, known: _Options) -> bool:
    return len(word) > 1 and word[0] == "-" and word[-1] in known.values and set(word[1:-1]) <= set(known.letters)


def _is_flag(word: str, known: _Options) -> bool:
    return word in known.words or (len(word) > 1 and word[0] == "-" and set(word[1:]) <= set(known.letters))
