"""The strictest reader: the simple commands of a line that has nothing but words, quotes and `&& || | ;` in it.

Goes first, so that no parser written in C ever sees odd text, and gives the sentence for the card. A line that it
refuses may be harmless; it must never let one through that bash would read otherwise.
"""

import re
from dataclasses import dataclass, field

LINE_BYTES = 8 << 10
OPERATORS = 32
KEYWORDS = frozenset(
    "if then else elif fi for while until do done case esac select function time coproc in { } [[ ]] !".split()
)
ODD = re.compile(r"[^\t\n\x20-\x7e]")
_SPACE = re.compile(r"[ \t]+")
_BLANKS = re.compile(r"[ \t\n]+")
_TOKEN = re.compile(
    r"&&|\|\||\|&|&>|&|\||;;|;|\n|\\.|[<>]|'[^']*'|\"(?:[^\"\\]|\\.)*\"|[A-Za-z0-9_./:,%@+=^\]-]+|.", re.DOTALL
)
_JOINS = frozenset(("&&", "||", "|", ";", "\n"))
_DUPLICATE = re.compile(r">&[12](?=[ \t\n;|&]|\Z)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[.*\])?\+?=")
_IN_DOUBLE = re.compile(r"\\([$`\"\\])")
_EXPANDS_TO_OTHERS = {
    "$": "It has a `$`, which the shell replaces.",
    "`": "It has a backquote, which runs what is in it.",
    "*": "It has a pattern that the shell replaces by file names.",
    "?": "It has a pattern that the shell replaces by file names.",
    "[": "It has a pattern or a test in brackets.",
    "{": "It has braces, which the shell may replace.",
    "}": "It has braces, which the shell may replace.",
    "(": "It has parentheses: a subshell, a function or an array.",
    ")": "It has parentheses: a subshell, a function or an array.",
    "!": "It has a `!`, which negates a command or recalls an earlier one.",
    "<": "It reads its input from elsewhere.",
    ">": "It redirects output to a file.",
    "&>": "It redirects output to a file.",
    "&": "It leaves something running in the background.",
    "|&": "It joins errors into a pipe.",
    ";;": "It is no complete command line.",
    "'": "A quotation does not end.",
    '"': "A quotation does not end.",
    "\\": "It ends in a backslash.",
    "\\\n": "It goes on over a line's end.",
}


class NotPlain(Exception):
    """Why a person has to look: one short sentence."""


@dataclass
class Commands:
    """As each of the parsers says it: equal only if they agree on every word and on how commands are joined."""

    argvs: list[tuple[str, ...]] = field(default_factory=list)
    joins: list[str] = field(default_factory=list)  # between each two: && || | or ; (a line's end is one too)
    ends: list[int] = field(default_factory=list, compare=False)  # where line ends are that join commands, as `;` does
    blanks: list[int] = field(default_factory=list, compare=False)  # where line ends are that say nothing
    spans: list[tuple[slice, ...]] = field(default_factory=list, compare=False)  # of each word of `argvs` in the line


def commands(line: str) -> Commands:
    """Raises NotPlain."""
    if len(line) > LINE_BYTES:
        raise NotPlain("It is longer than 8 KiB.")
    if ODD.search(line):
        raise NotPlain("It has characters other than printable ASCII, tabs and line ends.")
    if line[:1] in ("-", "+"):
        raise NotPlain("It begins with a sign that bash takes for an option of its own.")
    return _Scan(line).commands()


