"""Programs that run what their words say, and how to find it there. A table, so that it can be read beside the manuals.

Must only ever add to what is found; a wrapper that is not known here is found as itself.
"""

import posixpath
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .never import INTERPRETERS, SHELLS

Argv = tuple[str, ...]
SHELLS_AND_READERS = SHELLS | {"eval", "source", "."}
_NAMES = {"$SHELL": "bash", "${SHELL}": "bash", "$BASH": "bash", "${BASH}": "bash", "$0": "bash"}


@dataclass
class Inner:
    argvs: list[Argv] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # lines for a shell


@dataclass(frozen=True)
class Form:
    """`values`: short and long options whose value is the next word; `operands` come before the program."""

    values: str = ""
    longs: tuple[str, ...] = ()
    operands: int = 0
    joined: bool = False  # its words are a line for a shell


FORMS = {
    "timeout": Form("ks", ("kill-after", "signal"), 1),
    "nice": Form("n", ("adjustment",)),
    "ionice": Form("cnpPu", ("class", "classdata")),
    "chrt": Form("TPD", ("sched-runtime", "sched-period", "sched-deadline"), 1),
    "taskset": Form(operands=1),
    "nohup": Form(),
    "setsid": Form(),
    "unbuffer": Form(),
    "stdbuf": Form("ioe", ("input", "output", "error")),
    "xargs": Form("adEILnPs", ("arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var")),
    "time": Form("fo", ("format", "output")),
    "sudo": Form("ugpCThDRUrt", ("user", "group", "prompt", "host", "chdir", "chroot", "other-user", "close-from")),
    "doas": Form("uC"),
    "chroot": Form("", ("groups", "userspec"), 1),
    "unshare": Form("RSGw", ("root", "wd", "setuid", "setgid")),
    "nsenter": Form("tSG", ("target", "setuid", "setgid")),
    "setpriv": Form("", ("reuid", "regid", "groups", "ambient-caps", "inh-caps", "bounding-set", "securebits")),
    "flock": Form("wE", ("timeout", "wait", "conflict-exit-code"), 1),
    "watch": Form("n", ("interval",), joined=True),
    "entr": Form(),
    "strace": Form("eopsSuEaOXIbPU"),
    "ltrace": Form("eopsSuaAFln"),
    "valgrind": Form(),
    "prlimit": Form("p", ("pid",)),
    "systemd-run": Form("puEtMHUC", ("unit", "property", "uid", "gid", "setenv", "slice", "machine", "host")),
    "xvfb-run": Form("ensfpw"),
    "fakeroot": Form("lsib"),
    "faketime": Form(operands=1),
    "rlwrap": Form(),
    "command": Form(),
    "builtin": Form(),
    "exec": Form("a"),
    "coproc": Form(),
    "busybox": Form(),
    "toybox": Form(),
    "env": Form("uC", ("unset", "chdir")),
    "ssh": Form("BbcDEeFIiJLlmOopQRSWw", operands=1, joined=True),
    "npx": Form("p", ("package",)),
    "bunx": Form(),
    "pnpx": Form(),
    "eval": Form(joined=True),
}
RUNNERS = {  # with a sub-command
    "uv": ("run",), "poetry": ("run",), "pipenv": ("run",), "pdm": ("run",), "rye": ("run",), "hatch": ("run",),
    "npm": ("exec", "x"), "pnpm": ("exec", "dlx"), "yarn": ("exec", "dlx", "run"), "bundle": ("exec",),
}  # fmt: skip
TEXT_OPTIONS = {  # options whose value is a line for a shell
    "su": ("-c", "--command"), "runuser": ("-c", "--command"), "script": ("-c", "--command"),
    "flock": ("-c", "--command"), "npx": ("-c", "--call"), "npm": ("-c", "--call"),
    "env": ("-S", "--split-string"), "rebase": ("-x", "--exec"),
}  # fmt: skip
_STARTS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_FD = frozenset(("-x", "--exec", "-X", "--exec-batch"))


def name_of(argv: Sequence[str]) -> str:
    return posixpath.basename(_NAMES.get(argv[0], argv[0])) if argv else ""


def inner(argv: Argv) -> Inner:
    name, words = name_of(argv), list(argv[1:])
    found = Inner(texts=_texts(name, words))
    if name in SHELLS:
        _shell(words, found)
    elif special := _SPECIAL.get(name):
        special(words, found)
    elif form := FORMS.get(name):
        _add(found, _after(words, form), form)
    elif name in RUNNERS and words[:1] and words[0] in RUNNERS[name]:
        _add(found, _after(words[1:], Form()), Form())
    elif name.startswith(("ld-linux", "ld.so", "ld-musl")):
        _add(found, _after(words, Form("", ("library-path", "preload", "argv0"))), Form())
    elif name.rstrip("0123456789.") in INTERPRETERS and "-m" in words[:-1]:
        found.argvs.append(tuple(words[words.index("-m") + 1 :]))
    return found


