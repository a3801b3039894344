"""Edits of a text by line: read, judged against the version they were made for, carried over to the one there is.

Pure. Owns the rule that the number is the address and the tag only the check: must never look for a line elsewhere,
never mend what an edit says, and never do a part of it.
"""

from collections.abc import Iterator, Mapping, Sequence

from .hints import Any
from .lines import TAG_LETTERS, VERSION_DIGITS, Text, common_ends, is_tag

RANGES, INSERTS, ENDS = ("replace", "delete"), ("insert_before", "insert_after"), ("append", "prepend")
EDITS = 1000
_WITHIN_A_GAP = {"prepend": 0, "insert_after": 1, "insert_before": 2, "append": 3}
_FORM = 'an anchor is a number and its tag as read shows them, like "12kqzt"'


class Wrong(Exception):
    """The edits themselves cannot be done, whatever the file is."""


class Stale(Exception):
    """The file is not, at the lines they name, what they were made for."""


class Anchor:
    def __init__(self, number: int, tag: str) -> None:
        self.number = number
        self.tag = tag


class Edit:
    """As it was asked, its words checked, its lines not yet."""

    def __init__(
        self, nth: int, do: str, first: Anchor | None, last: Anchor | None, lines: tuple[bytes, ...]
    ) -> None:  # fmt: skip
        self.nth, self.do, self.lines = nth, do, lines
        self.first, self.last = first, last


class Change:
    """Lines `first` to `last` become `lines`; `last` is `first - 1` where nothing goes and they come before `first`.
    `named`: the lines whose being there unchanged it rests on."""

    def __init__(
        self, nth: int, do: str, first: int, last: int, lines: tuple[bytes, ...], named: tuple[int, int]
    ) -> None:  # fmt: skip
        self.nth, self.do, self.lines = nth, do, lines
        self.first, self.last, self.named = first, last, named

    @property
    def is_insert(self) -> bool:
        return self.last < self.first


def judged(asked: Sequence[Edit], version: str, now: Text, now_version: str, then: bytes | None) -> list[Change]:
    """The changes to make to `now`, in the order of their lines. `then`: what the file was at `version`, if it is still
    known. Raises Wrong or Stale."""
    if version == now_version:
        return planned(asked, now)
    if then is None:
        raise Stale(f"it has changed since version {version} was read")
    old = Text(then)
    return carried(planned(asked, old), old, now)


# --- what was asked --------------------------------------------------------------------------------------------------


def read(edits: Any, version: Any) -> list[Edit]:
    """Their words; raises Wrong with what to send instead."""
    if type(version) is not str or len(version) != VERSION_DIGITS or set(version) - set("0123456789abcdef"):
        raise Wrong("`version` is missing: send the 12 digits that read shows for the file")
    if type(edits) is not list or not edits:
        raise Wrong("there are no edits: send at least one")
    if len(edits) > EDITS:
        raise Wrong(f"there are {len(edits)} edits; the most at once are {EDITS}")
    return [one(nth, each) for nth, each in enumerate(edits, 1)]


def one(nth: int, asked: Any) -> Edit:
    """The `nth`, counted from 1; raises Wrong where no file could take it."""
    if type(asked) is not dict or type(do := asked.get("do")) is not str or do not in RANGES + INSERTS + ENDS:
        raise Wrong(f"edit {nth}: `do` is one of {', '.join(RANGES + INSERTS + ENDS)}")
    _check_fields(nth, do, asked)
    first = None if do in ENDS else _anchor(nth, "from", asked["from"])
    last = _anchor(nth, "to", asked["to"]) if asked.get("to") is not None else first
    lines = () if do == "delete" else _payload(nth, do, asked["lines"])
    if first and last and last.number < first.number:
        raise Wrong(f"edit {nth}: it goes from line {first.number} to line {last.number}, backwards")
    return Edit(nth, do, first, last, lines)


