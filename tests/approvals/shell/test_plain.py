"""What is called plain is what bash runs: proved by running bash."""

import shlex
from itertools import groupby

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals import shell
from approvals.shell import formatter, plain

from .bash import NAMES, Bash, is_seen

PRINTABLE = st.characters(min_codepoint=0x20, max_codepoint=0x7E) | st.sampled_from("\t\n")
# `!` in double quotes asks, and shlex.quote writes a single quote as '"'"'.
WORDS = st.text(PRINTABLE, max_size=12)
ARGVS = st.builds(lambda name, rest: (name, *rest), st.sampled_from(NAMES), st.lists(WORDS, max_size=5))
JOINS = st.sampled_from([" && ", " || ", " | ", "; ", "\n", "&&", "|"])
CASES = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
# What lines are made of, and of what makes them other than plain.
PIECES = st.sampled_from(
    ["ls", "cat", "git", "x", "y", "1", "2", "-f", "-n", "--", "-", ".", "a=b", "=", ":", "@", "+", "%", "^", ","]
    + [" "] * 20 + ["\\x", "\n", "\t", ";", "&&", "||", "|", "'", '"', "''", '""', "'a b'", '"a b"', '"\\""', "\\;"]
    + ["\\ ", "2>&1", ">&2", "1>&2", "3>&1", "2>&3", ">", ">>", "<", "&>", "<<<x", "<<E", "E\n", "&", "|&", ";;"]
    + ["\\", "\\\n", "~", "~x", "a~", "x=~", ":~", "#", "'#'", "\\#", "!", "$x", "$", "`", "*", "?", "[a]", "{"]
    + ["}", "{a,b}", "(", ")", "()", "[[", "]]", "[", "]", "((", "))", "$'a'", '$"a"', "if", "then", "fi", "for"]
    + ["in", "do", "done", "time", "case", "esac", "coproc", "function", "..", "\r", "\0", "\u200b", "\xa0"]
)  # fmt: skip


@CASES
@given(st.lists(st.tuples(ARGVS, JOINS), min_size=1, max_size=6))
def test_quoted_words_are_read_back_exactly(calls: list[tuple[tuple[str, ...], str]]) -> None:
    line = "".join(shlex.join(argv) + join for argv, join in calls[:-1]) + shlex.join(calls[-1][0])
    read = shell.read(line)
    assert read.plain is not None, read.why_not
    assert [simple.argv for simple in read.plain] == [argv for argv, _ in calls]
    assert set(read.reached) >= {argv for argv, _ in calls}


def runs_as_read(bash: Bash, line: str) -> bool:
    """Whether it was plain; fails when bash runs anything else than what was read."""
    read = shell.read(line)
    if read.plain is None:
        assert read.why_not != formatter.UNCHECKED
        return False
    bash.stub(*(simple.argv[0] for simple in read.plain))
    joins = plain.commands(line).joins
    argvs = [simple.argv for simple in read.plain]
    expected = [argv for argv in argvs if is_seen(argv[0])]
    if all(join in (";", "|", "&&") for join in joins) and len(expected) == len(argvs):
        assert in_pipes(bash.runs(line), argvs, joins), line
    else:
        ran = bash.runs(line)
        assert is_part(ran, expected), (line, ran, expected)
    assert not list(bash.work.iterdir()), f"{line!r} made a file"
    return True


def in_pipes(ran: list[tuple[str, ...]], argvs: list[tuple[str, ...]], joins: list[str]) -> bool:
    """The same calls; those of one pipe start at the same time and come in any order."""
    pipe, of = 0, []
    for join in ["", *joins]:
        pipe += join != "|"
        of.append(pipe)
    parts = [[argv for argv, _ in group] for _, group in groupby(zip(argvs, of, strict=True), key=lambda each: each[1])]
    at = 0
    for part in parts:
        if sorted(ran[at : at + len(part)]) != sorted(part):
            return False
        at += len(part)
    return at == len(ran)


def is_part(ran: list[tuple[str, ...]], argvs: list[tuple[str, ...]]) -> bool:
    left = list(argvs)
    for argv in ran:
        if argv not in left:
            return False
        left.remove(argv)
    return True


@CASES
@given(st.lists(st.tuples(ARGVS, JOINS), min_size=1, max_size=4))
def test_bash_runs_exactly_the_quoted_words(bash: Bash, calls: list[tuple[tuple[str, ...], str]]) -> None:
    assert runs_as_read(bash, "".join(shlex.join(argv) + join for argv, join in calls) + " ls")


def test_whatever_is_called_plain_is_what_bash_runs(bash: Bash) -> None:
    seen = {"plain": 0, "other": 0}

    @settings(max_examples=800, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(PIECES, min_size=1, max_size=9).map("".join))
    def judged(line: str) -> None:
        seen["plain" if runs_as_read(bash, line) else "other"] += 1

    judged()
    assert min(seen.values()) > 50, seen
