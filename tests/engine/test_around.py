"""The part of a file that a match in a very long line is shown with."""

import pytest

from sandboxes.runner.around import look
from sandboxes.runner.ripgrep import WINDOW_BYTES, Hit

LONG = 300_000


def looked(tmp_path, content: bytes, at: int, start: int, match: bytes) -> Hit:
    """Of a match `start` bytes into the line that begins at byte `at`."""
    path = tmp_path / "long"
    path.write_bytes(content)
    hit = Hit(1, start + 1, "as it was")
    hit.place, hit.match = (at, start, start + len(match)), match
    look(str(path), hit)
    return hit


@pytest.mark.parametrize("before", [b"x", "ü".encode(), b"\xff"])
@pytest.mark.parametrize("count", [0, 1, 100, WINDOW_BYTES, LONG])
def test_the_match_is_shown_in_its_window_and_its_column_counts_characters(tmp_path, before, count):
    line = before * count + b"needle" + b"y" * LONG
    hit = looked(tmp_path, b"first\n" + line + b"\r\nlast", 6, len(before) * count, b"needle")
    assert hit.column == count + 1
    assert "needleyy" in hit.text
    assert len(hit.text.strip("…").encode(errors="replace")) <= 3 * WINDOW_BYTES
    assert hit.text.endswith("y…")
    assert hit.text.startswith("…") is (len(before) * count > (WINDOW_BYTES - len(b"needle")) // 2)
    assert before == b"\xff" or "\ufffd" not in hit.text


def test_at_the_end_of_its_line_nothing_of_the_next_is_shown(tmp_path):
    hit = looked(tmp_path, b"x" * LONG + b"needle\r\nnext", 0, LONG, b"needle")
    assert hit.text == "…" + "x" * (WINDOW_BYTES - 6) + "needle"


def test_a_match_longer_than_a_window_is_shown_by_its_beginning(tmp_path):
    hit = looked(tmp_path, b"x" * LONG, 0, 10, b"x" * 4000)
    assert (hit.text, hit.column) == ("…" + "x" * WINDOW_BYTES + "…", 11)


def test_ripgrep_does_not_count_a_bom(tmp_path):
    hit = looked(tmp_path, b"\xef\xbb\xbfneedle" + b"y" * LONG, 0, 0, b"needle")
    assert (hit.column, hit.text.startswith("needleyy")) == (1, True)


@pytest.mark.parametrize(
    "content", [b"", b"short", b"x" * LONG, "\ufeffneedle".encode("utf-16-le") * 1000, b"\xff\xfe" + b"needle" * 9000]
)
def test_what_the_file_does_not_have_there_is_not_shown(tmp_path, content):
    for start, match in ((600, b"needle"), (600, b"needle" * 600)):
        hit = looked(tmp_path, content, 2, start, match)
        assert (hit.text, hit.column) == ("as it was", 601)


@pytest.mark.parametrize("start", [1 << 40, 10**18 - 1])
def test_a_place_that_no_file_has_is_not_looked_for(tmp_path, start):
    """It is what the program in the sandbox says."""
    hit = looked(tmp_path, b"x", 10**18 - 1, start, b"")
    assert hit.column == start + 1


def test_a_file_that_is_gone_or_became_a_link_is_not_read(tmp_path):
    hit = Hit(1, 3, "as it was")
    hit.place, hit.match = (0, 2, 3), b"x"
    (tmp_path / "there").write_bytes(b"xxxx")
    (tmp_path / "link").symlink_to("there")
    for name in ("link", "gone"):
        look(str(tmp_path / name), hit)
        assert (hit.text, hit.column) == ("as it was", 3)
