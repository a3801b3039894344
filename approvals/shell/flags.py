"""Words for a card about what a command may do. They explain; no verdict is made lower by one that is missing."""

import posixpath
from collections.abc import Collection, Iterable, Iterator

from .never import INTERPRETERS, SHELLS, SYSTEM_FOLDERS
from .patterns import BEFORE
from .reading import Read
from .scan import Command
from .wrappers import name_of

NETWORK, DELETES, OUTSIDE, PIPED, UNPINNED = "network", "deletes", "writes_outside", "piped_shell", "unpinned_code"
WORK = "/work"
_HARMLESS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"))
_REACHES = frozenset(
    "curl wget aria2c ssh scp sftp rsync ftp telnet nc ncat netcat socat ping traceroute dig nslookup host whois"
    " apt apt-get gem cargo composer docker podman kubectl npx pnpx bunx http https gh glab aws gcloud az".split()
)
_FETCHES = {  # with these sub-commands
    "git": frozenset("push pull fetch clone ls-remote submodule archive send-email svn remote".split()),
    "pip": frozenset("install download wheel index search".split()),
    "npm": frozenset("install i ci add update publish exec x audit view login".split()),
    "pnpm": frozenset("install i add update publish dlx".split()),
    "yarn": frozenset("install add up upgrade publish dlx".split()),
    "uv": frozenset("pip sync add run lock tool".split()),
    "poetry": frozenset("install add update lock publish".split()),
    "go": frozenset("get install mod".split()),
    "bundle": frozenset("install update".split()),
}
_REMOVES = frozenset("rm rmdir unlink shred trash srm truncate".split())
_REMOVES_WITH = {
    "git": frozenset("clean rm".split()),
    "docker": frozenset("rm rmi prune".split()),
}
_WRITERS = frozenset("cp mv install ln touch mkdir mkfifo mknod rm rmdir truncate shred tee chmod chown dd".split())
_RUNS_FILES = frozenset(
    "pytest py.test make gmake ninja cmake npm npx pnpm yarn bun tox nox just task rake gradle mvn ant cargo go bundle"
    " uv poetry pdm hatch source . pre-commit meson bazel".split()
)
_READS_PACKAGES = {"npm": frozenset("view audit ls list outdated".split()), "go": frozenset("version env".split())}


def flags(read: Read) -> tuple[str, ...]:
    """Never raises."""
    found = {flag for command in read.commands for flag in _of(command)}
    return tuple(flag for flag in (NETWORK, DELETES, OUTSIDE, PIPED, UNPINNED) if flag in found)


def _of(command: Command) -> Iterator[str]:
    name, words = name_of(command.argv), command.argv[1:]
    first = _sub_command(name, words)
    plain = name.rstrip("0123456789.") or name
    if plain in _REACHES or first in _FETCHES.get(plain, ()) or any("/dev/tcp/" in path for path in command.writes):
        yield NETWORK
    if name in _REMOVES or first in _REMOVES_WITH.get(name, ()) or (name == "find" and "-delete" in words):
        yield DELETES
    if any(map(_is_outside, command.writes)) or (name in _WRITERS and any(map(_is_outside, _targets(name, words)))):
        yield OUTSIDE
    if command.piped and plain in SHELLS | INTERPRETERS and not _has_script(words):
        yield PIPED
    if _is_unpinned(plain, command.argv, first):
        yield UNPINNED


def _sub_command(name: str, words: Iterable[str]) -> str:
    """Its first operand, behind options that take the next word."""
    skip = False
    for word in words:
        if not skip and not word.startswith("-"):
            return word
        skip = not skip and word in BEFORE.get(name, ())
    return ""


def _is_outside(path: str) -> bool:
    if path.startswith("~"):
        return True
    whole = posixpath.normpath(posixpath.join(WORK, path)) + "/"
    return path not in _HARMLESS and not whole.startswith(f"{WORK}/")


def _targets(name: str, words: Iterable[str]) -> list[str]:
    """What it writes to: the last operand of those that copy, each of the others'."""
    if name == "dd":
        return [word[3:] for word in words if word.startswith("of=")]
    words = list(words)
    named = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-t", "--target-directory")]
    named += [word.partition("=")[2] for word in words if word.startswith("--target-directory=")]
    if named:
        return named
    operands = [word for word in words if not word.startswith("-")]
    if name in ("chmod", "chown"):
        return operands[1:]
    return operands[-1:] if name in ("cp", "install", "ln") else operands


def _has_script(words: Collection[str]) -> bool:
    return "-s" not in words and any(word in ("-c", "-e", "-m") or not word.startswith("-") for word in words)


def _is_unpinned(name: str, argv: tuple[str, ...], first: str) -> bool:
    """Runs a file that is not of the system: its text is on no card."""
    if name in _RUNS_FILES:
        return first not in _READS_PACKAGES.get(name, ())
    folder = posixpath.dirname(argv[0]) if argv else ""
    if folder and folder not in SYSTEM_FOLDERS:
        return True
    return name in SHELLS | INTERPRETERS and bool(first) and not {"-c", "-e", "-s"} & set(argv)
