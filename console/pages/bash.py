"""Marks for a command: programs and operators, because they decide what a line does; strings, comments, variables.

One pass forward over the text, each character once, whatever the text is: agents write it, and the patterns of common
lexers can be held up for minutes by sixty bytes. A reading aid that may err on odd syntax; must never be asked what a
command does, and never fail: without marks a card shows the same text.
"""

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from .marks import Mark, joined

LIMIT_BYTES = 64 << 10
GO_ON = {"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "coproc"}  # a command follows
OTHERS = {"fi", "done", "esac", "}", "for", "select", "case", "function", "[["}
_log = logging.getLogger(__name__)

# Possessive, so that nothing is tried twice.
_SPAN = r"\$\(\(|\$\(|\$\{|\$[A-Za-z_]\w*+|\$[0-9@*#?$!-]|`"
_CODE = re.compile(
    rf"""(?P<newline>\n) | (?P<gap>[^\S\n]++) | (?P<joint>\\\n) | (?P<ansi>\$'(?:[^'\\]|\\.)*+'?) | (?P<span>{_SPAN})
    | (?P<substitution>[<>]\() | (?P<heredoc><<-?(?!<)) | (?P<redirect>&>>?|<<<|<>|[<>]&(?:\d++-?|-)?|>>|>\||[<>])
    | (?P<then>&&|\|\||\|&|;;&|;&|;;|[|;&]) | (?P<open>\() | (?P<close>\)) | (?P<single>'[^']*+'?) | (?P<quote>")
    | (?P<plain>\\.|[^\s\\$`'"<>&|;()]++|.)""",
    re.VERBOSE | re.DOTALL,
)
_DOUBLE = re.compile(rf"""(?P<span>{_SPAN}) | (?P<end>") | (?P<plain>\\.|[^"\\$`]++|.)""", re.VERBOSE | re.DOTALL)
_PARAM = re.compile(
    rf"""(?P<span>{_SPAN}) | (?P<quote>") | (?P<end>\}}) | (?P<plain>\\.|[^"\\$`}}]++|.)""", re.VERBOSE | re.DOTALL
)
_SUM = re.compile(
    rf"""(?P<span>{_SPAN}) | (?P<quote>") | (?P<open>\() | (?P<close>\)) | (?P<plain>\\.|[^"\\$`()]++|.)""",
    re.VERBOSE | re.DOTALL,
)
_FD = re.compile(r"\d++(?=[<>])")
_COMMENT = re.compile(r"#[^\n]*+")
_NAME = re.compile(r"[A-Za-z_]\w*+(?:\[[^\]\s]*+\])?\+?=")
_DELIMITER = re.compile(r"""[ \t]*+((?:'[^'\n]*+'|"[^"\n]*+"|\\.|[^\s;&|<>()'"\\`])++)""")


@dataclass(slots=True)
class Frame:
    """What is open: commands up to a closer, a quotation, an expansion, or a sum in parentheses."""

    kind: Literal["code", "words", "double", "param", "sum"]
    closer: str = ""
    ink: str = ""  # of a quotation
    depth: int = 0  # of a sum
    expects: bool = False  # the next word is a program
    word: str | None = None  # the ink of the word that is open
    target: bool = False  # the next word is where a redirection goes
    test: bool = False  # within [[ ]]
    cases: list[str] = field(default_factory=list)  # head, pattern or body of each open `case`

    @property
    def in_pattern(self) -> bool:
        return bool(self.cases) and self.cases[-1] == "pattern"

    def command(self) -> None:
        """Here a command may begin."""
        self.word, self.target = None, False
        self.expects = self.kind == "code" and not self.test and not self.in_pattern


def marks(text: str) -> list[Mark]:
    """None for what is too long; never raises."""
    try:
        if len(text.encode("utf-8", "surrogatepass")) > LIMIT_BYTES:
            return []
        return joined(_Scan(text).marks())
    except Exception:
        _log.exception("Marking a command failed; it is shown without marks")
        return []


class _Scan:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.stack = [Frame("code", expects=True)]
        self.heredocs: list[tuple[str, bool]] = []

    def marks(self) -> Iterator[Mark]:
        read: dict[str, Callable[[Frame], Iterator[Mark]]] = {
            "code": self._code, "words": self._code, "double": self._double, "param": self._param, "sum": self._sum,
        }  # fmt: skip
        while self.at < len(self.text):
            yield from read[self.stack[-1].kind](self.stack[-1])

    def _take(self, end: int, ink: str) -> Mark:
        mark = Mark(self.at, end, ink)
        self.at = end
        return mark

    # ---- commands ----
    def _code(self, frame: Frame) -> Iterator[Mark]:
        if frame.word is None and (comment := _COMMENT.match(self.text, self.at)):
            yield self._take(comment.end(), "c1")
            return
        if frame.word is None and (number := _FD.match(self.text, self.at)):
            yield self._take(number.end(), "o")
        found = _CODE.match(self.text, self.at)
        assert found  # `.` takes what nothing else does
        yield from getattr(self, f"_{found.lastgroup}")(frame, found.end())

    def _newline(self, frame: Frame, end: int) -> Iterator[Mark]:
        frame.command()
        yield self._take(end, "")
        while self.heredocs:
            yield self._take(self._heredoc_end(*self.heredocs.pop(0)), "s")

    def _heredoc_end(self, delimiter: str, tabs: bool) -> int:
        at = self.at
        while at < len(self.text):
            after = self.text.find("\n", at)
            after = len(self.text) if after < 0 else after
            line = self.text[at:after]
            if (line.lstrip("\t") if tabs else line) == delimiter:
                return after
            at = after + 1
        return len(self.text)

    def _gap(self, frame: Frame, end: int) -> Iterator[Mark]:
        frame.word = None
        yield self._take(end, "")

    def _joint(self, frame: Frame, end: int) -> Iterator[Mark]:
        """A line that goes on: within a word too."""
        yield self._take(end, "")

    def _then(self, frame: Frame, end: int) -> Iterator[Mark]:
        if frame.cases and self.text[self.at : end] in (";;", ";&", ";;&"):
            frame.cases[-1] = "pattern"
        frame.command()
        yield self._take(end, "o")

    def _redirect(self, frame: Frame, end: int) -> Iterator[Mark]:
        frame.word, frame.target = None, self.text[end - 1] in "<>&|"  # not of `2>&1`, which names its target
        yield self._take(end, "o")

    def _heredoc(self, frame: Frame, end: int) -> Iterator[Mark]:
        tabs = self.text[self.at : end] == "<<-"
        yield self._take(end, "o")
        if found := _DELIMITER.match(self.text, self.at):
            self.heredocs.append((re.sub(r"['\"\\]", "", found[1]), tabs))
            yield self._take(found.end(), "s")
        frame.word = None

    def _open(self, frame: Frame, end: int) -> Iterator[Mark]:
        if frame.test or frame.in_pattern:
            frame.command()
            yield self._take(end, "o")
        elif frame.word is not None and self.text.startswith("()", self.at):  # a function's name is before it
            frame.command()
            yield self._take(end + 1, "o")
        elif frame.word is None and self.text.startswith("((", self.at):
            self.stack.append(Frame("sum", depth=2))
            yield self._take(end + 1, "o")
        else:  # a subshell, or an array or a pattern inside a word
            commands = frame.word is None
            self.stack.append(Frame("code" if commands else "words", closer=")", expects=commands))
            yield self._take(end, "o")

    def _close(self, frame: Frame, end: int) -> Iterator[Mark]:
        if frame.in_pattern:
            frame.cases[-1] = "body"
            frame.command()
        elif frame.closer == ")" and not frame.test:
            self.stack.pop()
        yield self._take(end, "o")

    # ---- words ----
    def _ink(self, frame: Frame, own: str) -> str:
        """Of a part of a word: a program's in the ink of programs, whatever it is made of."""
        if frame.word is None:
            program = frame.expects and not frame.target
            frame.word, frame.target = "prog" if program else "", False
            frame.expects = frame.expects and not program
        return frame.word or own

    def _single(self, frame: Frame, end: int) -> Iterator[Mark]:
        yield self._take(end, self._ink(frame, "s"))

    _ansi = _single

    def _quote(self, frame: Frame, end: int) -> Iterator[Mark]:
        ink = self._ink(frame, "s") if frame.kind in ("code", "words") else "s"
        self.stack.append(Frame("double", ink=ink))
        yield self._take(end, ink)

    def _plain(self, frame: Frame, end: int) -> Iterator[Mark]:
        if frame.word is not None:
            yield self._take(end, frame.word)
            return
        word = self.text[self.at : end]
        whole = end == len(self.text) or self.text[end] in " \t\n;&|()<>"
        if whole and self._is_keyword(frame, word):
            yield self._take(end, "k")
        elif frame.expects and not frame.target and (found := _NAME.match(self.text, self.at, end)):
            frame.word = ""
            yield self._take(found.end(), "nv")
            yield self._take(end, "")
        else:
            yield self._take(end, self._ink(frame, ""))

    def _is_keyword(self, frame: Frame, word: str) -> bool:
        if frame.test and word == "]]":
            frame.test = False
        elif frame.in_pattern and word == "esac":
            frame.cases.pop()
        elif frame.cases and frame.cases[-1] == "head" and word == "in":
            frame.cases[-1] = "pattern"
        elif not frame.expects or frame.target or word not in GO_ON | OTHERS:
            return False
        else:
            frame.expects, frame.test = word in GO_ON, word == "[["
            if word == "case":
                frame.cases.append("head")
            elif word == "esac" and frame.cases:
                frame.cases.pop()
        return True

    # ---- expansions ----
    def _span(self, frame: Frame, end: int) -> Iterator[Mark]:
        token = self.text[self.at : end]
        if token == "`" and frame.closer == "`":
            self.stack.pop()
            yield self._take(end, "o")
            return
        ink = self._ink(frame, "nv") if frame.kind in ("code", "words") else "nv"
        if token == "$((":
            self.stack.append(Frame("sum", depth=2))
        elif token in ("$(", "`"):
            self.stack.append(Frame("code", closer="`" if token == "`" else ")", expects=True))
        elif token == "${":
            self.stack.append(Frame("param"))
        yield self._take(end, "o" if token in ("$((", "$(", "`") else ink)

    def _substitution(self, frame: Frame, end: int) -> Iterator[Mark]:
        self._ink(frame, "")
        self.stack.append(Frame("code", closer=")", expects=True))
        yield self._take(end, "o")

    def _within(self, pattern: re.Pattern[str], frame: Frame, ink: str) -> Iterator[Mark]:
        """Inside a quotation or a parameter: up to its end, or to what opens in it."""
        found = pattern.match(self.text, self.at)
        assert found
        if found.lastgroup == "span":
            yield from self._span(frame, found.end())
        elif found.lastgroup == "quote":
            yield from self._quote(frame, found.end())
        else:
            if found.lastgroup == "end":
                self.stack.pop()
            yield self._take(found.end(), ink)

    def _double(self, frame: Frame) -> Iterator[Mark]:
        return self._within(_DOUBLE, frame, frame.ink)

    def _param(self, frame: Frame) -> Iterator[Mark]:
        return self._within(_PARAM, frame, "nv")

    def _sum(self, frame: Frame) -> Iterator[Mark]:
        found = _SUM.match(self.text, self.at)
        assert found
        if found.lastgroup not in ("open", "close"):
            yield from self._within(_SUM, frame, "")
            return
        frame.depth += 1 if found.lastgroup == "open" else -1
        if not frame.depth:
            self.stack.pop()
        yield self._take(found.end(), "" if frame.depth > 1 else "o")
