"""Options of harmless programs that write, delete, run or fetch: with one of them an allowed program asks all the same.

Tables by program, from the manuals named beside them. They count wherever they stand, also behind `--`, since that may
be the value of an option before it. Reading is no danger here: who may run `cat` may read. A program that is not here
has no dangers that are known; must never be read as a promise that it has none.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Letters and long names that are dangerous, letters that take a value (what follows them in a word is no letter),
    and how many operands there may be. Long names count when they are cut short, as GNU's and git's may be."""

    letters: str = ""
    longs: tuple[str, ...] = ()
    values: str = ""
    operands: int | None = None
    words: frozenset[str] = frozenset()  # whole words, of programs that do not have letters


def _longs(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PROGRAMS = {
    # coreutils: sort(1) -o, --compress-program, -T; shuf(1) -o; date(1) -s; uniq(1) and hostname(1) take operands
    "sort": Options("oT", _longs("output compress-program temporary-directory"), "kStT"),
    "uniq": Options(values="fsw", operands=1),  # the second is written to
    "shuf": Options("o", ("output",), "in"),
    "date": Options("s", ("set",), "dfIr"),
    "hostname": Options("Fb", ("file", "boot"), operands=0),
    "split": Options(longs=("filter",), values="abClnt"),
    # findutils: find(1) ACTIONS; fd(1)
    "find": Options(
        words=frozenset("-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls -files0-from".split())
    ),
    # diffutils: diff(1) -l runs pr; tree(1) -o; file(1) -C; xxd(1) and od write nothing but xxd's second operand
    "diff": Options("l", ("paginate",), "CFIUWxXS"),
    "tree": Options("oR", ("output",)),
    "file": Options("C", ("compile",), "FfmeP"),
    "xxd": Options("r", ("revert",), "clogsn", operands=1),
    # ripgrep: rg(1) --pre, --hostname-bin; ag(1), ack(1) --pager
    "rg": Options(longs=_longs("pre hostname-bin")),
    "ag": Options(longs=("pager",)),
    "ack": Options(longs=_longs("pager ackrc")),
    # tar(1): actions at checkpoints, filters, volume scripts, remote shells; zip(1) -TT; rsync(1) -e
    "tar": Options("IF", _longs(
        "checkpoint-action to-command use-compress-program info-script new-volume-script rsh-command rmt-command"
        " remove-files absolute-names owner-map"), "fbCTXKNVgL"),
    "zip": Options(longs=_longs("unzip-command move"), words=frozenset(("-TT", "-m"))),
    "rsync": Options("e", _longs("rsh rsync-path remove-source-files delete"), "fTM"),
    # yq(1) -i; jq writes nothing
    "yq": Options("i", ("inplace", "split-exp"), "s"),
    # pytest(1) and its plugins: other code, other folders, files written, pages sent away; `@file` has more options
    "pytest": Options(
        "pcoW", _longs("config-file rootdir override-ini confcutdir basetemp junit-xml junitxml log-file report-log"
        " pastebin pdb pdbcls trace debug tx rsyncdir px cov-report cov-config ignore-glob-file pythonwarnings"
        " rootdir import-mode result-log resultlog"), "kmnWrpco"),
    "ruff": Options("o", _longs(
        "fix fix-only unsafe-fixes output-file config add-noqa cache-dir")),
    "mypy": Options(longs=_longs(
        "install-types python-executable config-file cache-dir junit-xml html-report txt-report xml-report"
        " any-exprs-report cobertura-xml-report linecount-report linecoverage-report lineprecision-report shadow-file"
        " custom-typeshed-dir")),
    # go(1): help build, help testflag
    "go": Options(words=frozenset("-exec -toolexec -vettool -overlay -modfile -o".split())),
}  # fmt: skip
# git-SUBCOMMAND(1). The first is of all: diff options, transports, signatures by a configured program, and force.
GIT = Options(longs=_longs(
    "output ext-diff textconv filters exec upload-pack receive-pack open-files-in-pager gpg-sign show-signature"
    " force hard template output-directory config unsafe-paths directory strategy interactive edit patch"
    " edit-description reedit-message fixup squash"
    " delete move copy sign local-user remote recurse-submodules separate-git-dir"
    " discard-changes force-with-lease mirror prune"))  # fmt: skip
GIT_LETTERS = {
    "add": "fpie", "am": "S", "archive": "o", "branch": "dDmMcCfu", "checkout": "fpB", "cherry-pick": "eSX",
    "clean": "fdxX", "clone": "uc", "commit": "ceSpt", "fetch": "fpu", "format-patch": "o", "grep": "O", "merge": "seS",
    "mv": "f", "notes": "f", "pull": "fsS", "push": "fd", "rebase": "xisS", "reset": "p", "restore": "p",
    "revert": "eS", "rm": "f", "stash": "p", "switch": "fC", "tag": "dfsu",
}  # fmt: skip
GIT_VALUES = {"commit": "mFCc", "tag": "mF", "merge": "mF", "notes": "mF"}
_COMMIT_HARMLESS = frozenset("-a --all -q --quiet -s --signoff --amend --allow-empty --no-edit".split())
_MESSAGE = re.compile(r"-[aqs]*m.*|--message(=.*)?", re.DOTALL)
_SIGNATURE = re.compile(r"%[-+ ]?G|%\(\*?signature")  # in a format: it is looked at with a program that is configured
_PINNED_PYTHON = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?==[0-9][0-9A-Za-z.!+_-]*")
_ARCHIVE = re.compile(r".*\.(zip|whl|egg|tar|tgz|tbz|txz|tlz|tar\.\w+|gz|bz2|xz)", re.IGNORECASE)
_PINNED_NODE = re.compile(r"(@[a-z0-9._~-]+/)?[a-z0-9][a-z0-9._~-]*@[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*")
_PIP_HARMLESS = frozenset("-q -qq --quiet -v --verbose --no-deps --upgrade -U --no-input --no-cache-dir"
    " --disable-pip-version-check --only-binary=:all: --require-virtualenv --no-color".split())  # fmt: skip
_NPM_HARMLESS = frozenset("--ignore-scripts --no-audit --no-fund --silent -s --omit=dev --save-dev -D --save-exact -E"
    " --prefer-offline --no-save".split())  # fmt: skip
NO_SCRIPTS = "--ignore-scripts"


def dangers(argv: Sequence[str]) -> tuple[str, ...]:
    """The words of a call that make it dangerous, each as typed."""
    name, words = posixpath.basename(argv[0]), tuple(argv[1:])
    if special := _SPECIAL.get(name):
        return tuple(special(words))
    if known := PROGRAMS.get(name):
        return tuple(_found(known, words))
    return ()


def name_of_option(word: str) -> str:
    return word.split("=")[0] if word.startswith("--") else word


def _found(known: Options, words: Sequence[str]) -> Iterator[str]:
    operands = 0
    for word in words:
        if _is_dangerous(known, word):
            yield word
        elif not word.startswith("-") or word == "-":
            operands += 1
            if known.operands is not None and operands > known.operands:
                yield word


def _is_dangerous(known: Options, word: str) -> bool:
    if word in known.words:
        return True
    if word.startswith("--"):
        return _is_long(known, word)
    return word.startswith("-") and _has_letter(known, word[1:])


def _is_long(known: Options, word: str) -> bool:
    name = word[2:].split("=")[0]
    return bool(name) and any(long.startswith(name) for long in known.longs)


def _has_letter(known: Options, letters: str) -> bool:
    for letter in letters:
        if letter in known.letters:
            return True
        if letter in known.values:
            return False
    return False


def _git(words: Sequence[str]) -> Iterator[str]:
    if not words:
        return
    command, rest = words[0], words[1:]
    known = Options(GIT_LETTERS.get(command, ""), GIT.longs, GIT_VALUES.get(command, ""))
    yield from _found(known, rest)
    yield from (word for word in rest if "::" in word and command in ("clone", "fetch", "pull", "push", "ls-remote"))
    yield from (word for word in rest if _SIGNATURE.search(word) and command != "commit")
    if command == "commit" and not _says_its_message(rest):
        yield "commit without -m"
    if (command, *rest[:1]) in (("bisect", "run"), ("submodule", "foreach")):
        yield rest[0]


def _says_its_message(words: Sequence[str]) -> bool:
    """Before anything of which it could be the value; else git starts an editor, which its configuration names."""
    first = next((word for word in words if word not in _COMMIT_HARMLESS), "")
    return _MESSAGE.fullmatch(first) is not None


def _pip(words: Sequence[str]) -> Iterator[str]:
    """Only what a registry has under a name and a version: no file, no folder, no other index."""
    if words[:1] in (("install",), ("download",), ("wheel",)):
        for word in words[1:]:
            if word not in _PIP_HARMLESS and (not _PINNED_PYTHON.fullmatch(word) or _ARCHIVE.fullmatch(word)):
                yield word
        if not any(map(_PINNED_PYTHON.fullmatch, words[1:])):
            yield f"{words[0]} without a package"


def _npm(words: Sequence[str]) -> Iterator[str]:
    """Likewise, and no package's script may run."""
    if words[:1] in (("ci",), ("install",), ("i",), ("add",)):
        if NO_SCRIPTS not in words:
            yield f"{words[0]} without {NO_SCRIPTS}"
        for word in words[1:]:
            if word not in _NPM_HARMLESS and not _PINNED_NODE.fullmatch(word):
                yield word
        if words[0] != "ci" and not any(map(_PINNED_NODE.fullmatch, words[1:])):
            yield f"{words[0]} without a package"


def _tar(words: Sequence[str]) -> Iterator[str]:
    """Its first word may be letters without a dash."""
    known = PROGRAMS["tar"]
    if words and not words[0].startswith("-") and set(known.letters) & set(words[0]):
        yield words[0]
    yield from _found(known, words)


def _pytest(words: Sequence[str]) -> Iterator[str]:
    yield from _found(PROGRAMS["pytest"], words)
    yield from (word for word in words if word.startswith("@"))


_SPECIAL: dict[str, Callable[[Sequence[str]], Iterator[str]]] = {
    "git": _git, "pip": _pip, "pip3": _pip, "npm": _npm, "pytest": _pytest, "py.test": _pytest, "tar": _tar,
}  # fmt: skip
