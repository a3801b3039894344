"""Markup for text that agents or sandboxes made. What is drawn how is decided in `approvals.draw`; here it gets spans.

In the document, read without `.glyph` and `.note`, a drawn text is `approvals.draw.plain` of it: tabs and blanks stay
themselves (the sheet paints arrows and dots), so that reading, searching and copying give what would run. A `sheet`
that fails to draw raises, and its card cannot be approved; a name or a reason that fails is a placeholder.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence

from django.utils.safestring import SafeString, mark_safe

from approvals import draw
from approvals.draw import Piece

from . import colours
from .marks import Mark, inked

_log = logging.getLogger(__name__)
_MARKUP: dict[str, Callable[[str], str]] = {
    "tab": lambda text: f'<span class="tab">{text}</span>',
    "blank": lambda text: f'<span class="trail" title="{len(text)} spaces">{text}</span>',
    "hidden": lambda text: f'<span class="esc">{draw.token(text)}</span>',
    "lookalike": lambda text: f'<span class="glyph bad">{text}</span><span class="esc">{draw.token(text)}</span>',
    "foreign": lambda text: f'<span class="glyph">{text}</span><span class="point">{draw.token(text)}</span>',
}


def line_markup(line: str) -> str:
    """One line, without its newline. Raises what drawing raises."""
    return _marked_up(draw.pieces(line))


def _marked_up(pieces: list[Piece], start: int = 0, marks: Sequence[Mark] = ()) -> str:
    """`marks` are on plain text alone: what is hidden or passes for something else keeps its own."""
    html = []
    for piece in pieces:
        html.append(inked(piece.text, start, marks) if piece.kind == "text" else _MARKUP[piece.kind](piece.text))
        start += len(piece.text)
    return "".join(html)


def inline(text: object) -> SafeString:
    """For names, paths and whatever holds one line: a newline in it is a token."""
    return _or_placeholder(str(text), newline='<span class="esc">⟨U+000A⟩</span>')


def address(text: object) -> SafeString:
    """As `inline`, for an e-mail address: it may wrap behind its @ and its dots."""
    return mark_safe(re.sub(r"([@.])", r"\1<wbr>", inline(text)))  # neither stands in our own markup


def block(text: object) -> SafeString:
    """For reasons: lines stay lines."""
    return _or_placeholder(str(text))


def words(text: object) -> SafeString:
    """For messages of ours, in which names of others may stand: what is in `backticks` is code."""
    return mark_safe(re.sub(r"`([^`<>\n]+)`", r"<code>\1</code>", block(text)))


def output(text: str) -> SafeString:
    """For what a sandbox printed: in its colours, as far as they hide nothing."""
    return _or_placeholder(*colours.read(text))


def _or_placeholder(text: str, marks: Sequence[Mark] = (), newline: str = "\n") -> SafeString:
    # A name that fails to draw must not take the page down with it, and with the page the button that denies.
    try:
        return mark_safe(newline.join(_lines(text, marks)))
    except Exception:
        _log.exception("Drawing a text failed")
        return mark_safe('<span class="esc">not drawn</span>')


def _lines(text: str, marks: Sequence[Mark]) -> Iterator[str]:
    start = 0
    for line in text.split("\n"):
        yield _marked_up(draw.pieces(line), start, marks)
        start += len(line) + 1


def sheet(text: str, marks: Sequence[Mark] = ()) -> SafeString:
    """The numbered lines of a sheet: all of them, whole. Each `.ln` ends in its own newline."""
    return mark_safe("".join(_numbered(draw.lines(text), marks)))


def _numbered(lines: list[str], marks: Sequence[Mark]) -> Iterator[str]:
    after_gap, start = False, 0
    gaps = _gaps(lines)
    for at, line in enumerate(lines):
        if at in gaps:
            yield f'<span class="note">{gaps[at]} blank lines follow</span>'
        content = line.removesuffix("\n")
        pieces = draw.pieces(content)
        blank = not content.strip(" \t")
        marked = any(piece.kind in ("hidden", "lookalike") for piece in pieces) or (after_gap and not blank)
        drawn = _marked_up(pieces, start, marks)
        yield f'<span class="ln{" marked" if marked else ""}">{drawn}{line[len(content) :]}</span>'
        start += len(line)
        after_gap = at in gaps or (after_gap and blank)


def _gaps(lines: list[str]) -> dict[int, int]:
    """Where a run of blank lines begins that is long enough to push the rest out of sight, and how long it is."""
    found: dict[int, int] = {}
    start = None
    for at, line in enumerate([*lines, "end"]):
        if not line.strip(" \t\n"):
            start = at if start is None else start
        elif start is not None:
            if at - start >= draw.BLANK_LINES:
                found[start] = at - start
            start = None
    return found
