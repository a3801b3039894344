"""Edits against the plainest model: a list of lines, and what goes where."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sandboxes.runner import edits, reporting
from sandboxes.runner.lines import BOM, Text, version_of

LINE = st.text(alphabet="ab \t\f\r\u2028é", max_size=4).filter(lambda line: not line.endswith("\r"))
ENDINGS = st.sampled_from(["\n", "\n", "\r\n"])
LINES = st.lists(st.tuples(LINE, ENDINGS), max_size=9)
PAYLOAD = st.lists(st.text(alphabet="xyé$\\|", max_size=3), max_size=3)


@st.composite
def texts(draw: Any) -> bytes:
    lines = [list(line) for line in draw(LINES)]
    if lines and lines[-1][0] and draw(st.booleans()):
        lines[-1][0] += draw(st.sampled_from(["", "", "\r"]))  # which belongs to the line, as no LF follows
        lines[-1][1] = ""
    return (BOM if draw(st.booleans()) else b"") + "".join(map("".join, lines)).encode()


@dataclass
class Model:
    """What each line becomes, and what stands in each gap; gap n is behind line n."""

    lines: list[str]
    gone: set[int] = field(default_factory=set)
    gaps: dict[int, list[str]] = field(default_factory=dict)

    def result(self) -> list[str]:
        out = list(self.gaps.get(0, []))
        for number, line in enumerate(self.lines, 1):
            out += [] if number in self.gone else [line]
            out += self.gaps.get(number, [])
        return out


def lines_of(data: bytes) -> list[str]:
    text = Text(data)
    return [text.line(number).decode() for number in range(1, text.count + 1)]


def anchor(text: Text, number: int) -> str:
    return f"{number}{text.tag(number)}"


@st.composite
def wishes(draw: Any, data: bytes) -> tuple[list[dict[str, Any]], Model]:
    """Edits that do not overlap, in any order, and what they come to: ranges between cuts, inserts at their edges."""
    text = Text(data)
    model, asked = Model(lines_of(data)), []
    cuts = sorted(draw(st.sets(st.integers(1, text.count + 1), max_size=6))) if text.count else []
    ranges = [(a, b - 1) for a, b in zip(cuts, cuts[1:], strict=False) if draw(st.booleans())]
    for first, last in ranges:
        lines = draw(st.none() | PAYLOAD)
        verb = {"do": "delete"} if lines is None else {"do": "replace", "lines": lines}
        asked.append({**verb, "from": anchor(text, first), "to": anchor(text, last)})
    inside = {gap for first, last in ranges for gap in range(first, last)}
    inserts = []
    for gap in draw(st.lists(st.sampled_from(sorted(set(range(text.count + 1)) - inside)), max_size=4)):
        lines = draw(PAYLOAD.filter(bool))
        inserts.append(draw(st.sampled_from(_ways(text, gap))) | {"lines": lines, "gap": gap})
    asked = draw(st.permutations(asked + inserts))
    of_the_gap = ["prepend", "insert_after", "insert_before", "append"]
    places = {id(wish): place for place, wish in enumerate(asked)}  # two may be equal
    for wish in sorted(inserts, key=lambda wish: (of_the_gap.index(wish["do"]), places[id(wish)])):
        model.gaps.setdefault(wish["gap"], []).extend(wish["lines"])
    asked = [{name: value for name, value in wish.items() if name != "gap"} for wish in asked]
    for first, last in ranges:  # what replaces a range stands behind what is inserted before it
        lines = next(
            wish.get("lines", []) for wish in asked if wish.get("from") == anchor(text, first) and "to" in wish
        )
        model.gone |= set(range(first, last + 1))
        model.gaps[first - 1] = model.gaps.get(first - 1, []) + lines
    return asked, model


def _ways(text: Text, gap: int) -> list[dict[str, Any]]:
    ways = [{"do": "prepend"}] if gap == 0 else [{"do": "insert_after", "from": anchor(text, gap)}]
    if gap == text.count:
        ways.append({"do": "append"})
    elif gap < text.count:
        ways.append({"do": "insert_before", "from": anchor(text, gap + 1)})
    return ways


def judged(asked: list[dict[str, Any]], now: bytes, then: bytes | None = None) -> list[edits.Change]:
    version = version_of(now if then is None else then)
    return edits.judged(edits.read(asked, version), version, Text(now), version_of(now), then)


@given(st.data())
def test_edits_do_what_the_model_does_and_nothing_else(data: Any) -> None:
    before = data.draw(texts())
    asked, model = data.draw(wishes(before))
    assume(asked)
    changes = judged(asked, before)
    after = b"".join(edits.pieces(Text(before), changes))
    assert lines_of(after) == model.result()
    assert after.startswith(BOM) == before.startswith(BOM)
    if len(after) > Text(after).start and Text(before).count:
        assert after.endswith(b"\n") == before.endswith(b"\n") or not model.result()[-1]


@given(st.data())
def test_lines_that_no_edit_names_keep_their_bytes(data: Any) -> None:
    before = data.draw(texts())
    asked, model = data.draw(wishes(before))
    assume(asked)
    changes = judged(asked, before)
    old, new = Text(before), Text(b"".join(edits.pieces(Text(before), changes)))
    by, at = 0, 1
    for change, first in edits.blocks(changes):
        assert first == change.first + by
        for number in range(at, change.first):
            _same(old, new, number, number + by)
        by += len(change.lines) - (change.last - change.first + 1)
        at = max(at, change.last + 1)
    for number in range(at, old.count + 1):
        _same(old, new, number, number + by)


def _same(old: Text, new: Text, number: int, moved: int) -> None:
    assert new.line(moved) == old.line(number)
    if number < old.count and moved < new.count:
        assert new.ending(moved) == old.ending(number)


@given(texts(), PAYLOAD.filter(bool), st.data())
def test_a_new_line_ends_as_its_neighbour_does(before: bytes, lines: list[str], data: Any) -> None:
    text = Text(before)
    assume(text.count > 1)
    number = data.draw(st.integers(1, text.count - 1))
    asked = [{"do": "insert_after", "from": anchor(text, number), "lines": lines}]
    after = Text(b"".join(edits.pieces(text, judged(asked, before))))
    for at in range(number + 1, number + len(lines) + 1):
        assert after.ending(at) == text.ending(number)


def fits(old: list[str], new: list[str], number: int) -> set[int]:
    """Where line `number` has gone, if all above it, or all below it, is as it was."""
    by = len(new) - len(old)
    places = {number} if old[:number] == new[:number] else set()
    if old[number - 1 :] == new[max(number + by, 1) - 1 :]:
        places.add(number + by)
    return places


@given(st.lists(st.sampled_from("ab"), max_size=5), st.lists(st.sampled_from("ab"), max_size=5), st.data())
def test_an_edit_is_carried_over_to_the_one_place_it_can_have_or_not_at_all(
    o: list[str], n: list[str], data: Any
) -> None:
    assume(o and o != n)
    old, new = ("".join(f"{line}\n" for line in lines).encode() for lines in (o, n))
    number = data.draw(st.integers(1, len(o)))
    asked = [{"do": "replace", "from": anchor(Text(old), number), "lines": ["NEW"]}]
    try:
        (change,) = judged(asked, new, old)
    except edits.Stale:
        assert not _surely(o, n, number)
        return
    assert fits(o, n, number) == {change.first}
    assert n[change.first - 1] == o[number - 1]


def _surely(old: list[str], new: list[str], number: int) -> bool:
    """It lies at one end that both have, and the ends do not overlap."""
    head = next(k for k in range(min(len(old), len(new)), -1, -1) if old[:k] == new[:k])
    tail = next(k for k in range(min(len(old), len(new)), -1, -1) if old[len(old) - k :] == new[len(new) - k :])
    apart = len(old) == len(new) or head + tail <= min(len(old), len(new))
    return apart and (number <= head or number > len(old) - tail)


@given(st.data())
def test_carried_over_or_made_before_the_others_change_comes_to_the_same(data: Any) -> None:
    head, tail = data.draw(texts()), data.draw(texts()).removeprefix(BOM)
    middle, other = (data.draw(texts()).removeprefix(BOM) for _ in range(2))
    head, middle, other = (part if not part or part.endswith(b"\n") else part + b"\n" for part in (head, middle, other))
    then, now = head + middle + tail, head + other + tail
    assume(then != now)
    asked, _ = data.draw(wishes(then))
    assume(asked)
    try:
        carried = judged(asked, now, then)
    except edits.Stale:
        return
    mine = b"".join(edits.pieces(Text(now), carried))
    lines = lines_of(mine)
    for change in judged(asked, then):
        assert all(line.decode() in lines or not line for line in change.lines)
    kept = lines_of(other)
    if not any(edit["do"] in ("replace", "delete") for edit in asked):
        assert _is_within(kept, lines), "the other's lines are still there, in their order"


def _is_within(some: list[str], lines: list[str]) -> bool:
    left = iter(lines)
    return all(any(line == each for each in left) for line in some)


BASE = b"one\ntwo\nthree\nfour\n"


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        ({"do": "replace", "from": 2, "lines": ["x"]}, "no anchor"),
        ({"do": "replace", "from": "kqzt2", "lines": ["x"]}, "no anchor"),
        ({"do": "replace", "from": "2:kqzt", "lines": ["x"]}, "no anchor"),
        ({"do": "replace", "from": "2aeio", "lines": ["x"]}, "no anchor"),
        ({"do": "replace", "from": "\u0662kqzt", "lines": ["x"]}, "no anchor"),
        ({"do": "replace", "from": "", "lines": ["x"]}, "no anchor"),
        ({"do": "replace", "from": "2", "lines": ["x"]}, "without its tag"),
        ({"do": "replace", "from": "0kqzt", "lines": ["x"]}, "no line 0"),
        ({"do": "replace", "from": "9" * 12 + "kqzt", "lines": ["x"]}, "no line 999999999999"),
        ({"do": "replace", "from": "2kqzt"}, "`lines` is missing"),
        ({"do": "replace", "from": "2kqzt", "lines": "x"}, "list of single lines"),
        ({"do": "replace", "from": "2kqzt", "lines": [1]}, "list of single lines"),
        ({"do": "replace", "from": "2kqzt", "lines": ["a\rb"]}, "carriage return"),
        ({"do": "replace", "from": "3kqzt", "to": "2kqzt", "lines": []}, "backwards"),
        ({"do": "insert_after", "from": "2kqzt", "lines": []}, "nothing to insert"),
        ({"do": "insert_after", "from": "2kqzt", "to": "3kqzt", "lines": ["x"]}, "takes no `to`"),
        ({"do": "delete", "from": "2kqzt", "lines": ["x"]}, "takes no `lines`"),
        ({"do": "append", "from": "2kqzt", "lines": ["x"]}, "takes no `from`"),
        ({"do": "append", "lines": ["x"], "why": "because"}, "takes no `why`"),
        ({"from": "2kqzt", "lines": ["x"]}, "`do` is one of"),
        ("replace", "`do` is one of"),
        ([], "`do` is one of"),
    ],
)
def test_what_an_edit_cannot_mean_is_refused_by_name(edit: Any, word: str) -> None:
    with pytest.raises(edits.Wrong, match=word):
        judged([edit], BASE)


@pytest.mark.parametrize("version", ["", "3F9C0B71D2AE", "3f9c0b71d2a", "3f9c0b71d2ae0", None, 7])
def test_a_version_is_twelve_digits(version: Any) -> None:
    with pytest.raises(edits.Wrong, match="version"):
        edits.read([{"do": "append", "lines": ["x"]}], version)


def test_what_read_puts_before_a_line_is_not_taken_into_the_file() -> None:
    text = Text(BASE)
    mine = f"{anchor(text, 3)}|three"
    with pytest.raises(edits.Wrong, match="no part of the file"):
        judged([{"do": "replace", "from": anchor(text, 2), "lines": [mine]}], BASE)
    other = "3bbbb|three" if text.tag(3) != "bbbb" else "3cccc|three"
    (change,) = judged([{"do": "replace", "from": anchor(text, 2), "lines": [other, "12|x", "|"]}], BASE)
    assert change.lines[0] == other.encode()


def test_a_long_line_inside_a_range_is_not_replaced_unseen() -> None:
    data = b"one\n" + b"x" * 2001 + b"\nthree\n"
    text = Text(data)
    with pytest.raises(edits.Wrong, match="line 2 is too long"):
        judged([{"do": "delete", "from": anchor(text, 1), "to": anchor(text, 3)}], data)
    assert judged([{"do": "delete", "from": anchor(text, 3)}], data)


def test_the_edges_of_a_file_move_only_with_the_lines_that_were_there() -> None:
    grown = BASE + b"five\n"
    with pytest.raises(edits.Stale):
        judged([{"do": "append", "lines": ["x"]}], grown, BASE)
    (change,) = judged([{"do": "prepend", "lines": ["x"]}], grown, BASE)
    assert change.first == 1
    for do in ("append", "prepend"):
        with pytest.raises(edits.Stale):
            judged([{"do": do, "lines": ["x"]}], b"something\n", b"")


@given(st.data())
def test_the_diff_and_the_moves_say_what_was_done(data: Any) -> None:
    before = data.draw(texts().filter(lambda text: Text(text).is_terminated))
    asked, model = data.draw(wishes(before))
    assume(asked)
    changes = judged(asked, before)
    after = Text(b"".join(edits.pieces(Text(before), changes)))
    said = [line for line in reporting.diff(Text(before), changes).split("\n") if line and not line.startswith("@@")]
    real = [change for change in changes if _lines(Text(before), change) != list(change.lines)]
    assert sum(line[0] == "-" for line in said) == sum(change.last - change.first + 1 for change in real)
    assert sum(line[0] == "+" for line in said) == sum(len(change.lines) for change in real)
    shown = {number: text for number, _, text in reporting.changed(after, changes)}
    for change, first in edits.blocks(changes):
        assert [shown[first + n] for n in range(len(change.lines))] == [line.decode() for line in change.lines]
    steps = reporting.moved(Text(before), changes)
    assert all(start <= Text(before).count for start, _ in steps)
    for number in range(1, Text(before).count + 1):
        by = next((by for start, by in reversed(steps) if start <= number), 0)
        if number - 1 not in _gone(changes):
            assert after.line(number + by) == Text(before).line(number)


def _lines(text: Text, change: edits.Change) -> list[bytes]:
    return [text.line(number) for number in range(change.first, change.last + 1)]


def _gone(changes: list[edits.Change]) -> set[int]:
    """Counted from 0."""
    return {number for change in changes for number in range(change.first - 1, change.last)}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (b"a\n\nb", {"do": "delete", "from": 3}, b"a\n\n"),
        (b"a\n\nb", {"do": "replace", "from": 3, "lines": []}, b"a\n\n"),
        (b"a\nb", {"do": "append", "lines": [""]}, b"a\nb\n\n"),
        (b"a\r\nb", {"do": "append", "lines": [""]}, b"a\r\nb\r\n\r\n"),
        (b"b", {"do": "replace", "from": 1, "lines": [""]}, b"\n"),
        (b"a\nb", {"do": "delete", "from": 2}, b"a"),
        (b"a\nb", {"do": "append", "lines": ["c"]}, b"a\nb\nc"),
        (b"a\nb\r", {"do": "append", "lines": ["c"]}, b"a\nb\r\r\nc"),
        (b"a\nb\r", {"do": "insert_before", "from": 2, "lines": ["c"]}, b"a\nc\nb\r"),
        (b"b", {"do": "delete", "from": 1}, b""),
    ],
)
def test_no_line_comes_or_goes_for_the_sake_of_how_the_file_ends(before: bytes, edit: Any, after: bytes) -> None:
    """An empty last line cannot be without an ending, and a CR before an LF would be a part of it."""
    if "from" in edit:
        edit = {**edit, "from": anchor(Text(before), edit["from"])}
    assert b"".join(edits.pieces(Text(before), judged([edit], before))) == after


def test_a_line_replaced_by_itself_is_no_difference() -> None:
    text = Text(BASE)
    same = {"do": "replace", "from": anchor(text, 2), "lines": ["two"]}
    assert reporting.diff(text, judged([same], BASE)) == ""
    other = {"do": "replace", "from": anchor(text, 4), "lines": ["FOUR"]}
    assert reporting.diff(text, judged([same, other], BASE)).split("\n")[1:] == [
        " one", " two", " three", "-four", "+FOUR",
    ]  # fmt: skip


def test_behind_the_last_line_there_is_nothing_to_move() -> None:
    for before in (b"", BASE):
        assert reporting.moved(Text(before), judged([{"do": "append", "lines": ["x"]}], before)) == []
