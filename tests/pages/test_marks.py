"""Marks on commands and colours of output: they help reading, and change not one character."""

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from approvals import draw
from console.pages import bash, colours
from console.pages import draw as markup
from console.pages.marks import Mark
from tests.pages.test_draw import ANY_TEXT, NASTY, Read

SHELL = st.lists(
    st.sampled_from(
        [
            "curl",
            "rm",
            " ",
            "\n",
            "\t",
            "|",
            "&&",
            ";",
            ">",
            ">>",
            "2>&1",
            "<<E\n",
            "<<-'E'\n",
            "E\n",
            "'",
            '"',
            "$(",
            "${",
        ]
        + [
            "$((",
            ")",
            "}",
            "`",
            "\\",
            "\\\n",
            "#x",
            "if",
            "then",
            "fi",
            "case",
            "in",
            "esac",
            ";;",
            "[[",
            "]]",
            "A=",
            "(",
        ]
        + ["$'", "<(", "\u202e", "\u0430", "<b>", "f()", "{", "((", "))", "$x", "!"]
    ),
    max_size=60,
).map("".join)


def programs(text: str) -> list[str]:
    return inks(text, "prog")


def inks(text: str, ink: str) -> list[str]:
    return [text[mark.start : mark.end] for mark in bash.marks(text) if mark.ink == ink]


@given(SHELL | ANY_TEXT | NASTY)
@example("rm\u200b -rf \u0430 'x\n\ty'   ")
def test_marks_change_no_character_of_what_is_drawn(text: str) -> None:
    with_marks, without = Read(str(markup.sheet(text, bash.marks(text)))), Read(str(markup.sheet(text)))
    assert (with_marks.text, with_marks.drawn, with_marks.lines) == (without.text, without.drawn, without.lines)
    assert draw.undrawn(with_marks.text) == text


@given(SHELL | ANY_TEXT | NASTY)
def test_each_character_is_looked_at_once(text: str) -> None:
    found = list(bash._Scan(text).marks())
    assert [mark.start for mark in found] == [0, *(mark.end for mark in found)][: len(found)]
    assert (found[-1].end if found else 0) == len(text)


@given(SHELL)
def test_hidden_characters_keep_their_marks(text: str) -> None:
    def tokens(page: str) -> list[str]:
        return re.findall(r'<span class="(?:esc|glyph bad|glyph|point|tab|trail)"[^>]*>[^<]*</span>', page)

    assert tokens(str(markup.sheet(text, bash.marks(text)))) == tokens(str(markup.sheet(text)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cd /work && rm -rf dist", ["cd", "rm"]),
        ("curl -s x | sh; echo done & wait", ["curl", "sh", "echo", "wait"]),
        ("a\nb\n\n  c", ["a", "b", "c"]),
        ("A=1 B='x y' env C=2 make", ["env"]),
        ("A=1 make -j4", ["make"]),
        ("> out 2>&1 ls < in", ["ls"]),
        ("if ! test -f x; then rm x; else ls; fi", ["test", "rm", "ls"]),
        ("for f in *.py; do wc -l $f; done", ["wc"]),
        ("while read -r l; do echo $l; done < list", ["read", "echo"]),
        ("case $x in a|b) rm 1;; *) ls;; esac; pwd", ["rm", "ls", "pwd"]),
        ('echo "$(curl x | sh)" `id -u`', ["echo", "curl", "sh", "id"]),
        ("diff <(ls a) <(ls b)", ["diff", "ls", "ls"]),
        ("(cd x; make) && { ls; }", ["cd", "make", "ls"]),
        ("'rm' -rf x; r\\m y; \"rm\" z; $CMD w", ["'rm'", "r\\m", '"rm"', "$CMD"]),
        ("f() { rm x; }; f", ["f", "rm", "f"]),
        ("[[ -f a && b < c ]] && rm a", ["rm"]),
        ("x=$((1 + (2 * 3))); echo $x", ["echo"]),
        ("A=(rm ls); echo", ["echo"]),
        ("cu\\\nrl x \\\n  rm", ["cu", "rl"]),
        ("echo a#b # rm", ["echo"]),
        ("python3 - <<'PY'\nimport os\nrm\nPY\nls", ["python3", "ls"]),
        ("cat <<-E >x; ls\n\trm\n\tE\nid", ["cat", "ls", "id"]),
        ("cat <<A <<B\nrm\nA\nrm\nB\nid", ["cat", "id"]),
        ("echo 'rm; rm' \"; rm\" $'\\'; rm'", ["echo"]),
        ('echo "${x:-$(id)}" \'', ["echo", "id"]),
    ],
)
def test_programs_are_what_stands_where_a_command_begins(text: str, found: list[str]) -> None:
    assert programs(text) == found


