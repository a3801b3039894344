"""The one way to draw text that agents or sandboxes made: commands, names, labels, paths, reasons, output.

Owns what of a text is drawn as itself and what as a token `⟨U+XXXX⟩`. Pure: `plain` is for logs, exports and answers,
`pieces` is for pages, which only add markup. Must never strip, shorten, reorder or normalise: what is drawn can be
read back exactly (`undrawn`), and what runs is the text, not the drawing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from .characters import is_readable, look_alikes, name

Kind = Literal["text", "foreign", "lookalike", "hidden", "tab", "blank"]

BLANK_RUN = 24  # spaces within a line; indentation and columns stay below it
BLANK_LINES = 4  # this many in a row are announced
_NOT_PLAIN = re.compile(r"[^\n\t\x20-\x7e]")
_NOT_PLAIN_IN_A_LINE = re.compile(r"[^\x20-\x7e]")
_TOKEN = re.compile(r"⟨(?:U\+([0-9A-F]{4,6})|0x([0-9A-F]{2}))⟩")
_ALL_PLAIN = re.compile(r"[\x20-\x7e]*")
_RUNS = re.compile(rf"\t| {{{BLANK_RUN},}}|[\x20-\x7e](?:(?! {{{BLANK_RUN}}})[\x20-\x7e])*|[^\x20-\x7e\t]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of one line and how it is to be drawn. The texts of a line's pieces, joined, are the line."""

    kind: Kind
    text: str


@dataclass(slots=True)
class Survey:
    """What a reader should know before reading: counts of what is easily overlooked."""

    lines: int = 0
    size_bytes: int = 0
    blank_lines: int = 0
    tabs: int = 0
    trailing_blanks: int = 0
    foreign: int = 0
    hidden: Counter[str] = field(default_factory=Counter)
    lookalikes: Counter[str] = field(default_factory=Counter)
    first_lines: dict[str, int] = field(default_factory=dict)


def plain(text: str) -> str:
    """`text` in printable ASCII, newline and tab; each other character as its token. `undrawn` reads it back."""
    return _NOT_PLAIN.sub(lambda found: token(found[0]), text)


def one_line(text: str) -> str:
    """The same for places that hold one line: newline and tab become tokens too."""
    return _NOT_PLAIN_IN_A_LINE.sub(lambda found: token(found[0]), text)


def undrawn(drawn: str) -> str:
    """The text that `plain` or `one_line` drew. A token's brackets are no plain characters, so no text forges one."""
    return _TOKEN.sub(_untoken, drawn)


def token(text: str) -> str:
    """Bytes that are no UTF-8 (decoded with `surrogateescape`) show as bytes, everything else by code point."""
    return "".join(
        f"⟨0x{code - 0xDC00:02X}⟩" if 0xDC80 <= code <= 0xDCFF else f"⟨U+{code:04X}⟩" for code in map(ord, text)
    )


def _untoken(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else chr(0xDC00 + int(found[2], 16))


def lines(text: str) -> list[str]:
    """The lines, each with its own newline; the last one only if the text ends in one. Joined they are the text."""
    found = text.split("\n")
    kept = [line + "\n" for line in found[:-1]]
    return kept + [found[-1]] if found[-1] else kept


def ends_in_crlf(text: str) -> bool:
    """Each line of it, without exception."""
    return bool(text) and all(line.endswith("\r\n") for line in lines(text))


def pieces(line: str) -> list[Piece]:
    """One line, without its newline, in pieces."""
    if _ALL_PLAIN.fullmatch(line) and not line.endswith(" ") and " " * BLANK_RUN not in line:
        return [Piece("text", line)] if line else []
    body = line.rstrip(" \t")
    suspect = look_alikes(line)
    found: list[Piece] = []
    for run in _RUNS.finditer(body):
        found.extend(_drawn_run(run[0], run.start(), suspect))
    return found + [Piece("tab" if char == "\t" else "blank", "".join(run)) for char, run in _blanks(line[len(body) :])]


def _drawn_run(run: str, start: int, suspect: set[int]) -> Iterator[Piece]:
    if run == "\t":
        yield Piece("tab", run)
    elif run.startswith(" " * BLANK_RUN):
        yield Piece("blank", run)
    elif " " <= run[0] <= "~":
        yield Piece("text", run)
    else:
        for kind, chars in groupby(enumerate(run, start), key=lambda at: _kind(at[1], at[0] in suspect)):
            yield Piece(kind, "".join(char for _, char in chars))


def _kind(char: str, suspect: bool) -> Kind:
    if not is_readable(char):
        return "hidden"
    return "lookalike" if suspect else "foreign"


def _blanks(tail: str) -> Iterator[tuple[str, list[str]]]:
    # Each tab is drawn alone, spaces as one run.
    for char, run in groupby(tail):
        if char == "\t":
            yield from (("\t", ["\t"]) for _ in run)
        else:
            yield char, list(run)


def survey(text: str) -> Survey:
    found = Survey(size_bytes=len(text.encode("utf-8", "surrogatepass")))
    for number, line in enumerate(lines(text), 1):
        content = line.removesuffix("\n")
        found.lines = number
        found.blank_lines += not content.strip(" \t")
        for piece in pieces(content):
            _count(found, piece, number)
        found.trailing_blanks += len(content) - len(content.rstrip(" "))
    return found


def _count(found: Survey, piece: Piece, number: int) -> None:
    match piece.kind:
        case "tab":
            found.tabs += len(piece.text)
        case "foreign":
            found.foreign += len(piece.text)
        case "hidden" | "lookalike":
            (found.hidden if piece.kind == "hidden" else found.lookalikes).update(piece.text)
            for char in piece.text:
                found.first_lines.setdefault(char, number)


def named(found: Counter[str], first_lines: dict[str, int], *, limit: int = 6) -> str:
    """`U+202E right-to-left override (line 1), U+200B zero width space (2 times, first in line 3)`."""
    listed = [
        f"{name(char)} ("
        + (f"line {first_lines[char]}" if n == 1 else f"{n} times, first in line {first_lines[char]}")
        + ")"
        for char, n in sorted(found.items(), key=lambda item: first_lines[item[0]])
    ]
    rest = [f"{len(listed) - limit} kinds more"] if len(listed) > limit else []
    return ", ".join(listed[:limit] + rest)