class _Scan:
    def __init__(self, line: str) -> None:
        self.line = line
        self.found = Commands()
        self.words: list[str] = []
        self.spans: list[slice] = []
        self.began = self.ended = 0  # the word so far
        self.word: str | None = None  # its value so far
        self.quoted = False  # something in it
        self.waiting = ""  # an operator after which a command must come

    def commands(self) -> Commands:
        at = 0
        while at < len(self.line):
            at = self._step(at)
        self._end_command("")
        if self.waiting:
            raise NotPlain("It is no complete command line.")
        if not self.found.argvs:
            raise NotPlain("It has no command.")
        del self.found.joins[len(self.found.argvs) - 1 :]  # what ended the last joins it to nothing
        return self.found

    def _step(self, at: int) -> int:
        if space := _SPACE.match(self.line, at):
            self._end_word()
            return space.end()
        if duplicate := _DUPLICATE.match(self.line, at):
            self._duplicate()
            return duplicate.end()
        found = _TOKEN.match(self.line, at)
        assert found  # `.` takes what nothing else does
        token = found.group()
        if token == "\n":
            (self.found.ends if self.words or self.word is not None else self.found.blanks).append(at)
        if token in _JOINS:
            self._end_command(token)
        else:
            self.began = at if self.word is None else self.began
            self._text(token)
            self.ended = found.end()
        return found.end()

    def _duplicate(self) -> None:
        """`2>&1` and its like move nothing anywhere but to where output goes already."""
        if self.word not in (None, "1", "2") or self.quoted:
            raise NotPlain("It redirects output in a way that is not plain.")
        self.word = None
        if not self.words:
            raise NotPlain("It redirects output before it says what to run.")

    def _text(self, token: str) -> None:
        first = token[0]
        if token in _EXPANDS_TO_OTHERS:
            raise NotPlain(_EXPANDS_TO_OTHERS[token])
        if first == "'":
            self._add(token[1:-1], quoted=True)
        elif first == '"':
            self._add(_double(token[1:-1]), quoted=True)
        elif first == "\\":
            self._add(token[1], quoted=True)
        else:
            self._check_bare(token)
            self._add(token)

    def _check_bare(self, token: str) -> None:
        if token == "#" and self.word is None:
            raise NotPlain("It has a comment.")
        if token == "~" and (self.word is None or self.word[-1:] in ("", "=", ":")):
            raise NotPlain("It has a `~`, which the shell replaces.")

    def _add(self, value: str, *, quoted: bool = False) -> None:
        self.word, self.quoted = (self.word or "") + value, self.quoted or quoted

    def _end_word(self) -> None:
        if self.word is None:
            return
        if not self.words:
            if not self.word:
                raise NotPlain("A command has no name.")
            if self.word in KEYWORDS:
                raise NotPlain(f"It uses the shell's `{self.word}`.")
            if self.word[0] == "%":
                raise NotPlain("It names a job of the shell.")
            if _ASSIGNMENT.match(self.word):
                raise NotPlain("It sets a variable.")
        self.words.append(self.word)
        self.spans.append(slice(self.began, self.ended))
        self.word, self.quoted = None, False

    def _end_command(self, join: str) -> None:
        self._end_word()
        if self.words:
            self.found.argvs.append(tuple(self.words))
            self.found.spans.append(tuple(self.spans))
            self.words, self.spans = [], []
        elif join == "\n" or not join:
            return  # a blank line, also after `&&`
        else:
            raise NotPlain("It is no complete command line.")
        self.found.joins.append(";" if join in ("\n", "") else join)
        self.waiting = join if join in ("&&", "||", "|") else ""
        if len(self.found.joins) > OPERATORS + 1:
            raise NotPlain(f"It has more than {OPERATORS} operators.")


def _double(inside: str) -> str:
    """What is in double quotes, as bash hands it on: a backslash counts only before what it can take the sense from."""
    rest = _IN_DOUBLE.sub("", inside)
    for sign in ("$", "`", "!"):
        if sign in rest:
            raise NotPlain(_EXPANDS_TO_OTHERS[sign])
    if "\\\n" in rest:
        raise NotPlain(_EXPANDS_TO_OTHERS["\\\n"])
    return _IN_DOUBLE.sub(r"\1", inside)


def value(word: str) -> str:
    """Of one word of a line that passed: its text without quotes."""
    found = _Scan(word)
    for token in _TOKEN.findall(word):
        found._text(token)
    return found.word or ""
