"""A U+000D that ends a line is a line ending only where every line, old and new, ends so."""

import pytest

from console.pages import sheets


@pytest.mark.parametrize(
    ("old", "new", "odd"),
    [
        ("a\r\n", "a\r\nb\r\n", 0),
        ("a\r\n", "a\r\nb\rc\r\n", 1),
        ("a\r\n", "a\r\nb\r\r\n", 1),
        ("a\r\n", "a\r\nb\n", 1),
        ("a\r\n", "a\r\nb", 1),
        ("a\n", "a\r\nb\r\n", 2),
        ("", "a\r\n", 1),
    ],
)
def test_line_endings_of_a_crlf_file_are_no_hidden_characters_and_all_else_is(old, new, odd):
    sheet = sheets._diff("f", [], old, new, "change")
    assert sheet.survey
    assert sum(sheet.survey.hidden.values()) == odd
    is_crlf = old.endswith("\r\n") and new.endswith("\r\n")
    assert ("CRLF line endings" in sheet.about) is is_crlf
    assert sheet.survey.size_bytes == len(new.encode())
    assert "U+000D" in str(sheet.diff)
