"""What ripgrep prints, read record by record: however it is cut into pieces, and whatever it is."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxes.runner import ripgrep
from sandboxes.runner.batches import Batch, unreadable
from sandboxes.runner.ripgrep import RECORD_BYTES, WINDOW_BYTES, Counts, FileHits, Records, Wanted, command, window

NEEDLE = Wanted("needle", literal=False, ignore_case=False, context=0, mode="lines")


def said(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


def record(kind: str, **data) -> bytes:
    return json.dumps({"type": kind, "data": data}, separators=(",", ":")).encode() + b"\n"


def begin(path: bytes) -> bytes:
    return record("begin", path=said(path))


def match(
    path: bytes, number: int, line: bytes, *places: tuple[int, int], kind: str = "match", offset: int = 0
) -> bytes:
    found = [{"match": said(line[start:end]), "start": start, "end": end} for start, end in places]
    return record(
        kind, path=said(path), lines=said(line), line_number=number, absolute_offset=offset, submatches=found
    )  # fmt: skip


def end(path: bytes, binary_offset: int | None = None) -> bytes:
    return record("end", path=said(path), binary_offset=binary_offset, stats={})


def read(data: bytes, *, context: int = 0, piece: int = 1 << 30) -> list[FileHits]:
    records = Records(context)
    return [file for at in range(0, len(data), piece) for file in records.feed(data[at : at + piece])]


@given(st.integers(1, 200))
def test_pieces_may_end_anywhere(piece):
    name = b"a:1:\xff\n"
    told = begin(name) + match(name, 3, b"\xc3\xbc needle\r\n", (3, 9)) + end(name)
    (file,) = read(told + begin(b"b") + end(b"b", 7), piece=piece)[:1]
    (hit,) = file.hits
    assert (file.path, hit.line, hit.column, hit.text) == (name, 3, 3, "ü needle")


def test_a_file_with_a_nul_is_told_as_one():
    (file,) = read(begin(b"b") + match(b"b", 1, b"needle\n", (0, 6)) + end(b"b", 6))
    assert file.is_binary


def test_lines_around_a_match_are_given_once_to_the_match_they_follow_or_else_precede():
    lines = [("context", 1), ("match", 2), ("context", 3), ("context", 5), ("match", 6), ("match", 7), ("context", 8)]
    told = b"".join(match(b"f", number, b"x%d\n" % number, (0, 1), kind=kind) for kind, number in lines)
    (file,) = read(begin(b"f") + told + end(b"f"), context=1)
    around = [([line for line, _ in hit.before], hit.line, [line for line, _ in hit.after]) for hit in file.hits]
    assert around == [([1], 2, [3]), ([5], 6, []), ([], 7, [8])]


def test_a_line_with_very_many_matches_is_shown_at_its_first():
    line = b"ab" * 120_000
    told = match(b"f", 9, line + b"\n", *((at, at + 1) for at in range(0, len(line), 2)))
    assert len(told) > RECORD_BYTES
    (file,) = read(begin(b"f") + told + match(b"f", 10, b"ab\n", (1, 2)) + end(b"f"), piece=65536)
    assert [(hit.line, hit.column, hit.place) for hit in file.hits] == [(9, 1, (0, 0, 1)), (10, 2, None)]


LONG = 2 * RECORD_BYTES


@pytest.mark.parametrize("piece", [65536, 65521])
def test_a_line_longer_than_any_record_is_not_held_and_its_first_match_is_placed(piece):
    line = b'"x\\' * (LONG // 3) + "ü needle".encode() + b"y" * 500 + b" needle\n"
    at = line.index(b"needle")
    records, most = Records(0), 0
    files = []
    data = begin(b"f") + match(b"f", 4, line, (at, at + 6), (len(line) - 7, len(line) - 1), offset=77)
    data += match(b"f", 5, b"needle\n", (0, 6)) + end(b"f")
    for start in range(0, len(data), piece):
        files += records.feed(data[start : start + piece])
        most = max(most, len(records._buffer) + sum(map(len, records._long._parts if records._long else ())))
    assert most < RECORD_BYTES + 200_000
    ((first, second),) = (file.hits for file in files)
    assert (first.line, first.column, first.place, first.match) == (4, at + 1, (77, at, at + 6), b"needle")
    assert (first.text, second.line, second.place) == ("…needle…", 5, None)


def test_only_a_record_that_was_cut_here_is_taken_for_one():
    """The program may be anything: what it calls cut would be held, and looked for in the file."""
    told = json.loads(match(b"f", 4, b"needle " * 1000 + b"\n", (0, 6)))
    told["data"] |= {"cut": True, "absolute_offset": 1}
    told["data"]["submatches"][0]["match"] = {"text": "x" * (RECORD_BYTES // 2)}
    ((hit,),) = (file.hits for file in read(begin(b"f") + json.dumps(told).encode() + b"\n" + end(b"f")))
    assert (hit.place, hit.match, hit.column) == (None, b"", 1)
    assert hit.text.startswith("needle needle")


def test_a_match_that_is_itself_longer_than_any_record_is_shown_by_its_beginning():
    line = b"ab\t" * (LONG // 3)
    told = begin(b"f") + match(b"f", 2, line, (3, len(line)), offset=9) + end(b"f")
    ((hit,),) = (file.hits for file in read(told, piece=65536))
    assert hit.place == (9, 3, len(line))
    assert line[3:].startswith(hit.match)
    assert len(hit.match) > WINDOW_BYTES
    assert hit.text == "…" + "ab\t" * (WINDOW_BYTES // 3) + "a…"


def test_a_long_line_that_is_no_utf_8_is_placed_too():
    line = b"\xff" * LONG + b"\xfeneedle"
    told = begin(b"f") + match(b"f", 1, line, (LONG, LONG + 7)) + end(b"f")
    ((hit,),) = (file.hits for file in read(told, piece=65536))
    assert (hit.place, hit.match, hit.text) == ((0, LONG, LONG + 7), b"\xfeneedle", "…\ufffdneedle…")


def test_a_long_line_beside_a_match_is_no_match_and_shown_by_its_beginning():
    told = match(b"f", 1, b"needle\n", (0, 6)) + match(b"f", 2, b"x" * LONG + b"\n", kind="context")
    ((hit,),) = (file.hits for file in read(begin(b"f") + told + end(b"f"), context=1, piece=65536))
    assert (hit.line, hit.after) == (1, [(2, "x" * WINDOW_BYTES + "…")])


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"match", b"context", b"begin"]))
def test_a_long_record_of_no_sense_breaks_nothing(data, kind):
    head = b'{"type":"%s","data":{"lines":{"text":"' % kind + b"x" * RECORD_BYTES
    for tail in (data, b'"},"line_number":' + data, b'"},"line_number":1,"absolute_offset":1,"submatches":[' + data):
        records = Records(1)
        list(records.feed(begin(b"f") + head + tail.replace(b"\n", b"")))
        assert [file.path for file in records.feed(b"\n" + end(b"f"))] == [b"f"]


@given(st.one_of(st.binary(max_size=300), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "data", "path", "text", "bytes", "lines", "line_number", "submatches", "start"]), inner
    ),
).map(lambda found: json.dumps(found).encode())))  # fmt: skip
def test_whatever_it_prints_nothing_breaks(data):
    records = Records(1)
    list(records.feed(begin(b"f") + data + b"\n"))
    list(Counts().feed(data + b"\n"))


@pytest.mark.parametrize("kind", ["begin", "match", "context", "end"])
@pytest.mark.parametrize("data", [None, 7, {}, {"path": {}}, {"path": {"bytes": "%"}}, {"lines": 1, "submatches": 1}])
def test_a_record_of_no_sense_is_passed_over(kind, data):
    lie = json.dumps({"type": kind, "data": data}).encode() + b"\n"
    told = begin(b"f") + match(b"f", 1, b"needle\n", (0, 6)) + end(b"f")
    assert [file.path for file in read(lie + told)][-1:] == [b"f"]


def test_counts_of_files_with_any_name():
    told = b"a\x003\r\ntwo\nlines\x001\nno number\x00x\n"
    files = [file for at in range(len(told)) for file in Counts().feed(told)]
    assert [(file.path, file.count) for file in files[:2]] == [(b"a", 3), (b"two\nlines", 1)]
    counts = Counts()
    in_pieces = [file.count for at in range(len(told)) for file in counts.feed(told[at : at + 1])]
    assert in_pieces == [3, 1]


@given(st.text(max_size=600), st.integers(0, 2000), st.integers(0, 900))
def test_a_window_is_short_and_shows_where_the_match_begins(text, start, length):
    line = text.encode(errors="replace")
    start = min(start, len(line))
    shown = window(line, start, min(start + length, len(line)))
    assert len(shown.strip("…").encode()) <= max(WINDOW_BYTES, 0)
    if len(line) <= WINDOW_BYTES:
        assert shown == line.decode()


def test_a_match_in_a_long_line_is_inside_its_window():
    line = b"x" * 300_000 + b"needle" + b"y" * 300_000
    assert "xneedley" in window(line, 300_000, 300_006)
    assert window(line, 0, 3).endswith("…")
    assert window(line, len(line) - 2, len(line)).endswith("yy")
    assert "\ufffd" not in window("ü".encode() * 5000, 5001, 5003)


def test_a_pattern_is_never_an_option_and_a_file_is_never_one():
    wanted = Wanted("--pre=./x.sh", literal=True, ignore_case=False, context=2, mode="lines")
    argv = command("/usr/bin/rg", wanted, ["./-f"], most=11, in_order=True)
    assert argv[argv.index("--") :] == ["--", "./-f"]
    assert "--regexp=--pre=./x.sh" in argv
    assert {"--no-config", "--crlf", "--json", "--max-count=11", "--threads=1"} <= set(argv)


def test_a_batch_takes_no_file_that_it_was_not_asked_for_and_none_twice():
    batch = Batch("/work", ["a", "b"], NEEDLE)
    for name, line in ((b"./b", 1), (b"/etc/passwd", 2), (b"./a", 3), (b"./b", 4)):
        batch.feed(begin(name) + match(name, line, b"needle\n", (0, 6)) + end(name))
    assert [(name, hit.line) for name, hit, _ in batch.entries() if hit] == [("a", 3), ("b", 1)]


def test_what_was_found_in_a_file_counts_when_time_is_over_in_its_middle():
    batch = Batch("/work", ["a"], NEEDLE)
    batch.feed(begin(b"./a") + match(b"./a", 1, b"needle\n", (0, 6)))
    assert batch.entries() == []
    batch.end_here()
    assert len(batch.entries()) == 1


def test_counts_of_files_with_a_nul_are_dropped(tmp_path):
    (tmp_path / "bin").write_bytes(b"needle\0")
    (tmp_path / "text").write_bytes(b"needle")
    batch = Batch(str(tmp_path), ["bin", "text"], Wanted("needle", False, False, 0, mode="count"))
    batch.feed(b"./bin\x001\n./text\x001\n")
    assert ([name for name, _, _ in batch.entries()], batch.binary) == (["text"], 1)


@pytest.mark.parametrize(
    ("stderr", "files"),
    [
        (b"", 0), (b"./a: Permission denied (os error 13)\n", 1), (b"rg: ./a b: Permission denied (os error 13)\n", 1),
        (b"./a: No such file or directory (os error 2)\n", 0), (b"regex parse error:\n    f(\n     ^\n", None),
        (b"./a: Permission denied (os error 13)\nmemory allocation of 9 bytes failed\n", None),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read_are_told_from_patterns_that_are_none(stderr, files):
    assert unreadable(stderr) == files


def test_nothing_of_the_home_is_taken_for_ripgrep():
    assert not any(place.startswith("/home") for place in ripgrep.ENV["PATH"].split(":"))


PCRE2 = "\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around.\n"
MULTILINE = (
    "\n\nConsider enabling multiline mode with the --multiline flag (or -U for short).\n"
    "When multiline mode is enabled, new line characters can be matched.\n"
)


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        ("rg: unclosed group.\n", "unclosed group"),
        ("error: look-around is not supported" + PCRE2, "error: look-around is not supported"),
        (
            "the literal '\"\\n\"' is not allowed in a regex" + MULTILINE,
            "the literal '\"\\n\"' is not allowed in a regex; a match lies within one line",
        ),
        ("Compiled regex exceeds size limit.\nUse the --regex-size-limit flag.\n", "Compiled regex exceeds size limit"),
    ],
)
def test_what_is_wrong_with_a_pattern_is_told_without_advice_that_no_caller_can_take(stderr, told):
    assert ripgrep.fault(stderr.encode()) == told
