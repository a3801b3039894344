"""Which file a command runs, by its words alone; the interpreters themselves are asked whether that is so."""

import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals import shell

NAMED = [
    ("./x", "./x", ""),
    ("bin/run.sh a b", "bin/run.sh", ""),
    ("/work/x.py", "/work/x.py", ""),
    ("'/work/a b.sh' c", "/work/a b.sh", ""),
    (".venv/bin/python x.py", ".venv/bin/python", ""),  # it is what runs, whatever it makes of its words
    ("python3 x.py", "x.py", "python3"),
    ("python3.11 x.py --verbose", "x.py", "python3.11"),
    ("/usr/bin/python3 -u x.py", "x.py", "python3"),
    ("python3 -W ignore -u x.py", "x.py", "python3"),
    ("python3 -uW ignore x.py", "x.py", "python3"),
    ("python3 -- -x.py", "-x.py", "python3"),
    ("bash -euo pipefail x.sh", "x.sh", "bash"),
    ("bash --norc --noprofile -x x.sh", "x.sh", "bash"),
    ("sh -e x.sh", "x.sh", "sh"),
    ("node --enable-source-maps x.js a", "x.js", "node"),
    ("perl -w x.pl", "x.pl", "perl"),
    ("ruby x.rb", "x.rb", "ruby"),
    ("python3 -u \t'x y'.\"py\" a 2>&1", "x y.py", "python3"),
]
NOT_NAMED = [
    "true", "ls -la", "echo ./x", "x.py", "git status", "python3", "python3 -", "python3 -c 'print(1)'",
    "python3 -m http.server", "python3 -i x.py", "python3 -X dev x.py", "python3 -Wignore x.py", "bash -c ./x",
    "bash -s x", "bash -i x.sh", "bash -l x.sh", "bash --rcfile y x.sh", "bash --init-file y -i", "bash +x x.sh",
    "bash -o", "bash -O x y", "sh -c x", "dash -s x", "node -r y x.js", "node --require y x.js", "node -e 1",
    "node --test x.js", "node inspect x.js", "perl -S x", "perl -e 1", "perl -Mx x.pl", "perl -x y", "ruby -rx x.rb",
    "ruby -S x", "env python3 x.py", "timeout 5 python3 x.py", "nice ./x", "xargs ./x", "source x", ". ./x",
    "./x && ./y", "./x | cat", "./x; true", "./x &", "./x > y", "A=1 ./x", "cd a && ./x", "./$X", "./*",
    "$(echo ./x)", "~/x", "(./x)", "! ./x", "./x\n./y", "./x # y", "time ./x", "zsh x", "php x.php", "awk -f x",
    "make", "pytest", "uv run x.py", "npm run x", "/usr/bin/env python3 x.py", "", "./\u0430", "bash ''", "{ ./x; }",
    "python3 x.py < y",
]  # fmt: skip


@pytest.mark.parametrize(("line", "word", "program"), NAMED)
def test_the_file_that_it_runs_is_named(line: str, word: str, program: str) -> None:
    found = shell.script_in(shell.read(line))
    assert found is not None
    assert (found.word, found.program) == (word, program)
    assert shell.likely_script(shell.read(line)) == found
    assert found.span is not None
    assert shlex.split(line[found.span]) == [word]
    assert shell.script_in(shell.read_argv(found.argv)) == found


@pytest.mark.parametrize("line", NOT_NAMED)
def test_what_runs_anything_else_or_more_names_none(line: str) -> None:
    assert shell.script_in(shell.read(line)) is None


def test_words_without_a_shell_are_no_line_of_one() -> None:
    found = shell.script_in(shell.read_argv(["./a b; c", "$X"]))
    assert found is not None
    assert found.word == "./a b; c"
    assert shell.script_in(shell.read_argv([])) is None
    assert shell.script_in(shell.read_argv(["./\u202ex"])) is None


