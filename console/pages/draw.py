"""Markup for text that agents or sandboxes made. What is drawn how is decided in `approvals.draw`; here it gets spans.

In the document, read without `.glyph` and `.note`, a drawn text is `approvals.draw.plain` of it: tabs and blanks stay
themselves (the sheet paints arrows and dots), so that reading, searching and copying give what would run. A `sheet`
that fails to draw raises, and its card cannot be approved; a name or a reason that fails is a placeholder.
"""

import logging
from collections.abc import Callable, Iterator

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from approvals import draw
from approvals.draw import Piece

_log = logging.getLogger(__name__)
_MARKUP: dict[str, Callable[[str], str]] = {
    "text": escape,
    "tab": lambda text: f'<span class="tab">{text}</span>',
    "blank": lambda text: f'<span class="trail" title="{len(text)} spaces">{text}</span>',
    "hidden": lambda text: f'<span class="esc">{draw.token(text)}</span>',
    "lookalike": lambda text: f'<span class="glyph bad">{text}</span><span class="esc">{draw.token(text)}</span>',
    "foreign": lambda text: f'<span class="glyph">{text}</span><span class="point">{draw.token(text)}</span>',
}


def line_markup(line: str) -> str:
    """One line, without its newline. Raises what drawing raises."""
    return _marked_up(draw.pieces(line))


def _marked_up(pieces: list[Piece]) -> str:
    return "".join(_MARKUP[piece.kind](piece.text) for piece in pieces)


def inline(text: object) -> SafeString:
    """For names, paths and whatever holds one line: a newline in it is a token."""
    return _or_placeholder(text, '<span class="esc">⟨U+000A⟩</span>')


def block(text: object) -> SafeString:
    """For reasons and output: lines stay lines."""
    return _or_placeholder(text, "\n")


def _or_placeholder(text: object, newline: str) -> SafeString:
    # A name that fails to draw must not take the page down with it, and with the page the button that denies.
    try:
        return mark_safe(newline.join(_marked_up(draw.pieces(line)) for line in str(text).split("\n")))
    except Exception:
        _log.exception("Drawing a text failed")
        return mark_safe('<span class="esc">not drawn</span>')


def sheet(text: str) -> SafeString:
    """The numbered lines of a sheet: all of them, whole. Each `.ln` ends in its own newline."""
    return mark_safe("".join(_numbered(draw.lines(text))))


def _numbered(lines: list[str]) -> Iterator[str]:
    after_gap = False
    gaps = _gaps(lines)
    for at, line in enumerate(lines):
        if at in gaps:
            yield f'<span class="note">{gaps[at]} blank lines follow</span>'
        content = line.removesuffix("\n")
        pieces = draw.pieces(content)
        blank = not content.strip(" \t")
        marked = any(piece.kind in ("hidden", "lookalike") for piece in pieces) or (after_gap and not blank)
        yield f'<span class="ln{" marked" if marked else ""}">{_marked_up(pieces)}{line[len(content) :]}</span>'
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
