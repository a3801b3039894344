"""Which calls a pattern allows and which it forbids."""

import pytest

from approvals import shell


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@pytest.mark.parametrize(
    ("pattern", "call", "matched"),
    [
        ("git log", "git log", True),
        ("git log", "git log --oneline -n 3", True),
        ("git log", "git", False),
        ("git log", "git logs", False),
        ("git log", "git -C x log", False),
        ("git log", "/usr/bin/git log", False),
        ("git", "/tmp/git", False),
        ("ls *", "ls", False),
        ("ls *", "ls a", True),
        ("ls *", "ls -a", False),
        ("ls *.py", "ls a.py", True),
        ("ls *.py", "ls -x.py", False),
        ("ls a*b", "ls a/../b", True),
        ("ls a*b", "ls a b", False),
        ("ls -*", "ls -la", True),
        ("ls a.b", "ls axb", False),
        ("ls <nothing>", "ls", True),
        ("ls <nothing>", "ls a", False),
        ("ls <no-flags>", "ls", True),
        ("ls <no-flags>", "ls a b", True),
        ("ls <no-flags>", "ls a -l", False),
        ("ls -l <no-flags>", "ls -l a", True),
        ("ls <no-flags>", "ls -- a", False),
        ("pip install <rest:*==*>", "pip install a==1 b==2", True),
        ("pip install <rest:*==*>", "pip install a==1 b", False),
        ("pip install <rest:*==*>", "pip install -r==x", False),
    ],
)
def test_a_pattern_is_the_first_words_of_a_call(pattern: str, call: str, matched: bool) -> None:
    assert shell.matches(words(pattern), words(call)) is matched


def test_a_star_is_within_one_word() -> None:
    assert shell.matches(("ls", "*"), ("ls", "a b\nc"))
    assert not shell.matches(("ls", "*", "c"), ("ls", "a b c"))


@pytest.mark.parametrize(
    ("pattern", "dangerous"),
    [
        ("git log", "git log --output=f"),
        ("git log", "git log --outp f"),
        ("git log", "git log -n 3 --ext-diff"),
        ("git log", "git log --ext"),
        ("git diff", "git diff -- --output=f"),
        ("git grep", "git grep -O x"),
        ("git grep", "git grep -nOless x"),
        ("git branch", "git branch -D main"),
        ("git branch", "git branch --del main"),
        ("git commit", "git commit -S -m x"),
        ("git fetch", "git fetch --upload-pack=x"),
        ("git fetch", "git fetch ext::sh"),
        ("git rebase", "git rebase -x rm"),
        ("git bisect", "git bisect run rm"),
        ("git show", "git show --textconv"),
        ("git log --output=a*", "git log --output=ab --output=/etc/x"),
        ("git log --output=a*", "git log --output=a --outp=/x"),
        ("git log --out*", "git log --output=x"),
        ("sort -o f", "sort -o f -o g"),
        ("sort *", "sort -o f"),
        ("sort <rest:-*>", "sort -o"),
        ("sort", "sort -o f"),
        ("sort", "sort -of"),
        ("sort", "sort -ro f"),
        ("sort", "sort f --outp=g"),
        ("sort", "sort -- -o f"),
        ("sort", "sort -k -- -o f"),
        ("sort", "sort --compress-program=x"),
        ("sort", "sort --c"),
        ("uniq", "uniq a b"),
        ("shuf", "shuf -o x"),
        ("find", "find . -delete"),
        ("fd", "fd -x rm"),
        ("rg", "rg --pre x y"),
        ("rg", "rg --hostname-bin=x y"),
        ("date", "date -s now"),
        ("date", "date --se=now"),
        ("tree", "tree -o x"),
        ("xxd", "xxd a b"),
        ("tar", "tar --checkpoint-action=exec=x -tf y"),
        ("pytest", "pytest -p x"),
        ("pytest", "pytest -qp x"),
        ("pytest", "pytest -c x"),
        ("pytest", "pytest --rootdir=/x"),
        ("pytest", "pytest --root /x"),
        ("pytest", "pytest --basetemp=/x"),
        ("pytest", "pytest @x"),
        ("pip install <rest:*>", "pip install ./x"),
        ("pip install <rest:*>", "pip install x"),
        ("pip install <rest:*>", "pip install x==1.zip"),
        ("pip install <rest:*>", "pip install git+https://x/y==1"),
        ("pip install <rest:*==*>", "pip install x==1.whl"),
        ("pip install -r <no-flags>", "pip install -r x"),
        ("npm ci <no-flags>", "npm ci x"),
        ("npm install <no-flags>", "npm install x@1.0.0"),
    ],
)
def test_options_that_write_or_run_ask_whatever_the_rule_says(pattern: str, dangerous: str) -> None:
    assert not shell.allows(words(pattern), words(dangerous))


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        ("git log", "git log --oneline -n 3 --stat"),
        ("git log --output=*", "git log --output=f"),
        ("git log --ext-diff", "git log --ext-diff -n 1"),
        ("git diff", "git diff HEAD~1 --stat --no-ext-diff --output-indicator-new=+"),
        ("git grep", "git grep -n -e x"),
        ("git branch", "git branch -a --list"),
        ("git commit", "git commit -m x"),
        ("git branch -D", "git branch -D main"),
        ("sort", "sort -k2,2 -rn -to f"),
        ("sort -o", "sort -o f"),
        ("uniq", "uniq -c -f 1"),
        ("uniq -c", "uniq -c a"),
        ("rg", "rg -n --hidden --files x"),
        ("rg", "rg -e pre x"),
        ("date", "date +%s"),
        ("pytest", "pytest -q -x tests/a.py -k name --maxfail=1"),
        ("pytest -p no:cacheprovider", "pytest -p no:cacheprovider tests"),
        ("npm ci --ignore-scripts <nothing>", "npm ci --ignore-scripts"),
        ("npm ci <nothing>", "npm ci"),
        ("npm install --ignore-scripts <rest:*@*>", "npm install --ignore-scripts left-pad@1.3.0 @a/b@2.0.0-rc.1"),
        ("pip install <rest:*==*>", "pip install polars==1.12.0 a[b]==2"),
        ("pip install -r requirements.txt <nothing>", "pip install -r requirements.txt"),
        ("ls", "ls -la x"),
        ("cat", "cat /x"),
    ],
)
def test_what_is_harmless_or_named_by_the_rule_is_allowed(pattern: str, call: str) -> None:
    assert shell.pattern_fault(words(pattern)) == ""
    assert shell.allows(words(pattern), words(call))


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "l*",
        "bash",
        "bash -c",
        "python3",
        "python3.11 -c",
        "perl",
        "env",
        "sudo",
        "timeout 5 ls",
        "nice",
        "nohup",
    ]
    + ["setsid", "xargs", "find", "parallel", "watch", "busybox", "command", "builtin", "exec", "eval", "source", ". x"]
    + [
        "trap",
        "alias",
        "export",
        "coproc",
        "vi",
        "nano",
        "less",
        "sed",
        "awk",
        "gawk",
        "tee",
        "/bin/bash",
        "/usr/bin/env",
    ]
    + [
        "/tmp/git log",
        "./x",
        "x/y",
        "git",
        "git *",
        "git -c a=b log",
        "git -C x log",
        "git co",
        "git config",
        "git difftool",
    ]
    + [
        "git stash",
        "git remote",
        "git submodule",
        "ssh",
        "ssh host",
        "curl",
        "curl x",
        "curl * <nothing>",
        "wget",
        "make",
    ]
    + [
        "make test",
        "npm",
        "npm ci",
        "npx",
        "npx jest",
        "pip install",
        "pip",
        "docker",
        "docker ps",
        "ls <nothing> a",
        "hash",
    ]
    + ["enable", "read", "printf -v x", "test -v x", "su", "mapfile", "set", "shopt", "su root", "dd", "node", "psql"],
)
def test_no_rule_may_have_a_pattern_that_allows_anything(pattern: str) -> None:
    assert shell.pattern_fault(words(pattern))
    assert not shell.allows(words(pattern), words(pattern))