def _add(found: Inner, rest: list[str], form: Form) -> None:
    if rest and form.joined:
        found.texts.append(" ".join(rest))
    elif rest:
        found.argvs.append(tuple(rest))


def _after(words: list[str], form: Form) -> list[str]:
    """What follows the options, their values, and the operands and variables that stand before the program."""
    at, operands = 0, form.operands
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if word.startswith("-") and len(word) > 1:
            at += 2 if _takes_next(word, form) else 1
        elif _is_assignment(word):
            at += 1
        elif operands:
            at, operands = at + 1, operands - 1
        else:
            break
    rest = words[at:]
    while rest and (operands or _is_assignment(rest[0])):
        operands -= not _is_assignment(rest[0])
        rest = rest[1:]
    return rest


def _is_assignment(word: str) -> bool:
    return "=" in word and word.split("=")[0].isidentifier()


def _takes_next(word: str, form: Form) -> bool:
    if word.startswith("--"):
        return "=" not in word and any(long.startswith(word[2:]) for long in form.longs)
    first = next((n for n, letter in enumerate(word) if n and letter in form.values), None)
    return first == len(word) - 1


def _texts(name: str, words: list[str]) -> list[str]:
    found = []
    options = TEXT_OPTIONS.get("rebase" if name == "git" and "rebase" in words else name, ())
    for at, word in enumerate(words):
        for option in options:
            long = option.startswith("--")
            if word == option and at + 1 < len(words):
                found.append(words[at + 1])
            elif word.startswith(f"{option}=" if long else option) and word != option:
                found.append(word[len(option) + long :])
    return found


def _shell(words: list[str], found: Inner) -> None:
    """`-c` makes the first operand a line; `$0`, `$1` and so on may be run by it."""
    at, text = 0, False
    while at < len(words) and words[at][:1] in ("-", "+") and len(words[at]) > 1:
        word = words[at]
        at += 1
        if word == "--":
            break
        text |= word[1] != "-" and "c" in word
        if word in ("--rcfile", "--init-file") or (word[1] != "-" and word[-1] in "oO"):
            at += 1
    rest = words[at:]
    if text and rest:
        found.texts.append(rest[0])
        found.argvs += [tuple(rest[n:]) for n in (1, 2) if rest[n:]]


def _find(words: list[str], found: Inner) -> None:
    for at, word in enumerate(words):
        if word in _STARTS or word in _FD:
            rest = words[at + 1 :]
            end = next((n for n, each in enumerate(rest) if each == ";" or (each == "+" and rest[n - 1] == "{}")), None)
            if rest[:end]:
                found.argvs.append(tuple(rest[:end]))


def _parallel(words: list[str], found: Inner) -> None:
    rest = _after(words, Form("jNnSI", ("jobs", "max-args", "sshlogin")))
    end = next((n for n, word in enumerate(rest) if word in (":::", "::::", ":::+")), len(rest))
    found.texts += [" ".join(rest[:end])] if rest[:end] else rest[end + 1 :]


def _trap(words: list[str], found: Inner) -> None:
    found.texts += [word for word in words[:2] if word != "--"][:1]


def _alias(words: list[str], found: Inner) -> None:
    found.texts += [word.partition("=")[2] for word in words if "=" in word]


def _env(words: list[str], found: Inner) -> None:
    """`-S` splits a text into more words of env's own."""
    for text in found.texts:
        try:
            more = shlex.split(text)
        except ValueError:
            more = text.split()
        _add(found, _after(more, FORMS["env"]), FORMS["env"])
    found.texts.clear()
    _add(found, _after(words, FORMS["env"]), FORMS["env"])


def _git(words: list[str], found: Inner) -> None:
    for command, start, joined in (("bisect", "run", False), ("submodule", "foreach", True)):
        if command in words and start in words:
            _add(found, _after(words[words.index(start) + 1 :], Form()), Form(joined=joined))


_SPECIAL: dict[str, Callable[[list[str], Inner], None]] = {
    "find": _find, "fd": _find, "fdfind": _find, "parallel": _parallel, "trap": _trap, "alias": _alias, "env": _env,
    "git": _git,
}  # fmt: skip
