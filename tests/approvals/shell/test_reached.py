"""Whatever bash starts is in what a line reaches: wrappers and all, proved by running them."""

import posixpath

import pytest

from approvals import shell

from .bash import WRAPPERS, Bash

STUBS = "rm curl ls cat x y".split()
LINES = [
    # plain, joined, grouped
    "rm -rf x", "ls; rm x", "ls && rm x", "false || rm x", "ls | rm x", "ls |& rm x", "ls & rm x & wait",
    "(rm x)", "((rm x) ; rm y)",
    "{ rm x; }", "( (rm x); (rm y) )", "! rm x", "time rm x", "time -p rm x", "coproc rm x; wait",
    "coproc N { rm x; }; wait",
    "ls\nrm x", "ls # no\nrm x", "rm x\nfi", "ls \\\n; rm x", "r\\\nm x", "\\rm x", "'rm' x", 'r"m" x',
    "'r''m' x", "$'\\x72m' x",
    "$'r\\155' x", '$"rm" x', "{rm,-rf,x}", "rm {a,b}{c,d}", "rm 'a b' \"c  d\" e\\ f", "rm ''",
    # redirected
    "rm x > /dev/null", ">/dev/null rm x", "2>&1 rm x", "rm 2>&1 x", "rm x &>/dev/null", "rm x >&2",
    "rm < /dev/null x",
    "cat <<E\nrm y\nE\nrm x", "cat <<'E'\n$(rm y)\nE\nrm x", "cat <<E\n$(rm x) `rm y`\nE",
    "cat <<-E\n\tx\n\tE\nrm x",
    "cat <<E; rm x\nE\nrm y", "cat <<< $(rm x)", "cat <<E <<F\nE\nF\nrm x", "rm 3>/dev/null x",
    # compound
    "if true; then rm x; fi", "if rm x; then :; fi", "if false; then :; else rm x; fi",
    "if false; then :; elif rm x; then rm y; fi",
    "for i in a b; do rm x; done", "for i in a\ndo rm x\ndone", "while rm x; do break; done",
    "until rm x; do :; done",
    "case x in x) rm x;; esac", "case x in (x) rm x ;; esac", "case x in y) :;; x|z) rm x; esac",
    "case $(rm y) in *) rm x;; esac",
    "case x in x) rm x;& y) rm y;; esac", "echo $(case x in x) rm x;; esac)",
    "case x in x) case y in y) rm x;; esac; rm y;; esac",
    "for ((i=0;i<1;i++)); do rm x; done", "[[ a ]] && rm x", "[[ a || $(rm y) ]]; rm x", "((1)) && rm x",
    "((0)) || rm x",
    "f(){ rm x; }; f", "f() { rm x; }; f", "function f { rm x; }; f", "f () ( rm x ); f", "f()\n{\nrm x\n}\nf",
    "select i in a; do rm x; break; done <<< 1", "set -- a; for i do rm x; done", "for i; do :; done; rm x",
    # substituted
    "echo $(rm x)", 'echo "$(rm x)"', "echo `rm x`", 'echo "`rm x`"', "echo $(echo $(rm x))",
    "echo `echo \\`rm x\\``", "cat <(rm x)",
    "ls > >(rm x); wait", "echo ${a:-$(rm x)}", 'echo "${a:-$(rm x)}"', "echo ${a:-`rm x`}",
    "echo $((1 + $(rm x; echo 1)))",
    "echo $((1<<2))\nrm x", "((1<<2))\nrm x", "a=$(rm x)", "a=(1 $(rm x))", "a=b rm x", "a=b c=d rm x",
    "a+=b rm x", "a=(b) ; rm x",
    "export a=$(rm x)", "rm a$(rm y) x", "echo \"a 'b $(rm x)' c\"", "echo '$(rm y)' $(rm x)",
    'echo "\\"$(rm x)"', "echo ${#a} ; rm x",
    "echo ${a//\\}/x} ; rm x", 'echo "${a}" "}" ; rm x', "echo $(ls # )\n) ; rm x", "echo $( (rm x) )", "$(rm x)",
    # run by others
    "timeout 5 rm x", "timeout -k 1 5 rm x", "timeout --signal=TERM 5 rm x", "timeout --kill-after 1 5 rm x",
    "env rm x",
    "env A=b rm x", "env -i PATH=$PATH rm x", "env -u A rm x", "env -S 'rm x'", "env --split-string='rm x y'",
    "env -- rm x",
    "nice rm x", "nice -n 5 rm x", "nice -5 rm x", "nice --adjustment=5 rm x", "nohup rm x", "setsid rm x",
    "setsid -w rm x",
    "stdbuf -oL rm x", "stdbuf -o L rm x", "ionice -c 3 rm x", "ionice -c3 rm x", "flock . rm x",
    "flock . -c 'rm x'", "flock -w 5 . rm x",
    "command rm x", "exec rm x", "exec -a z ls", "eval rm x", "eval 'rm x'", "eval 'rm' 'x; rm y'",
    "bash -c 'rm x'", "bash -ec 'rm x'", "bash -e -c 'rm x; rm y'", "bash -o errexit -c 'rm x'",
    "bash --norc -c 'rm x'", "sh -c 'rm x'",
    "bash -c '\"$@\"' _ rm x", "bash -c '$0 $1' rm x", "bash -c \"bash -c 'rm x'\"", "$SHELL -c 'rm x'",
    "trap 'rm x' EXIT",
    "bash <<E\nrm x\nE", "bash <<'E'\nrm x\nE", "bash <<< 'rm x'", "echo 'rm x' | bash", "printf 'rm x' | sh",
    "echo rm x | sh -s",
    "find . -maxdepth 0 -exec rm x \\;", "find . -maxdepth 0 -exec rm x {} +",
    "find . -maxdepth 0 -execdir rm x ';'",
    "find . -maxdepth 0 -exec sh -c 'rm x' \\; -exec rm y \\;", "shopt -s expand_aliases\nalias z='rm x'\nz",
    "timeout 5 nice env A=b bash -c 'nohup rm x'", "env env env rm x", ". /dev/stdin <<< 'rm x'",
    "source /dev/stdin <<E\nrm x\nE",
]  # fmt: skip
XARGS = [
    "xargs rm",
    "xargs -0 rm x",
    "xargs -n 1 rm x",
    "xargs -n1 -P 2 rm x",
    "xargs -I {} rm x",
    "xargs sh -c 'rm x'",
    "xargs -r rm",
]