def _check_fields(nth: int, do: str, asked: Mapping[str, Any]) -> None:
    wanted = {"do"} | (set() if do in ENDS else {"from"}) | (set() if do == "delete" else {"lines"})
    allowed = wanted | ({"to"} if do in RANGES else set())
    given = {name for name, value in asked.items() if value is not None}
    if missing := sorted(wanted - given):
        raise Wrong(f"edit {nth}: `{missing[0]}` is missing; {do} needs {', '.join(sorted(wanted - {'do'}))}")
    if more := sorted(given - allowed):
        raise Wrong(f"edit {nth}: {do} takes no `{more[0]}`")


def _anchor(nth: int, field: str, asked: Any) -> Anchor:
    if type(asked) is str and asked.isascii():
        digits = asked.rstrip("".join(set(asked) - set("0123456789")))
        tag = asked[len(digits) :]
        if digits.isdigit() and len(digits) <= 12 and (is_tag(tag) or not tag):
            return Anchor(int(digits), tag)
    raise Wrong(f"edit {nth}: `{field}` is no anchor: {_FORM}")


def _payload(nth: int, do: str, asked: Any) -> tuple[bytes, ...]:
    if type(asked) is not list or not all(type(line) is str for line in asked):
        raise Wrong(f"edit {nth}: `lines` is a list of single lines")
    if not asked and do != "replace":
        raise Wrong(f"edit {nth}: `lines` is empty, so there is nothing to {do.split('_')[0]}")
    for at, line in enumerate(asked, 1):
        for bad, name in (("\n", "a newline"), ("\r", "a carriage return"), ("\0", "a NUL")):
            if bad in line:
                raise Wrong(f"edit {nth}, item {at} of `lines` holds {name}: each item is one line, without its ending")
    try:
        return tuple(line.encode() for line in asked)
    except UnicodeEncodeError as error:
        raise Wrong(f"edit {nth}: `lines` holds half a character (a lone surrogate), which no file can hold") from error


# --- against the version it was made for -----------------------------------------------------------------------------


def planned(asked: Sequence[Edit], text: Text) -> list[Change]:
    """Each line that is named is there, with its tag, was seen whole, and is changed once."""
    for edit in asked:
        for anchor in filter(None, (edit.first, edit.last)):
            _check(edit.nth, anchor, text)
        _check_echo(edit, text)
    changes = sorted((_change(edit, text) for edit in asked), key=_place)
    _check_apart(changes)
    for change in changes:
        _check_seen(change, text)
    return changes


def _check(nth: int, anchor: Anchor, text: Text) -> None:
    if not 1 <= anchor.number <= text.count:
        raise Wrong(f"edit {nth}: there is no line {anchor.number}; the file has {text.count}")
    if text.is_long(anchor.number):
        raise Wrong(f"edit {nth}: line {anchor.number} {_LONG}")
    if not anchor.tag:
        raise Wrong(f"edit {nth}: line {anchor.number} is named without its tag: {_FORM}")
    if anchor.tag != text.tag(anchor.number):
        raise Stale(f"edit {nth}: line {anchor.number} is not tagged {anchor.tag}")


_LONG = "is too long to have been shown whole, so it is not changed unseen: change it with a command"


def _check_echo(edit: Edit, text: Text) -> None:
    """What read puts before a line is no part of it. It is refused, not cut off: it might be meant."""
    for line in edit.lines:
        head, bar, _ = line[:32].partition(b"|")
        digits, tag = head[:-TAG_LETTERS].decode(errors="replace"), head[-TAG_LETTERS:].decode(errors="replace")
        if bar and digits.isascii() and digits.isdigit() and is_tag(tag) and text.has(int(digits), tag):
            raise Wrong(
                f"edit {edit.nth}: an item of `lines` begins with `{digits}{tag}|`, which read puts before a line and "
                "which is no part of the file: send the line without it"
            )


def _change(edit: Edit, text: Text) -> Change:
    if edit.first is None or edit.last is None:
        at = 0 if edit.do == "prepend" else text.count
        return Change(edit.nth, edit.do, at + 1, at, edit.lines, (at, at))
    first, last = edit.first.number, edit.last.number
    if edit.do in RANGES:
        return Change(edit.nth, edit.do, first, last, edit.lines, (first, last))
    gap = first - 1 if edit.do == "insert_before" else first
    return Change(edit.nth, edit.do, gap + 1, gap, edit.lines, (first, first))


