"""What an agent is told of an edit: fresh tagged lines, how later lines moved, a diff, each cut to a budget.

Pure. Must never tell more than fits one frame, whatever the lines are: what is counted is their JSON.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from .edits import Change, blocks
from .hints import Any
from .lines import Text

AROUND = 3
"""Lines shown above and below."""
LINES_BYTES, DIFF_BYTES = 48 << 10, 24 << 10
DIFF_LINE = 500
MOVES = 1000


def around(text: Text, numbers: Iterable[int]) -> list[list[Any]]:
    """Fresh lines about each of these; about the end for one beyond it."""
    wanted: set[int] = set()
    for number in numbers:
        at = min(max(number, 1), text.count)
        wanted.update(range(max(1, at - AROUND), min(text.count, at + AROUND) + 1))
    return _within(text.shown(number) for number in sorted(wanted))


def top(text: Text, most: int) -> list[list[Any]]:
    return _within(text.shown(number) for number in range(1, min(text.count, most) + 1))


def _within(lines: Iterable[list[Any]]) -> list[list[Any]]:
    found, left = [], LINES_BYTES
    for line in lines:
        left -= len(json.dumps(line)) + 1
        if left < 0:
            break
        found.append(line)
    return found


def changed(new: Text, changes: Sequence[Change]) -> list[list[Any]]:
    """The changed blocks with two lines on each side: the tags of the nearest have changed too."""
    wanted: dict[int, None] = {}
    for change, first in blocks(changes):
        numbers = range(max(1, first - 2), min(new.count, first + len(change.lines) + 1) + 1)
        wanted |= dict.fromkeys(numbers)
    return _within(new.shown(number) for number in wanted)


def moved(old: Text, changes: Sequence[Change]) -> list[list[int]]:
    """[n, by]: lines that had a number from n on have that much more. Behind the last line there are none."""
    steps: list[list[int]] = []
    by = 0
    for change in changes:
        if step := len(change.lines) - (change.last - change.first + 1):
            by += step
            if change.last >= old.count:
                break
            steps.append([change.last + 1, by])
    return steps[:MOVES]


def diff(old: Text, changes: Sequence[Change]) -> str:
    """In the unified form, of what was asked, but for lines that become what they were. Cut, it says so."""
    out, left = [], DIFF_BYTES
    for line in _diff(old, [change for change in changes if not _is_nothing(old, change)]):
        line = line if len(line) <= DIFF_LINE else line[:DIFF_LINE] + "…"
        left -= len(json.dumps(line))
        if left < 0:
            out.append("… the diff goes on")
            break
        out.append(line)
    return "\n".join(out)


def _is_nothing(old: Text, change: Change) -> bool:
    numbers = range(change.first, change.last + 1)
    return len(numbers) == len(change.lines) and all(map(bytes.__eq__, map(old.line, numbers), change.lines))


def _diff(old: Text, changes: Sequence[Change]) -> Iterator[str]:
    by = 0
    for group in _groups(changes):
        first = max(1, group[0].first - AROUND)
        last = min(old.count, group[-1].last + AROUND)
        added = sum(len(change.lines) for change in group)
        gone = sum(change.last - change.first + 1 for change in group)
        size = last - first + 1
        yield f"@@ -{_range(first, size)} +{_range(first + by, size - gone + added)} @@"
        at = first
        for change in group:
            yield from _old(old, " ", at, change.first - 1)
            yield from _old(old, "-", change.first, change.last)
            yield from ("+" + line.decode(errors="replace") for line in change.lines)
            at = max(at, change.last + 1)
        yield from _old(old, " ", at, last)
        by += added - gone


def _range(first: int, size: int) -> str:
    return f"{first},{size}" if size else f"{first - 1},0"


def _old(old: Text, sign: str, first: int, last: int) -> Iterator[str]:
    return (sign + old.line(number).decode(errors="replace") for number in range(first, last + 1))


def _groups(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Changes whose surroundings meet stand in one hunk."""
    group: list[Change] = []
    for change in changes:
        if group and change.first - group[-1].last > 2 * AROUND + 1:
            yield group
            group = []
        group.append(change)
    if group:
        yield group
