"""Lines of any bytes, against the plainest way to cut them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from sandboxes.runner.lines import BOM, CONSONANTS, Tagger, Text, common_ends, fault_at, is_tag, tag_of

SOME = st.text(alphabet="ab\r\n\f\x0b\x85\u2028\x1cé\ufeff", max_size=60).map(str.encode)
MANY = st.lists(st.sampled_from([b"\n", b"\r\n", b"a\n", b"b" * 700 + b"\n", b"\r\r\n"]), max_size=40).map(b"".join)
DATA = st.one_of(SOME, MANY, SOME.map(lambda data: BOM + data))


def plain(data: bytes) -> list[tuple[bytes, bytes]]:
    """(line, ending) of each."""
    found = re.findall(rb"[^\n]*\n|[^\n]+", data.removeprefix(BOM))
    return [(m, b"") if not m.endswith(b"\n") else _parted(m) for m in found]


def _parted(line: bytes) -> tuple[bytes, bytes]:
    return (line[:-2], b"\r\n") if line.endswith(b"\r\n") else (line[:-1], b"\n")


@given(DATA)
def test_lines_and_endings_are_those_of_the_plainest_cut(data: bytes) -> None:
    text, lines = Text(data), plain(data)
    assert text.count == len(lines)
    assert [(text.line(n), text.ending(n)) for n in range(1, text.count + 1)] == lines
    assert text.data[: text.start] + b"".join(line + ending for line, ending in lines) == data


@given(DATA)
def test_a_place_outside_is_empty(data: bytes) -> None:
    text = Text(data)
    assert (text.line(0), text.line(text.count + 1), text.line(-3)) == (b"", b"", b"")
    assert text.begin(text.count + 1) == len(data)


def test_a_file_longer_than_the_steps_of_the_index_is_cut_alike() -> None:
    data = b"".join(b"x" * (n % 90) + (b"\r\n" if n % 7 else b"\n") for n in range(3000))
    assert [Text(data).line(n) for n in range(1, 3001)] == [line for line, _ in plain(data)]


@given(DATA, st.lists(st.integers(0, 80), max_size=6))
def test_a_tag_is_the_same_however_the_line_comes(data: bytes, cuts: list[int]) -> None:
    lines, tagger, tags = [line for line, _ in plain(data)], Tagger(), []
    for line in lines:
        at = 0
        for cut in sorted(cut for cut in cuts if cut < len(line)):
            tagger.feed(line[at:cut])
            at = cut
        tagger.feed(line[at:])
        tags.append(tagger.end())
    tags = [*tags[1:], tagger.last()] if lines else []
    framed = [b"", *lines, b""]
    assert tags == [tag_of(*framed[n : n + 3]) for n in range(len(lines))]
    assert tags == [Text(data).tag(n) for n in range(1, len(lines) + 1)]
    assert all(map(is_tag, tags))


def test_a_tag_says_whether_a_line_or_its_neighbours_are_others() -> None:
    tags = {tag_of(*words) for words in ((b"a", b"b", b"c"), (b"ab", b"", b"c"), (b"a", b"b", b""), (b"", b"b", b"c"))}
    assert len(tags) == 4
    assert len(CONSONANTS) ** 4 == 160_000


def test_the_tags_of_many_lines_meet_as_seldom_as_chance_has_it() -> None:
    tags = [tag_of(b"", str(n).encode(), b"") for n in range(20_000)]
    wrong = sum(tag_of(b"", f"{n}!".encode(), b"") == tag for n, tag in enumerate(tags))
    assert wrong <= 5


@given(st.binary(max_size=40))
def test_what_is_no_text_is_found_at_its_first_byte(data: bytes) -> None:
    at = fault_at(data)
    head = data if at is None else data[:at]
    assert b"\0" not in head
    assert head.decode() is not None
    if at is not None and data[at] != 0:
        assert "\ufffd" in data[at:].decode(errors="replace")[:1]


@given(DATA, DATA, SOME, SOME)
def test_common_ends_are_the_whole_lines_that_both_have_there(one: bytes, two: bytes, head: bytes, tail: bytes) -> None:
    old, new = Text(head + one + tail), Text(head + two + tail)
    before, after = plain(old.data), plain(new.data)
    if old.data == new.data:
        return
    if old.start == new.start:
        assert common_ends(old, new) == (_same(before, after), _same(before[::-1], after[::-1]))


def _same(one: list[tuple[bytes, bytes]], two: list[tuple[bytes, bytes]]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
