"""Output files: whatever arrives in whatever pieces, what is kept is true and says what is missing."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandboxes import outputs
from sandboxes.outputs import Outputs, Stream


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(outputs, "SEGMENT_BYTES", 10)


def written(tmp_path: Path, puts: list[tuple[int, bytes]]) -> Stream:
    stream = Stream(tmp_path, "stdout")
    for offset, data in puts:
        stream.put(offset, data)
    return stream


@given(
    content=st.binary(max_size=80),
    cuts=st.lists(st.integers(0, 80), max_size=8),
    repeat=st.integers(0, 20),
    restart=st.booleans(),
)
@example(content=bytes(21), cuts=[], repeat=0, restart=False)
def test_any_pieces_in_order_give_the_whole_or_its_two_ends(tmp_path_factory, content, cuts, repeat, restart):
    original, outputs.SEGMENT_BYTES = outputs.SEGMENT_BYTES, 10
    try:
        directory = tmp_path_factory.mktemp("command")
        stream = Stream(directory, "stdout")
        edges = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
        for start, end in zip(edges, edges[1:], strict=False):
            again = max(0, start - repeat)  # a resumed channel repeats what it is not sure of
            stream.put(again, content[again:end])
            if restart:
                stream = Stream(directory, "stdout")
        text = _read(directory, len(content))
        if len(content) <= 20:
            assert text.content == content
            assert not text.truncated
        else:
            assert (text.head, text.tail) == (content[:10], content[-10:])
            assert text.truncated
        assert text.truncated is stream.truncated
        assert text.total_bytes == len(content)
    finally:
        outputs.SEGMENT_BYTES = original


def _read(directory: Path, total: int) -> outputs.Text:
    original, outputs._directory = outputs._directory, lambda _: directory
    try:
        return outputs.read("cmd_1", "stdout", total)
    finally:
        outputs._directory = original


def test_a_gap_is_never_shown_as_if_the_ends_met(tmp_path, small_segments):
    stream = written(tmp_path, [(0, b"abc"), (7, b"hij")])
    text = _read(tmp_path, 10)
    assert (text.head, text.tail, text.truncated) == (b"abc", b"hij", True)
    assert stream.truncated


def test_a_page_begins_where_bytes_still_are(tmp_path, small_segments, monkeypatch):
    written(tmp_path, [(0, bytes(range(65, 65 + 45)))])
    monkeypatch.setattr(outputs, "_directory", lambda _: tmp_path)
    assert outputs.page("cmd_1", "stdout", offset=8, limit=5) == (8, b"IJ")
    begin, data = outputs.page("cmd_1", "stdout", offset=12, limit=100)
    assert begin > 12
    assert data[0] == 65 + begin
    assert outputs.page("cmd_1", "stdout", offset=45, limit=5) == (45, b"")


def test_many_segments_leave_three_files(tmp_path, small_segments):
    written(tmp_path, [(n * 7, b"1234567") for n in range(50)])
    assert len(list(tmp_path.glob("stdout.*"))) == 3


def test_outputs_of_two_commands_do_not_meet(settings):
    import asyncio

    async def fill() -> None:
        for name in ("cmd_1", "cmd_2"):
            await Outputs(name).put("stderr", 0, name.encode())

    asyncio.run(fill())
    assert outputs.read("cmd_1", "stderr").content == b"cmd_1"
    assert outputs.read("cmd_2", "stderr").content == b"cmd_2"


@pytest.mark.parametrize(("kept_mb", "half"), [(1, 1 << 19), (2, 1 << 20), (10, 5 << 20)])
def test_what_is_kept_is_the_sandboxs_own_measure(tmp_path, monkeypatch, kept_mb, half):
    monkeypatch.setattr(outputs, "_directory", lambda _: tmp_path)
    stream = Outputs("act_1", kept_mb).streams["stdout"]
    block = bytes(range(256)) * 400
    printed = b""
    while len(printed) <= 4 * half:
        stream.put(len(printed), block)
        printed += block
    kept = outputs.read("act_1", "stdout")
    assert (kept.head, kept.tail) == (printed[:half], printed[-half:])
    assert (kept.truncated, stream.truncated) == (True, True)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 3 * half


def test_what_is_removed_while_it_is_read_is_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "_directory", lambda _: tmp_path)
    printed = bytes(range(256)) * (outputs.SEGMENT_BYTES // 128)  # both segments full
    Outputs("act_1").streams["stdout"].put(0, printed)
    pieces = outputs.kept("act_1", "stdout").pieces()
    read = next(pieces)
    for file in tmp_path.iterdir():
        file.unlink()
    assert read + b"".join(pieces) == printed


def test_a_gap_in_a_short_output_hides_nothing_that_was_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "_directory", lambda _: tmp_path)
    stream = Outputs("act_1").streams["stdout"]
    stream.put(0, b"abc")
    stream.put(100, b"after the gap")
    kept = outputs.read("act_1", "stdout")
    assert (kept.head, kept.tail, kept.truncated) == (b"abc", b"after the gap", True)