@pytest.mark.parametrize(
    ("first", "program"),
    [
        ("echo no first line", "bash"),
        ("#!/bin/bash", "bash"),
        ("#! /bin/sh -eu", "sh"),
        ("#!/usr/bin/env python3", "python3"),
        ("#!/usr/bin/python3.11 -u", "python3.11"),
        ("#!/work/.venv/bin/python", ""),
        ("#!python3", ""),
        ("#!", ""),
        ("#!/usr/bin/env", ""),
        ("#!/usr/bin/env -S python3 -u", ""),
        ("#!/usr/bin/env X=1 python3", ""),
        ("#!/usr/bin/env ./x", ""),
        ("#!/usr/bin/env python3\r", ""),
        ("#!/bin/bash -c", ""),
        ("#!/usr/bin/perl -Mevil", ""),
        ("#!/usr/bin/make -f", ""),
        ("#!/usr/bin/../../work/sh", ""),
        (" #!/work/evil", ""),
        (":#!/usr/bin/python3", ""),
        ("\ufeff#!/usr/bin/python3", ""),
        ("\f\v\r#!/usr/bin/python3", ""),
        (f"#!{' ' * 110}/usr/bin/python", "python"),
        (f"#!{' ' * 110}/usr/bin/python3", ""),  # cut to the line before
    ],
)
def test_what_reads_a_file_that_is_run_by_its_name(first: str, program: str) -> None:
    assert shell.program_of(f"{first}\nrest\n") == program


OBEYED = ("#!{}", " \t#!{}", ":#!{}", "\ufeff#!{}", "\f\v\r#!{}", "#! {} -u", "#!{} " + "u" * 200)
NOT_OBEYED = ("# !{}", "\n#!{}", "x;#!{}", "# {}")


@pytest.mark.parametrize("first", OBEYED + NOT_OBEYED)
def test_what_perl_makes_of_a_first_line_is_not_taken_for_a_known_program(tmp_path: Path, first: str) -> None:
    """It starts the program that is named there when that is not perl itself."""
    text = first.format("/bin/echo") + "\nprint 'perl';\n"
    (tmp_path / "x").write_text(text)
    ran = subprocess.run(["perl", "x"], cwd=tmp_path, capture_output=True, timeout=20, text=True)
    obeyed = ran.stdout.strip().endswith("x")
    assert obeyed is (first in OBEYED), ran
    assert not (obeyed and shell.program_of(text))


FILES = ("a.x", "b.x", "-e", "-o", "-W", "--", "-", "+x", "pipefail", "ignore", "inspect", "-u", "--norc")
PRINTS = {
    "bash": "echo ran:{name}\n", "sh": "echo ran:{name}\n", "dash": "echo ran:{name}\n",
    "python": "print('ran:{name}')\n", "perl": "print 'ran:{name}';\n", "node": "console.log('ran:{name}');\n",
}  # fmt: skip
WORDS = st.one_of(
    st.sampled_from(FILES),
    st.sampled_from(
        "-c -s -i -l -x -n -eu -euo -ue -xv -O -X -m -S -I -q -b -uW -We -E -r -p -w -T -Mstrict -h +e --posix"
        " --verbose --version --rcfile --init-file --no-warnings --use-strict --require --test -O0 -1 debug".split()
    ),
)


@cache
def folder(program: str) -> Path:
    made = Path(mkdtemp(prefix="scripts-"))
    for name in FILES:
        (made / name).write_text(PRINTS[program].format(name=name))
    return made


@pytest.fixture(scope="module", autouse=True)
def nothing_stays():
    yield
    for program in PRINTS:
        shutil.rmtree(folder(program))
    folder.cache_clear()


@pytest.mark.parametrize("program", [each for each in PRINTS if each == "python" or shutil.which(each)])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(WORDS, min_size=1, max_size=5))
def test_an_interpreter_runs_the_file_that_is_named_and_no_other(program: str, words: list[str]) -> None:
    """It may also refuse to; what it prints is never another file's."""
    found = shell.script_in(shell.read_argv([program, *words]))
    if found is None:
        return
    binary = sys.executable if program == "python" else program
    ran = subprocess.run(
        [binary, *words], cwd=folder(program), stdin=subprocess.DEVNULL, capture_output=True, timeout=20, text=True
    )
    assert ran.stdout.strip() in ("", f"ran:{found.word}"), (words, ran)


@given(words=st.lists(WORDS, min_size=1, max_size=5), program=st.sampled_from(sorted(PRINTS)))
def test_a_word_that_changes_what_comes_after_it_names_no_file(program: str, words: list[str]) -> None:
    found = shell.script_in(shell.read_argv([program, *words]))
    if found is not None:
        before = found.argv[1 : found.at]
        assert not {"-c", "-s", "-m", "-i", "-l", "-r", "--rcfile", "--init-file", "--require", "-X", "-"} & set(before)
        assert shell.script_in(shell.read_argv(found.argv[: found.at + 1])) is not None  # what follows is its own
