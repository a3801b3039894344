"""Text that agents made is drawn whole, safely and exactly."""

import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from approvals import draw
from approvals.characters import is_readable, look_alikes
from console.pages import diff
from console.pages import draw as markup

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=300)
NASTY = st.text(st.sampled_from("ab \t\n\r<>&\"'⟨⟩U+20\u0430\u202e\u200b\u0301\u2800\ud800\udcff日א"), max_size=120)
BIDI_CONTROL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
NOT_SEEN_BY_ISPRINTABLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u2800\u3164\ufe0f\uffa0\U000e0100"


class Read(HTMLParser):
    """The document's text without the glyphs and notes, which double what the tokens say."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.drawn, self.lines, self.open = "", "", [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        assert tag in ("span", "b"), f"an agent's text became <{tag}>"
        assert {name for name, _ in attrs} <= {"class", "title"}
        self.open.append(dict(attrs).get("class", ""))
        if self.open[-1].startswith("ln"):
            self.lines.append("")

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.drawn += data
        if not any(name.split()[0] in ("glyph", "note") for name in self.open if name):
            self.text += data
            if self.lines:
                self.lines[-1] += data


@given(ANY_TEXT | NASTY)
@example("")
@example("\n")
@example("⟨U+202E⟩")
@example("⟨0xFF⟩")
def test_any_text_can_be_read_back_from_its_drawing(text: str) -> None:
    assert draw.undrawn(draw.plain(text)) == text
    assert draw.undrawn(draw.one_line(text)) == text


@given(ANY_TEXT | NASTY)
def test_a_drawing_is_printable_ascii_but_for_the_brackets_of_tokens(text: str) -> None:
    drawn = re.sub(r"⟨(U\+[0-9A-F]{4,6}|0x[0-9A-F]{2})⟩", "", draw.plain(text))
    assert re.fullmatch(r"[\n\t\x20-\x7e]*", drawn)
    assert not set("\n\t") & set(draw.one_line(text))


@given(ANY_TEXT | NASTY)
def test_pieces_are_the_line(text: str) -> None:
    for line in draw.lines(text):
        assert "".join(piece.text for piece in draw.pieces(line.removesuffix("\n"))) == line.removesuffix("\n")
    assert "".join(draw.lines(text)) == text


@given(ANY_TEXT | NASTY)
def test_a_sheet_read_from_the_page_is_the_text(text: str) -> None:
    page = Read(str(markup.sheet(text)))
    assert draw.undrawn(page.text) == text
    assert [draw.undrawn(line) for line in page.lines] == draw.lines(text)


@given(ANY_TEXT | NASTY)
def test_blocks_and_names_read_from_the_page_are_the_text(text: str) -> None:
    assert draw.undrawn(Read(str(markup.block(text))).text) == text
    assert draw.undrawn(Read(str(markup.inline(text))).text) == text


@given(ANY_TEXT | NASTY)
def test_no_hidden_character_reaches_a_page(text: str) -> None:
    drawn = Read(str(markup.sheet(text))).drawn + str(markup.inline(text)) + str(markup.block(text))
    for char in drawn:
        assert char in "\n\t" or is_readable(char), f"U+{ord(char):04X} survived"
        assert unicodedata.category(char) not in ("Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Mn", "Me", "Mc")


@pytest.mark.parametrize("char", [*BIDI_CONTROL, *NOT_SEEN_BY_ISPRINTABLE, "\u2028", "\u2029", "\x00", "\x1b", "\x7f"])
def test_each_invisible_character_is_a_token_and_counted(char: str) -> None:
    text = f"r{char}m x"
    token = f'<span class="esc">⟨U+{ord(char):04X}⟩</span>'
    assert str(markup.sheet(text)) == f'<span class="ln marked">r{token}m x</span>'
    assert draw.survey(text).hidden == {char: 1}


def test_bytes_that_are_no_utf8_show_as_bytes() -> None:
    assert draw.plain(b"a\xff\xfeb".decode("utf-8", "surrogateescape")) == "a⟨0xFF⟩⟨0xFE⟩b"


def test_a_look_alike_letter_is_marked_and_named() -> None:
    drawn = str(markup.sheet("curl https://cdn.ex\u0430mple.net\n"))
    assert 'ex<span class="glyph bad">\u0430</span><span class="esc">⟨U+0430⟩</span>mple' in drawn
    assert draw.survey("ex\u0430mple").lookalikes == {"\u0430": 1}


@pytest.mark.parametrize("text", ["Gr\u00f6\u00dfe", "\u043f\u0440\u0438\u0432\u0435\u0442", "\u65e5\u672c\u8a9e"])
def test_real_words_of_other_alphabets_are_shown_with_code_points_and_not_accused(text: str) -> None:
    found = draw.survey(text)
    assert not found.lookalikes
    assert not found.hidden
    assert found.foreign
    assert "⟨U+" in str(markup.sheet(text))


@pytest.mark.parametrize(
    "text", ["\uff52\uff4d", "\U0001d42b\U0001d426", "a\u2215b", "\u201cx\u201d", "\u0441\u043e\u0440"]
)
def test_what_passes_for_ascii_is_accused(text: str) -> None:
    assert look_alikes(text)


def test_tabs_and_blanks_stay_what_they_are_and_are_counted() -> None:
    text = "\t" * 500 + "; curl" + " " * 30 + "x   \n"
    drawn = str(markup.sheet(text))
    assert drawn.count('<span class="tab">\t</span>') == 500
    assert f'<span class="trail" title="30 spaces">{" " * 30}</span>' in drawn
    found = draw.survey(text)
    assert (found.tabs, found.trailing_blanks) == (500, 3)


def test_blank_lines_are_announced_and_what_follows_is_marked() -> None:
    text = "ls" + "\n" * 201 + "rm -rf ~"
    drawn = str(markup.sheet(text))
    assert '<span class="note">200 blank lines follow</span>' in drawn
    assert drawn.endswith('<span class="ln marked">rm -rf ~</span>')
    found = draw.survey(text)
    assert (found.lines, found.blank_lines) == (202, 200)


def test_the_last_line_has_a_newline_only_if_the_text_has_one() -> None:
    assert str(markup.sheet("a")) == '<span class="ln">a</span>'
    assert str(markup.sheet("a\n")) == '<span class="ln">a\n</span>'


def test_a_large_text_is_drawn_whole() -> None:
    text = "x = 1  # \u65e5\u672c\n" * 40_000
    page = str(markup.sheet(text))
    assert page.count('<span class="ln">') == 40_000


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c\u202e\n", "\tx\n"]), max_size=12).map("".join)


@given(LINES | NASTY, LINES | NASTY)
def test_a_diff_holds_both_files_whole(old: str, new: str) -> None:
    found = diff.rows(old, new)
    assert "".join(line for kind, _, _, line in found if kind != "add") == old
    assert "".join(line for kind, _, _, line in found if kind != "del") == new
    assert [n for _, n, _, _ in found if n] == list(range(1, len(draw.lines(old)) + 1))
    assert [n for _, _, n, _ in found if n] == list(range(1, len(draw.lines(new)) + 1))


def test_a_costly_diff_falls_back_to_all_old_and_all_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MOST_PAIRS", 0)
    assert [row[0] for row in diff.rows("a\nb\nc\n", "a\nc\nd\n")] == ["same", "del", "del", "add", "add"]
