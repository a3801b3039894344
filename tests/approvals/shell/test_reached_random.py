"""Whatever bash starts is reached, for lines in which commands are put into commands at random."""

import posixpath
import shlex

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals import shell

from .bash import WRAPPERS, Bash

STUBS = ("rm", "curl", "x")
SIMPLE = st.builds(
    lambda name, word: f"{name} {shlex.quote(word)}",
    st.sampled_from(STUBS),
    st.sampled_from(
        ["a", "b c", "'", '"', "$(x z)", "`", "#", "}", ")", ";", "<<E", "\\", "E", "-f", "done", "esac", "\n"]
    ),
)
# `@` is a command, `~` one that is quoted.
FORMS = [
    "( @ )", "{ @; }", "if true; then @; fi", "if @; then :; else @; fi", "echo $(@)", 'echo "$(@)"',
    "echo \"a'$(@)'\"", "echo `@`", "f() { @; }; f", "function g { @; }; g", "case x in x) @;; esac",
    "case x in (y|x) @ ;; *) x;; esac",
    "for i in 1 2; do @; done", "while @; do break; done", "! @", "time @", "@ & wait", "cat <(@)", "echo ${u:-$(@)}",
    'echo "${u:-$(@)}"', "a=$(@)", "a=(1 $(@) 2)", "[[ -n $(@) ]]", "[[ a == a ]] && @", "echo $((1 + $(@; echo 1)))",
    "((1<<2)) && @", 'echo $((1<<2)) "$(@)"', "cat <<E\n$(@)\nE\n@", "cat <<'E'\n$(@)\nE\n@", "cat <<-F\n\t$(@)\n\tF\n",
    "timeout 5 @", "env A=b @", "nice -n 1 @", "nohup @", "exec @", "command @", ">/dev/null @", "2>&1 @", "A=b @",
    "@ 2>&1", "@ # $(x)", "@; @", "@ && @", "@ || @", "@ | @", "@\n@", "@ |& @", "@ \\\n; @", "( (@) )", "((@) ; @)",
    "{ @ ; } 2>&1", "until ! @; do break; done",
]  # fmt: skip
INTO = st.sampled_from(FORMS)
QUOTED = st.sampled_from(
    [
        "bash -c ~",
        "eval ~",
        "trap ~ EXIT",
        "echo ~ | bash",
        "bash <<< ~",
        "env -S ~",
        "sh -ec ~",
        "flock /dev/null -c ~",
    ]
)


def fill(form: str, first: str, second: str) -> str:
    head, at, tail = form.partition("@")
    return head + (first if at else "") + tail.replace("@", second)


LINES = st.recursive(
    SIMPLE,
    lambda inner: st.builds(fill, INTO, inner, inner)
    | st.builds(lambda form, line: form.replace("~", shlex.quote(line)), QUOTED, inner),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(LINES)
def test_whatever_bash_starts_is_reached(bash: Bash, line: str) -> None:
    bash.stub(*STUBS)
    ran = bash.runs(line, path=bash.real("bash", "cat", *WRAPPERS))
    reached = [(posixpath.basename(argv[0]), *argv[1:]) for argv in shell.read(line).reached if argv]
    for call in ran:
        assert any(could_be(argv, call) for argv in reached), (line, call, reached)


def could_be(argv: tuple[str, ...], call: tuple[str, ...]) -> bool:
    """Words that are substituted are not known before."""
    return argv == call or (len(argv) == len(call) and all("$" in a or a == b for a, b in zip(argv, call, strict=True)))
