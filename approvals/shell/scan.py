"""Every command that stands in a line of bash, wherever it stands, whatever the line is.

One pass over the text with a stack of what is open, each character once; texts inside texts (backquotes and the like)
come after it. Errs on the side of finding too much. Must never be what allows a line: `plain` and the parsers do that.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .words import braces, in_ansi, in_double

SUMS = 2
GO_ON = frozenset("if then else elif while until do ! { time coproc".split())  # a command follows
ENDS = frozenset("fi done esac }".split())
_CODE = re.compile(
    r"""(?P<newline>\n) | (?P<gap>[^\S\n]+) | (?P<joint>\\\n) | (?P<ansi>\$'(?:[^'\\]|\\.)*'?) | (?P<local>\$(?="))
    | (?P<sum>\$?\(\((?!\))) | (?P<command>\$\(|[<>]\() | (?P<param>\$\{) | (?P<back>`(?:[^`\\]|\\.)*`?)
    | (?P<heredoc><<-?(?!<)) | (?P<redirect>&>>?|<<<|>>|>\||<>|[<>]&|[<>])
    | (?P<join>&&|\|\||\|&|;;&|;&|;;|[|;&]) | (?P<open>\() | (?P<close>\)) | (?P<single>'[^']*'?) | (?P<quote>")
    | (?P<escape>\\.) | (?P<text>[^\s\\$`'"<>&|;()#{},]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_DOUBLE = re.compile(
    r"""(?P<sum>\$\(\((?!\))) | (?P<command>\$\() | (?P<param>\$\{) | (?P<back>`(?:[^`\\]|\\.)*`?) | (?P<quote>")
    | (?P<end>\}) | (?P<inner>\() | (?P<close>\)) | (?P<escape>\\.) | (?P<text>[^"\\$`}()]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"[^\n]*")
_NUMBER = re.compile(r"\d+|\{\w+\}")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=")
_DELIMITER = re.compile(r"""[ \t]*((?:'[^'\n]*'|"[^"\n]*"|\\.|[^\s;&|<>()'"\\])+)""")
_FUNCTION = re.compile(r"\([ \t]*\)")
_UNQUOTE = re.compile(r"['\"\\]")
_BRACE = str.maketrans("{,}", "\ue000\ue001\ue002")
_PLACEHOLDER = "$(…)"


@dataclass(slots=True)
class Command:
    """One simple command. `inputs` are texts that it reads; `fed_by` is what writes into its pipe."""

    argv: tuple[str, ...]
    piped: bool = False
    fed_by: tuple[str, ...] = ()
    writes: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Frame:
    kind: str = "code"  # code, double, param, sum
    closer: str = ""
    words: list[tuple[str, bool]] = field(default_factory=list)  # with whether it was bare, without quotes
    word: list[str] | None = None
    bare: bool = True
    target: str = ""  # the operator whose target the next word is
    writes: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    piped: bool = False
    before: tuple[str, ...] = ()  # what was run last
    cases: list[str] = field(default_factory=list)  # head, pattern or body of each open `case`
    test: bool = False
    named: bool = False  # what `coproc` starts may have a name before it
    depth: int = 1  # of a sum
    began: int = 0


class Scan:
    """`texts` gets (text, kind of its first frame) of what is to be scanned next."""

    def __init__(self, text: str, kind: str, texts: "deque[tuple[str, str]]") -> None:
        self.text, self.at, self.texts = text, 0, texts
        self.stack = [Frame(kind)]
        self.sums = 0
        self.found: list[Command] = []
        self.heredocs: list[tuple[str, bool, bool, list[str]]] = []

    def commands(self) -> list[Command]:
        while self.at < len(self.text):
            frame = self.stack[-1]
            step = self._in_code if frame.kind == "code" else self._in_quotes
            step(frame)
        for frame in reversed(self.stack):
            self._end_command(frame)
        return self.found

    # ---- commands ----
    def _in_code(self, frame: Frame) -> None:
        if frame.word is None and self.text.startswith("#", self.at):
            comment = _COMMENT.match(self.text, self.at)
            assert comment  # it takes nothing, too
            self.at = comment.end()
            return
        found = _CODE.match(self.text, self.at)
        assert found  # `.` takes what nothing else does
        self.at = found.end()
        act: Callable[[Frame, str], None] = getattr(self, f"_{found.lastgroup}")
        act(frame, found.group())

    def _newline(self, frame: Frame, _: str) -> None:
        self._join(frame, ";")
        while self.heredocs:
            self._heredoc_body(*self.heredocs.pop(0))

    def _heredoc_body(self, delimiter: str, tabs: bool, quoted: bool, inputs: list[str]) -> None:
        began, after = self.at, len(self.text)
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line, start = self.text[self.at : end], self.at
            self.at = end + 1
            if (line.lstrip("\t") if tabs else line) == delimiter:
                after = start
                break
        body = self.text[began:after]
        inputs.append(body)
        if not quoted:
            self.texts.append((body, "double"))

    def _gap(self, frame: Frame, _: str) -> None:
        self._end_word(frame)

    def _joint(self, frame: Frame, _: str) -> None:
        """A line that goes on: within a word too."""

    def _join(self, frame: Frame, operator: str) -> None:
        self._end_word(frame)
        if frame.test or (frame.cases and frame.cases[-1] == "pattern"):
            return
        self._end_command(frame)
        frame.piped = operator in ("|", "|&")
        if frame.cases and operator in (";;", ";&", ";;&"):
            frame.cases[-1] = "pattern"

    def _redirect(self, frame: Frame, operator: str) -> None:
        if frame.word is not None and frame.bare and _NUMBER.fullmatch("".join(frame.word)):
            frame.word = None
        self._end_word(frame)
        frame.target = operator

    def _heredoc(self, frame: Frame, operator: str) -> None:
        self._redirect(frame, "")
        if found := _DELIMITER.match(self.text, self.at):
            self.at = found.end()
            delimiter = _UNQUOTE.sub("", found[1])
            self.heredocs.append((delimiter, operator == "<<-", delimiter != found[1], frame.inputs))

    def _open(self, frame: Frame, _: str) -> None:
        if frame.test or (frame.cases and frame.cases[-1] == "pattern"):
            return
        function = _FUNCTION.match(self.text, self.at - 1)
        if function and (frame.word is not None or frame.words):
            self.at = function.end()
            frame.word, frame.words = None, []
        elif frame.word is not None:  # an array, or a pattern inside a word
            self.stack.append(Frame("code", ")"))
        else:
            self._end_command(frame)
            self.stack.append(Frame("code", ")", piped=frame.piped))

    def _close(self, frame: Frame, _: str) -> None:
        self._end_word(frame)
        if frame.test:
            return
        if frame.cases and frame.cases[-1] == "pattern":
            frame.cases[-1], frame.words = "body", []
            return
        self._end_command(frame)
        if frame.closer == ")" and len(self.stack) > 1:
            self.stack.pop()

    def _sum(self, frame: Frame, token: str) -> None:
        if token[0] == "$" or frame.word is not None:
            self._add(frame, _PLACEHOLDER)
        self.stack.append(Frame("sum", began=self.at))
        self.sums += 1
        if self.sums <= SUMS:  # quotes could hide from a sum where it ends, if it is none: read as commands, too
            self.texts.append((self.text[self.at - 1 :], "code"))

    # ---- words ----
    def _add(self, frame: Frame, text: str, *, bare: bool = True) -> None:
        if frame.word is None:
            frame.word, frame.bare = [], True
        frame.word.append(text)
        frame.bare &= bare

    def _text(self, frame: Frame, token: str) -> None:
        self._add(frame, token.translate(_BRACE))

    def _single(self, frame: Frame, token: str) -> None:
        self._add(frame, token[1:-1] if len(token) > 1 and token[-1] == "'" else token[1:], bare=False)

    def _ansi(self, frame: Frame, token: str) -> None:
        self._add(frame, in_ansi(token[2:].removesuffix("'")), bare=False)

    def _escape(self, frame: Frame, token: str) -> None:
        self._add(frame, token[1], bare=False)

    def _local(self, frame: Frame, _: str) -> None:
        """The `$` of `$"…"`, which is a quotation."""

    def _quote(self, frame: Frame, _: str) -> None:
        self._add(frame, "", bare=False)
        self.stack.append(Frame("double", '"'))

    def _command(self, frame: Frame, _: str) -> None:
        self._add(frame, _PLACEHOLDER)
        self.stack.append(Frame("code", ")"))

    def _param(self, frame: Frame, token: str) -> None:
        self._add(frame, token)
        self.stack.append(Frame("param", "}"))

    def _back(self, frame: Frame, token: str) -> None:
        self._add(frame, _PLACEHOLDER)
        self.texts.append((re.sub(r"\\([$`\\])", r"\1", token.strip("`")), "code"))

    # ---- quotations, parameters and sums ----
    def _in_quotes(self, frame: Frame) -> None:
        found = _DOUBLE.match(self.text, self.at)
        assert found
        self.at, group, token = found.end(), found.lastgroup, found.group()
        if group in ("sum", "command", "param", "back"):
            getattr(self, f"_{group}")(frame, token)
        elif group == "quote" and frame.closer != '"' and frame.kind != "double":
            self._quote(frame, token)
        elif frame.kind == "sum" and group in ("inner", "close"):
            self._in_sum(frame, group)
        elif token == frame.closer:
            self._leave(token if frame.kind == "param" else "")
        else:
            self._add(frame, in_double(token) if frame.kind == "double" else token)

    def _in_sum(self, frame: Frame, group: str) -> None:
        """`((` begins a sum only if what closes the second parenthesis is followed by what closes the first."""
        frame.depth += 1 if group == "inner" else -1
        if frame.depth:
            return
        self.stack.pop()
        if self.text.startswith(")", self.at):
            self.at += 1
        else:
            self.texts.append((self.text[frame.began : self.at - 1], "code"))
            self.stack.append(Frame("code", ")"))

    def _leave(self, end: str) -> None:
        """What was in it goes into the word around it."""
        inner = self.stack.pop()
        self._add(self.stack[-1], "".join(inner.word or []) + end, bare=False)

    # ---- what is found ----
    def _end_word(self, frame: Frame) -> None:
        if frame.word is None:
            return
        words, bare = braces("".join(frame.word)), frame.bare
        first, frame.word = words[0], None
        if frame.target:
            self._target(frame, first)
        elif bare and not frame.words and self._is_keyword(frame, first):
            pass
        elif bare and frame.named and len(frame.words) == 1 and first == "{":
            frame.words = []
        elif bare and frame.cases and frame.cases[-1] == "head" and first == "in":
            frame.cases[-1], frame.words = "pattern", []
        elif frame.test:
            frame.test = first != "]]"
        else:
            frame.words += [(each, bare) for each in words]

    def _target(self, frame: Frame, text: str) -> None:
        operator, frame.target = frame.target, ""
        if operator == "<<<":
            frame.inputs.append(text)
        elif ">" in operator and not (operator == ">&" and re.fullmatch(r"\d+-?|-", text)):
            frame.writes.append(text)

    def _is_keyword(self, frame: Frame, text: str) -> bool:
        if frame.test:
            return False
        if text == "esac" and frame.cases:
            frame.cases.pop()
        elif text == "case":
            frame.cases.append("head")
        elif text == "[[":
            frame.test = True
        frame.named |= text == "coproc"
        return text in GO_ON or text in ENDS or text in ("case", "[[")

    def _end_command(self, frame: Frame) -> None:
        self._end_word(frame)
        words, writes, inputs = frame.words, frame.writes, frame.inputs
        frame.words, frame.writes, frame.inputs, frame.target = [], [], [], ""
        if frame.kind != "code" or (frame.cases and frame.cases[-1] == "head"):
            return
        argv = _argv(words)
        if argv or writes:
            self.found.append(Command(argv, frame.piped, frame.before if frame.piped else (), writes, inputs))
            frame.before = argv
        frame.piped = frame.named = False


def _argv(words: list[tuple[str, bool]]) -> tuple[str, ...]:
    """Without what stands before the program: assignments, `for x do`, `function name`."""
    bare = [text for text, bare in words if bare]
    if bare and words[0][0] in ("for", "select"):
        if "do" not in bare:
            return ()
        words = words[next(n for n, word in enumerate(words) if word == ("do", True)) + 1 :]
    elif bare and words[0][0] == "function":
        words = words[2:]
    at = 0
    while at < len(words) and (_NAME.match(words[at][0]) or (words[at][1] and words[at][0] in GO_ON | {"-p"})):
        at += 1
    return tuple(text for text, _ in words[at:])


def commands(line: str, *, limit_chars: int, most: int) -> list[Command]:
    """Of a line and of the texts in it, until so many characters were looked at or so many commands were found."""
    texts: deque[tuple[str, str]] = deque([(line, "code")])
    found: list[Command] = []
    while texts and limit_chars > 0 and len(found) < most:
        text, kind = texts.popleft()
        found += Scan(text[:limit_chars], kind, texts).commands()
        limit_chars -= len(text)
    return found[:most]