def reached(line: str) -> list[tuple[str, ...]]:
    return [(posixpath.basename(argv[0]), *argv[1:]) for argv in shell.read(line).reached if argv]


def known(call: tuple[str, ...], argvs: list[tuple[str, ...]]) -> bool:
    """What a substitution makes of a word is not known before; `{}` is a file of find's."""
    return any(
        len(argv) == len(call)
        and all(said in (word, "{}") or "$" in said for said, word in zip(argv, call, strict=True))
        for argv in argvs
    )


@pytest.mark.parametrize("line", LINES)
def test_whatever_bash_starts_is_reached(bash: Bash, line: str) -> None:
    bash.stub(*STUBS)
    ran = bash.runs(line, path=bash.real("bash", *WRAPPERS))
    assert [call for call in ran if call[0] in ("rm", "ls")], "bash started nothing: the case shows nothing"
    wanted = [call for call in ran if call[0] in STUBS]
    assert [call for call in wanted if not known(call, reached(line))] == []


@pytest.mark.parametrize("line", XARGS)
def test_what_xargs_starts_is_reached_but_for_the_words_that_it_reads(bash: Bash, line: str) -> None:
    bash.stub(*STUBS)
    ran = bash.runs(line, path=bash.real("bash", *WRAPPERS), stdin="a b\n")
    assert ran
    for call in ran:
        assert any(call[: len(argv)] == argv for argv in reached(line)), (call, reached(line))


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        ("sudo -u root rm x", ("rm", "x")),
        ("sudo A=b rm x", ("rm", "x")),
        ("doas rm x", ("rm", "x")),
        ("su -c 'rm x' root", ("rm", "x")),
        ("ssh -p 22 host rm x", ("rm", "x")),
        ("watch -n 1 rm x", ("rm", "x")),
        ("busybox rm x", ("rm", "x")),
        ("chroot /x rm x", ("rm", "x")),
        ("strace -f -o log rm x", ("rm", "x")),
        ("parallel rm ::: x", ("rm",)),
        ("parallel ::: 'rm x'", ("rm", "x")),
        ("script -c 'rm x'", ("rm", "x")),
        ("fd -x rm x", ("rm", "x")),
        ("git rebase -x 'rm x' HEAD", ("rm", "x")),
        ("git submodule foreach 'rm x'", ("rm", "x")),
        ("git bisect run rm x", ("rm", "x")),
        ("python3 -m pip install x", ("pip", "install", "x")),
        ("uv run rm x", ("rm", "x")),
        ("npx -c 'rm x'", ("rm", "x")),
        ("/usr/bin/timeout 5 /bin/rm x", ("/bin/rm", "x")),
        ("/lib64/ld-linux-x86-64.so.2 /bin/rm x", ("/bin/rm", "x")),
        ("taskset 1 rm x", ("rm", "x")),
        ("chrt -i 0 rm x", ("rm", "x")),
    ],
)
def test_what_other_programs_would_start_is_reached(line: str, inside: tuple[str, ...]) -> None:
    assert inside in shell.read(line).reached


@pytest.mark.parametrize(
    "line",
    ["echo rm x", "echo 'a; rm x'", "cat <<'E'\n$(rm x)\nE", "ls # ; rm x", "git commit -m 'rm x'", "grep -e rm x"],
)
def test_what_is_only_said_is_not_reached(line: str) -> None:
    assert ("rm", "x") not in shell.read(line).reached