def test_operators_strings_comments_and_variables_have_their_inks() -> None:
    text = "A=1 curl \"a $B\" 'c' >f 2>&1 |& tee || sh # end"
    assert inks(text, "o") == [">", "2>&1", "|&", "||"]
    assert inks(text, "s") == ['"a ', '"', "'c'"]
    assert inks(text, "c1") == ["# end"]
    assert inks(text, "nv") == ["A=", "$B"]
    assert inks("if x; then y; fi", "k") == ["if", "then", "fi"]


def test_a_mark_goes_around_text_as_text() -> None:
    page = str(markup.sheet("a<b> && c\u200bd\n", bash.marks("a<b> && c\u200bd\n")))
    assert '<b class="prog">a</b><span class="o">&lt;</span>b<span class="o">&gt;</span>' in page
    assert '<b class="prog">c</b><span class="esc">⟨U+200B⟩</span><b class="prog">d</b>' in page


HELD_UP = [
    "$'" + r"\00" * 9,
    "<<B",
    "$(",
    "`",
    '"',
    "${",
    "((",
    "a ",
    "1",
    "'",
    "\\",
    "<<'",
    "case x in ",
    "A=(",
    "x" * 99,
]


@pytest.mark.parametrize("part", HELD_UP)
def test_no_text_holds_the_marking_up(part: str) -> None:
    text = (part * (bash.LIMIT_BYTES // len(part)))[: bash.LIMIT_BYTES]
    began = time.process_time()
    bash.marks(text)
    assert time.process_time() - began < 3


def test_what_is_too_long_or_fails_is_shown_without_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bash.marks("ls;" * 30_000) == []
    assert bash.marks("é" * 40_000) == []
    monkeypatch.setattr(bash._Scan, "_code", lambda self, frame: 1 / 0)
    assert bash.marks("ls") == []


# ---- output ----
COLOUR = r"(?:[34]8;(?:5;(?:\d|\d\d|1\d\d|2[0-4]\d|25[0-5])|2(?:;(?:\d|\d\d|1\d\d|2[0-4]\d|25[0-5])){3}))"
ONE = rf"(?:{COLOUR}|0|[1-4]|2[2-4]|3[0-79]|4[0-79]|9[0-7]|10[0-7]|)"
WEIGHT_AND_COLOUR = re.compile(rf"\x1b\[{ONE}(?:;{ONE})*m")
SGR = st.lists(
    st.sampled_from(
        ["0", "1", "2", "7", "8", "31", "34", "38", "44", "5", "48", "2", "90", "255", "256", "", "107", "30"]
    ),
    max_size=6,
).map(lambda codes: f"\x1b[{';'.join(codes)}m")
PRINTED = st.lists(SGR | NASTY | st.sampled_from(["\x1b", "\x1b[2J", "\x1b]8;;x\x07", "\r", "a b"]), max_size=12).map(
    "".join
)


@given(PRINTED | ANY_TEXT)
@example("\x1b[31ma\nb\x1b[0m")
@example("\x1b[38;5;1;8mhidden")
@example("\x1b[8mconcealed\x1b[28m")
def test_output_is_drawn_but_for_its_colour_sequences(text: str) -> None:
    assert draw.undrawn(Read(str(markup.output(text))).text) == WEIGHT_AND_COLOUR.sub("", text)


def test_colours_are_classes_of_the_sheet() -> None:
    drawn = str(
        markup.output("\x1b[1;32mPASSED\x1b[0m 8 \x1b[31mFAILED\x1b[39m <1> \x1b[44mnote\x1b[m \x1b[91m.\n-\x1b[0m")
    )
    assert drawn == (
        '<span class="a1 a32">PASSED</span> 8 <span class="a31">FAILED</span> &lt;1&gt; <span class="a44">note</span> '
        '<span class="a31">.</span>\n<span class="a31">-</span>'
    )


@pytest.mark.parametrize("hiding", ["8", "7", "5", "0;8", "31;8", "28", "38;5", "38;5;256", "58;5;1"])
def test_what_could_hide_text_is_shown_and_has_no_effect(hiding: str) -> None:
    drawn = str(markup.output(f"\x1b[{hiding}mtext"))
    assert drawn == f'<span class="esc">⟨U+001B⟩</span>[{hiding}mtext'


@pytest.mark.parametrize("pair", ["31;41", "30", "30;40", "38;5;0", "38;2;0;0;0", "47;97", "34;44"])
def test_no_text_is_drawn_on_its_own_colour(pair: str) -> None:
    _, marks = colours.read(f"\x1b[{pair}mtext")
    assert not any(re.search("a4", mark.ink) and re.search("a[39]", mark.ink) for mark in marks)
    assert all(mark in (Mark(0, 4, "a31"), Mark(0, 4, "a34")) for mark in marks)


def test_other_escapes_stay_tokens() -> None:
    drawn = Read(str(markup.output("\x1b[2J\x1b[1A\x1b]0;t\x07\x08\r\x9b31m"))).text
    assert drawn == "⟨U+001B⟩[2J⟨U+001B⟩[1A⟨U+001B⟩]0;t⟨U+0007⟩⟨U+0008⟩⟨U+000D⟩⟨U+009B⟩31m"
