"""Marks: which stretch of a text is written in which ink of the sheet. Decoration only, over what is drawn anyhow.

Must never add, drop or move a character: whoever takes the markup off has the drawing without marks.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from django.utils.html import escape


class Mark(NamedTuple):
    """`[start, end)` of a text in an ink: classes of the sheet. Marks of a text are in order and do not overlap."""

    start: int
    end: int
    ink: str


def inked(text: str, start: int, marks: Sequence[Mark]) -> str:
    """`text`, which stands at `start` of the marked text, as HTML."""
    return "".join(_inked(text, start, marks)) if marks else escape(text)


def _inked(text: str, start: int, marks: Sequence[Mark]) -> Iterator[str]:
    at, end = start, start + len(text)
    number = bisect_right(marks, start, key=lambda mark: mark.end)
    while number < len(marks) and marks[number].start < end:
        mark = marks[number]
        begin, over = max(mark.start, start), min(mark.end, end)
        yield escape(text[at - start : begin - start])
        tag = "b" if mark.ink == "prog" else "span"
        yield f'<{tag} class="{mark.ink}">{escape(text[begin - start : over - start])}</{tag}>'
        at, number = over, number + 1
    yield escape(text[at - start :])


def joined(marks: Iterable[Mark]) -> list[Mark]:
    """Neighbours of one ink as one; none without ink."""
    found: list[Mark] = []
    for mark in marks:
        if not mark.ink or mark.start == mark.end:
            continue
        if found and found[-1].end == mark.start and found[-1].ink == mark.ink:
            found[-1] = found[-1]._replace(end=mark.end)
        else:
            found.append(mark)
    return found
