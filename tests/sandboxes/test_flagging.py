"""What the text that a write replaces explains of its own."""

import pytest

from approvals.digest import INLINE_BYTES
from sandboxes import flagging
from sandboxes.toolsets import write


def flags(old: bytes, new: bytes, path: str = "a.txt") -> tuple[str, ...]:
    checked = write.validate({"path": path, "content": new}, None)
    return flagging.over(old, checked, flagging.of("write", checked, None))


@pytest.mark.parametrize("size", [1, INLINE_BYTES, 1 << 20])
@pytest.mark.parametrize(
    ("old", "new", "is_flagged"),
    [
        (b"a\r\n", b"a\r\nb\r\n", False),
        (b"a\r\n", b"a\r\nb\rc\r\n", True),
        (b"a\r\n", b"a\r\nb\n", True),
        (b"a\r\n", b"a\r\nb", True),
        (b"a\n", b"a\r\nb\r\n", True),
        (b"a\r\nb\n", b"a\r\nb\r\n", True),
        (b"\xff\r\n", b"a\r\n", False),
        (b"", b"a\r\n", True),
        (b"a\r\n", "\u200ba\r\n".encode(), True),
        (b"a\r\n", b"a\n", False),
    ],
)
def test_line_endings_that_a_file_had_before_hide_nothing_and_all_else_is_flagged(size, old, new, is_flagged):
    assert flags(old, b"x" * size + new) == (("hidden_characters",) if is_flagged else ())


def test_what_its_path_hides_is_flagged_whatever_its_lines_end_in():
    assert flags(b"a\r\n", b"b\r\n", path="a\u200b.txt") == ("hidden_characters",)


@pytest.mark.parametrize(("size", "flag"), [(10, "hidden_characters"), (INLINE_BYTES + 1, "binary")])
def test_a_text_with_a_nul_is_drawn_when_it_is_short_and_binary_when_it_is_not(size, flag):
    assert flags(b"a", b"x" * (size - 1) + b"\0") == (flag,)


def test_what_is_no_text_is_binary_whatever_it_replaces():
    assert flags(b"a\r\n", b"\xff\r\n") == ("binary",)
