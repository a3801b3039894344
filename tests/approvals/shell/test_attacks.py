"""Lines made to pass for harmless ones: none of them is plain, whatever two parsers of bash think of it."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals import shell
from approvals.shell import plain

NOT_PLAIN = {
    "a function that has an allowed name": ["ls(){ rm -rf x; }; ls", "function ls { rm x; }; ls", "ls () rm; ls"],
    "another alphabet": ["l\u200bs", "ls\u00a0-la", "ｌｓ", "ls \u202e", "cat \u0441", "ls\u2028rm x", "\ufeffls",
    "ls \u037e rm"],
    "control characters": ["ls\r", "ls\rrm x", "ls \x00 x", "ls \x1b[2J", "ls\x0brm", "ls\x0c", "\x7fls",
    "ls\x85rm"],
    "lone surrogates": ["ls \ud800", "\udcff"],
    "lines that go on": ["ls \\\n-la", "l\\\ns", '"l\\\ns"', "ls &\\\n& rm", "ls\\"],
    "braces": ["{ls,-la}", "ls {a,b}", "l{s,}", "ls {1..3}", "{ ls; }", "ls }", "git show HEAD@{1}"],
    "tilde": ["ls ~", "cat ~root/x", "cat a=~/x", "cat x:~", "~/ls", "ls ''~", "ls +~x=~"],
    "patterns": ["ls *", "ls [a]", "cat ?", "/bin/l?", "[ -f x ]", "ls a*b", "ls [!a]", "ls @(a|b)", "ls !(a)"],
    "expansions": ["ls $x", "$ls", 'ls "$x"', "ls ${x}", "ls $((1))", "ls $[1]", "ls $1", "ls $@", "ls $?",
    'ls "a$"', "ls $"],
    "substitutions": ["ls $(id)", "ls `id`", 'ls "`id`"', 'ls "$(id)"', "ls <(id)", "ls >(id)", "`ls`", "$(ls)"],
    "other quotations": ["$'ls'", "ls $'\\x41'", '$"ls"', "ls $''", "ls 'a", 'ls "a', "ls \"a\\\"", "ls 'a'b'"],
    "assignments": ["a=b", "a=b ls", "a+=b ls", "a[0]=b ls", "a=(b c)", "PATH=x ls", "'a'=b ls", "a=b; ls",
    "A=;ls"],
    "redirections": [
        "ls > x", "ls >x", "ls >> x", "ls >| x", "ls &> x", "ls >& x", "ls < x", "ls <> x", "ls <<< x",
        "ls << E\nE",
        "ls 2> x", "ls 3>&1", "ls 2>&3", "ls >&1x", "ls 2>&1x", "ls 2>&-", "ls >&-", "ls {x}>&1", "ls 2>&1>x",
        "> x",
        "2>&1", "2>&1 ls", "ls '2'>&1", "ls a2>&1", "ls 12>&1", "ls 2>&12", "ls <&0", "ls 2 >&x", "ls \\2>&1",
        "ls >& 1",
    ],
    "the background": ["ls &", "ls & rm", "ls &\n", "&", "ls &;", "coproc ls"],
    "keywords": [
        "! ls", "time ls", "if ls; then rm; fi", "for x in a; do rm; done", "while ls; do rm; done",
        "until ls; do :; done",
        "case x in x) rm;; esac", "select x in a; do rm; done", "[[ -f x ]]", "((1))", "(ls)", "{ ls; }",
        "then", "do ls",
        "ls; if", "ls | while", "ls && !", "'if' x", "\\time ls", "function", "in", "ls\ndone",
    ],
    "history": ["!!", "ls !x", 'ls "a!b"', "!ls"],
    "comments": ["# ls", "ls # x", "ls #", "ls\n# x", "ls;#x"],
    "incomplete lines": ["ls &&", "ls |", "ls ||", "&& ls", "| ls", "; ls", "ls ;; rm", "ls ; ; rm",
    "ls && && rm", "ls && ; rm", ")", "ls )", "ls ;;", "\n;"],
    "nothing": ["", " ", "\n", "\t\n ", ";", "''", '""', "'' ls"],
    "jobs and options of bash": ["%1", "'%'", "-c ls", "+x ls", "-f", "--rcfile x"],
    "joined errors": ["ls |& cat"],
}  # fmt: skip
PLAIN = [
    "ls", " ls ", "ls;", "ls\n", "\n\nls\n\n", "ls -la;ls", "ls && \n cat x", "ls |\n\ncat", "ls\n\ncat",
    "ls;\ncat",
    "'l's", "l\\s", 'cat "a b" \'c d\'"e"', "cat 'a\nb'", 'cat "a\nb"', "cat a#b", "cat HEAD~1 a=b x:y",
    "cat -- -x", "cat ]", "cat ''", 'cat "" x', "ls 2>&1", "ls 2>&1 | cat", "ls >&2", "ls 1>&2;cat",
    "cat '$x `y` !'",
    'cat "\\$x \\`y\\` \\" \\\\ \\z"', "cat \\$x \\* \\~ \\# \\! \\{ \\;", "echo % ^ @ + , : = . / -", "./x",
    "/bin/ls", "a.b-c_d",
]  # fmt: skip


# Plain in bash; but one of two good parsers reads it in another way, and nobody can know of the next such line which.
DISPUTED = ["cat 'c d'\"e\"\\ f", "cat 'a'#b", "ls 2>&1 x"]


@pytest.mark.parametrize("line", DISPUTED)
def test_a_line_over_which_parsers_disagree_asks(line: str) -> None:
    assert plain.commands(line)
    assert shell.read(line).plain is None


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in NOT_PLAIN.items() for line in lines])
def test_no_line_of_an_attack_is_plain(kind: str, line: str) -> None:
    read = shell.read(line)
    assert read.plain is None
    assert read.why_not


@pytest.mark.parametrize("line", PLAIN)
def test_what_looks_odd_and_is_plain_can_be_allowed(line: str) -> None:
    read = shell.read(line)
    assert read.plain is not None, read.why_not


def test_limits_of_a_line() -> None:
    assert shell.read("ls " + "x" * (8192 - 3)).plain
    assert shell.read("ls " + "x" * (8192 - 2)).why_not == "It is longer than 8 KiB."
    assert shell.read(" | ".join(["ls"] * 33)).plain
    assert shell.read(" | ".join(["ls"] * 34)).why_not == "It has more than 32 operators."


@pytest.mark.parametrize(
    "argv",
    [[], [""], ["ls", "\u200b"], ["ls", "\r"], ["ls", "\0"], ["l\ud800s"], ["ls", "x" * 8192]],
)
def test_words_of_a_call_without_a_shell_are_checked_too(argv: list[str]) -> None:
    assert shell.read_argv(argv).plain is None


def test_a_call_without_a_shell_is_its_words() -> None:
    argv = ("git", "log", "$(id)", "*", "a;b", "~", "")
    read = shell.read_argv(argv)
    assert read.plain == (shell.Simple(argv),)
    assert read.reached == (argv,)


JUNK = [
    "(" * 8192, "$(" * 4096, "`" * 8192, "{" * 8192, "${" * 4096, "((" * 4096, "$((" * 2700, '"$(' * 2700, "<(" * 4096,
    "[[" * 4096, "case x in " * 800, "<<E " * 2000, "\n" * 8192, "\\" * 8191, "'" * 8191, "\0" * 8192, "\ud800" * 8192,
    "a=(" * 2700, "{a,b}" * 1600, "{a,{b," * 1300, "$'\\x" * 2000, "a|" * 4096, "x " * 4096, ";" * 8192, "! " * 4096,
    "if " * 2700, "f(){" * 2000, "bash -c '" * 900, "env " * 2000, "timeout 5 " * 800, "eval " * 1600, "# " * 4096,
    "xargs " * 100_000, "$(" * 500_000, "`echo \\`" * 100_000, "((x)" * 2000, "((" + "(x)" * 2500,
    "<<<" * 2700, ">&" * 4096,
]  # fmt: skip


@pytest.mark.parametrize("line", JUNK, ids=lambda line: f"{line[:12]!r}")
def test_junk_is_read_in_little_time(line: str) -> None:
    started = time.thread_time()
    for read in (shell.read(line), shell.read_argv(line.split(" "))):
        assert read.plain is None or len(line) <= 8192
        assert isinstance(read.reached, tuple)
        assert isinstance(shell.flags(read), tuple)
    assert time.thread_time() - started < 2


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.text(st.characters(codec=None, categories=None), max_size=60)
    | st.text("()[]{}$`'\"\\<>|&;!~# \n=aE-", max_size=60)
)
def test_reading_never_raises(line: str) -> None:
    for read in (shell.read(line), shell.read_argv([line]), shell.read_argv(line.split())):
        assert (read.plain is None) == bool(read.why_not)
        assert read.why_not != "It could not be read."  # a fault in here
        for argv in read.reached:
            shell.never_by_rule(argv)
            shell.allows(("git", "log"), argv)
            shell.forbids(("rm", "-rf"), argv)
        shell.flags(read)
