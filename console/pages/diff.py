"""A write against the file it would replace: every line of both, in order, with its sign. Nothing is folded away here;
the page's script folds what is unchanged.

Drawn like a sheet, line by line; the same text read from the rows without `del` is the new file.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from django.utils.safestring import SafeString, mark_safe

from approvals import draw

from .draw import line_markup

MOST_PAIRS = 1_000_000  # beyond this many pairs of lines the search costs too much: then all old, all new
_SIGNS = {"same": "", "del": "−", "add": "+"}
Row = tuple[str, int | None, int | None, str]


def rows(old: str, new: str) -> list[Row]:
    """(same, del or add; number in the old file; number in the new file; line)."""
    before, after = draw.lines(old), draw.lines(new)
    start = _shared(before, after)
    end = _shared(before[start:][::-1], after[start:][::-1])
    found: list[Row] = [("same", n + 1, n + 1, line) for n, line in enumerate(before[:start])]
    found += _changed(before[start : len(before) - end], after[start : len(after) - end], start)
    for n in range(end, 0, -1):
        found.append(("same", len(before) - n + 1, len(after) - n + 1, before[-n]))
    return found


def _shared(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _changed(before: list[str], after: list[str], start: int) -> Iterator[Row]:
    for tag, old_from, old_to, new_from, new_to in _blocks(before, after):
        if tag == "equal":
            for n in range(old_to - old_from):
                yield "same", start + old_from + n + 1, start + new_from + n + 1, before[old_from + n]
            continue
        yield from (("del", start + n + 1, None, before[n]) for n in range(old_from, old_to))
        yield from (("add", None, start + n + 1, after[n]) for n in range(new_from, new_to))


def _blocks(before: list[str], after: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if len(before) * len(after) > MOST_PAIRS:
        return [("replace", 0, len(before), 0, len(after))]
    return SequenceMatcher(None, before, after, autojunk=False).get_opcodes()


def table(found: list[Row], anchor: str) -> SafeString:
    """Rows of a table; the first row of the first change has the id `anchor`-1, and so on."""
    html, changes, before = [], 0, "same"
    for row in found:
        starts = row[0] != "same" and before == "same"
        changes, before = changes + starts, row[0]
        html.append(_row(row, f' id="{anchor}-{changes}"' if starts else ""))
    return mark_safe("".join(html))


def _row(row: Row, anchor: str) -> str:
    kind, old, new, line = row
    text = line_markup(line.removesuffix("\n"))
    missing = "" if line.endswith("\n") else '<span class="nonl"> no newline at the end</span>'
    return (
        f'<tr class="{kind}"{anchor}><td class="no">{old or ""}</td><td class="no">{new or ""}</td>'
        f'<td class="sign">{_SIGNS[kind]}</td><td class="txt">{text}{missing}</td></tr>'
    )


def counts(found: list[Row]) -> str:
    """`+4 −1`."""
    kinds = [row[0] for row in found]
    return f"+{kinds.count('add')} −{kinds.count('del')}"