@pytest.mark.parametrize("name", sorted("bash env python3 sed tee find xargs vi less eval . source".split()))
def test_a_program_that_runs_its_words_is_never_allowed_by_any_path(name: str) -> None:
    for spelled in (name, f"/bin/{name}", f"/usr/bin/{name}"):
        assert shell.never_by_rule((spelled, "x")).endswith(".")


@pytest.mark.parametrize(
    ("call", "never"),
    [
        ("ls -la", False),
        ("/bin/ls", False),
        ("/tmp/ls", True),
        ("./ls", True),
        ("../bin/ls", True),
        ("/usr/bin/../../tmp/ls", True),
        ("git status", False),
        ("git nonsense", True),
        ("cd src", False),
        ("cd /work/src", False),
        ("cd /work", False),
        ("cd", True),
        ("cd -", True),
        ("cd ..", True),
        ("cd a/../../etc", True),
        ("cd /workshop", True),
        ("cd /etc", True),
        ("cd -P /etc", True),
        ("printf %s x", False),
        ("printf -v x y", True),
        ("test -f x", False),
        ("test -v a[$(id)]", True),
    ],
)
def test_which_calls_no_rule_may_allow(call: str, never: bool) -> None:
    assert bool(shell.never_by_rule(words(call))) is never


@pytest.mark.parametrize(
    ("pattern", "call", "forbidden"),
    [
        ("rm -rf", "rm -rf x", True),
        ("rm -rf", "/bin/rm -rf x", True),
        ("rm -rf", "./rm -rf x", True),
        ("rm -rf", "rm -fr x", True),
        ("rm -rf", "rm -r -f x", True),
        ("rm -rf", "rm x -rf", True),
        ("rm -rf", "rm -Rvf x", True),
        ("rm -rf", "rm --recursive --force x", True),
        ("rm -rf", "rm --rec --forc x", True),
        ("rm -rf", "rm -r x", False),
        ("rm -rf", "rm x", False),
        ("rm -rf", "echo rm -rf", False),
        ("curl", "curl http://x", True),
        ("curl", "curly", False),
        ("git push", "git push origin", True),
        ("git push", "git --no-pager push", True),
        ("git push", "git -C x push", True),
        ("git push", "git -c a=b push", True),
        ("git push", "git log push", False),
        ("git push --force", "git push -f", True),
        ("git push --force", "git push origin --force", True),
        ("git push --force", "git push origin", False),
        ("docker run", "docker --context x run y", True),
        ("find -delete", "find . -delete", True),
        ("git diff --output=*", "git diff --output=x", True),
        ("ls <nothing>", "/bin/ls", True),
        ("ls <nothing>", "ls x", False),
        ("/opt/x", "/opt/x y", True),
        ("/opt/x", "x y", False),
        ("pip install", "pip install x", True),
    ],
)
def test_a_rule_that_denies_sees_through_spellings(pattern: str, call: str, forbidden: bool) -> None:
    assert shell.forbids(words(pattern), words(call)) is forbidden


def test_nothing_is_matched_by_nothing() -> None:
    for judge in (shell.matches, shell.allows, shell.forbids):
        assert not judge((), ("ls",))
        assert not judge(("ls",), ())
        assert not judge(("<nothing>",), ("<nothing>",))