def _place(change: Change) -> tuple[int, bool, int, int]:
    """Between two lines, what belongs to the one above comes before what belongs to the one below."""
    return change.first, not change.is_insert, _WITHIN_A_GAP.get(change.do, 0), change.nth


def _check_apart(changes: Sequence[Change]) -> None:
    """In their order. What is inserted at the edge of a range is outside of it."""
    until, who = 0, 0
    for change in changes:
        if change.first <= until:
            raise Wrong(f"edits {min(who, change.nth)} and {max(who, change.nth)} overlap: a line is changed once")
        if not change.is_insert:
            until, who = change.last, change.nth


def _check_seen(change: Change, text: Text) -> None:
    for number in range(change.first, change.last + 1):
        begin, end = text.begin(number), text.begin(number + 1)
        if end - begin > 2000 and text.is_long(number):
            raise Wrong(f"edit {change.nth}: line {number} {_LONG}")


# --- against the one there is ----------------------------------------------------------------------------------------


def carried(changes: Sequence[Change], old: Text, new: Text) -> list[Change]:
    """The same changes where the lines they name have gone, if those lie wholly in what stayed the same at the
    beginning or at the end, and at one place only. Raises Stale."""
    if bool(old.start) != bool(new.start):
        raise Stale("it has changed since it was read: its byte order mark came or went")
    above, below = common_ends(old, new)
    moved_by = new.count - old.count
    if moved_by:  # a line that both ends hold could be either of two
        fewer = min(old.count, new.count)
        above, below = min(above, fewer - below), min(below, fewer - above)
    return sorted((_carried(change, above, below, old.count, moved_by) for change in changes), key=_place)


def _carried(change: Change, above: int, below: int, count: int, by: int) -> Change:
    """A beginning and an end of the file are where they were only if the line that was first, or last, is."""
    first, last = change.named
    if (above if change.do == "prepend" else last <= above) and change.do != "append":
        return change
    if (below if change.do == "append" else first > count - below) and change.do != "prepend":
        at = (change.first + by, change.last + by)
        return Change(change.nth, change.do, *at, change.lines, (first + by, last + by))
    where = f"line {first}" if first == last else f"lines {first} to {last}"
    raise Stale(f"edit {change.nth}: the file has changed since it was read, at or around {where}")


# --- what comes of it ------------------------------------------------------------------------------------------------


def pieces(text: Text, changes: Sequence[Change]) -> list[bytes]:
    """The new content, from the beginning to the end. Every line keeps its ending, a new one takes its neighbour's, and
    whether the last line has one stays as it was; an empty one has to have one, or it would be no line."""
    out: list[bytes] = [text.data[: text.start]]
    ending, at = b"", 1
    for change in changes:
        ending = _put_old(out, text, at, change.first - 1) or ending
        for nth, line in enumerate(change.lines):
            ending = _solid(text, _model(change, nth))
            out.append(line + ending)
        at = max(at, change.last + 1)
    ending = _put_old(out, text, at, text.count) or ending
    if not text.is_terminated and len(out) > 1:
        bare = out[-1][: len(out[-1]) - len(ending)]
        out[-1] = out[-1] if bare[-1:] in (b"", b"\n") else bare
    return out


def _put_old(out: list[bytes], text: Text, first: int, last: int) -> bytes:
    """Lines as they were, each with an ending; the last one's, b"" when there are none."""
    if first > last:
        return b""
    out.append(text.data[text.begin(first) : text.begin(last + 1)])
    if ending := text.ending(last):
        return ending
    ending = b"\r\n" if out[-1].endswith(b"\r") else _solid(text, last)  # with an LF alone its CR would be lost
    out[-1] += ending
    return ending


def _model(change: Change, nth: int) -> int:
    """The old line whose ending the `nth` new one takes."""
    return max(1, min(change.first + nth, change.last))


def _solid(text: Text, number: int) -> bytes:
    return text.ending(number) or (text.ending(number - 1) if number > 1 else b"") or b"\n"


def blocks(changes: Sequence[Change]) -> Iterator[tuple[Change, int]]:
    """Each change, and the number that its first line has in the new text."""
    by = 0
    for change in changes:
        yield change, change.first + by
        by += len(change.lines) - (change.last - change.first + 1)
