"""The pattern language of command rules, over the words of one call, never over text.

A pattern is a sequence of words and matches every call that begins with them: `git log` allows `git log --oneline`.
In a word `*` stands for any characters of that word; one that begins with `*` is never an option. The last word may say
what else there can be: `<nothing>`, `<no-flags>` (more words, none of them an option), `<rest:WORD>` (more words, each
like WORD). The program is matched as typed: `git` is not `/tmp/git`.

`allows` is stricter than the words (never.py, options.py), `forbids` is wider: any path to the program, options in any
order and spelling. Pure; must never be given text that was not read by this package.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from . import spellings
from .never import never_by_rule
from .options import dangers, name_of_option

NOTHING, NO_FLAGS = "<nothing>", "<no-flags>"
_REST = re.compile(r"<rest:(.+)>", re.DOTALL)
# They reach other machines or run what files say: a rule has to say what they do, and that no more words may follow.
CLOSED = frozenset(
    "ssh scp sftp rsync curl wget aria2c make gmake ninja cmake npm npx pnpm pnpx yarn bun bunx pip pip3 pipx docker"
    " podman kubectl helm terraform cargo go gem bundle composer mvn gradle apt apt-get".split()
)
# Their second word says nothing yet of what they do.
_TWO_DEEP = frozenset("stash remote worktree submodule notes reflog bisect bundle sparse-checkout commit-graph".split())
# The options before a sub-command whose value is the next word.
BEFORE = {
    "git": frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix")),
    "docker": frozenset(("-H", "--host", "-c", "--context", "-l", "--log-level", "--config")),
    "npm": frozenset(("--prefix", "-C", "--workspace", "-w")),
    "kubectl": frozenset(("-n", "--namespace", "--context", "--kubeconfig")),
}
_LONG_SINGLE = frozenset(("find", "java", "openssl", "terraform", "go"))  # one dash, and a word


@lru_cache(maxsize=1024)
def _word(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _is(pattern: str, word: str) -> bool:
    if pattern.startswith("*") and word.startswith("-"):
        return False
    return _word(pattern).fullmatch(word) is not None


def _split(pattern: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Its words, and how it closes."""
    last = pattern[-1] if pattern else ""
    closes = last in (NOTHING, NO_FLAGS) or _REST.fullmatch(last) is not None
    return (tuple(pattern[:-1]), last) if closes else (tuple(pattern), "")


def matches(pattern: Sequence[str], argv: Sequence[str]) -> bool:
    words, closing = _split(pattern)
    if not words or len(argv) < len(words) or not all(map(_is, words, argv)):
        return False
    return _closes(closing, argv[len(words) :])


def _closes(closing: str, rest: Sequence[str]) -> bool:
    if closing == NOTHING:
        return not rest
    if closing == NO_FLAGS:
        return not any(word.startswith("-") for word in rest)
    if each := _REST.fullmatch(closing):
        return all(_is(each[1], word) for word in rest)
    return True


def allows(pattern: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a rule with this pattern lets this call through."""
    if not matches(pattern, argv) or never_by_rule(argv) or pattern_fault(pattern):
        return False
    return _is_exact(pattern) or not _unnamed(pattern, argv)


def _is_exact(pattern: Sequence[str]) -> bool:
    """One call, word for word: who made the rule has read all of it."""
    return pattern[-1] == NOTHING and not any("*" in word for word in pattern)


def _unnamed(pattern: Sequence[str], argv: Sequence[str]) -> list[str]:
    """Dangerous words that the pattern does not name where they stand: the same option once more is another."""
    left = list(dangers(argv))
    for named, word in zip(_split(pattern)[0], argv, strict=False):
        if word in left and "*" not in name_of_option(named):
            left.remove(word)
    return left


def pattern_fault(pattern: Sequence[str]) -> str:
    """Why a rule that allows must not have this pattern; empty when it may."""
    words, closing = _split(pattern)
    if not words or not all(words):
        return "A pattern begins with the name of a program."
    if "*" in words[0]:
        return "A pattern names its program in full, without `*`."
    if any(_split((word,))[1] for word in words):
        return "What closes a pattern stands at its end, once."
    if why := never_by_rule(words):
        return why
    return _too_wide(posixpath.basename(words[0]), words[1:], closing)


def _too_wide(name: str, words: tuple[str, ...], closing: str) -> str:
    if name == "git" and "*" in words[0]:
        return "A pattern names git's sub-command in full."
    if name == "git" and words[0] in _TWO_DEEP and len(words) < 2 and not closing:
        return f"A pattern with `git {words[0]}` says what it does, such as `git {words[0]} list`, or closes."
    if name in CLOSED and (not words or not words[0].strip("*") or not closing):
        return f"A pattern with `{name}` says what it does and closes with {NOTHING}, {NO_FLAGS} or <rest:…>."
    return ""


def forbids(pattern: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a rule with this pattern denies this call. Best effort: what it misses asks."""
    words, closing = _split(pattern)
    if not words or not argv:
        return False
    name = argv[0] if "/" in words[0] else posixpath.basename(argv[0])
    if closing:
        return matches(pattern, (name, *argv[1:]))
    if not _is(words[0], name):
        return False
    wanted, wanted_options = _parts(name, words[1:])
    given, options = _parts(name, tuple(argv[1:]))
    if len(given) < len(wanted) or not all(map(_is, wanted, given)):
        return False
    same = spellings.of(name, given[0] if given else "")
    asked = [each for option in wanted_options for each in _spelt(option, same)[0]]
    has = [each for option in options for way in _spelt(option, same) for each in way]
    return all(any(_same_option(each, option) for option in has) for each in asked)


def _parts(name: str, words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Operands, and options one by one: `-rf` is `r` and `f`."""
    operands, options, skip, before = [], [], False, BEFORE.get(name, frozenset())
    if name == "tar" and words and not words[0].startswith("-"):
        words = (f"-{words[0]}", *words[1:])
    for word in words:
        if skip:
            skip = False
        elif not word.startswith("-") or word == "-":
            operands.append(word)
        else:
            skip = not operands and word in before
            single = not word.startswith("--") and name not in _LONG_SINGLE
            options += list(word[1:]) if single else [word.lstrip("-")]
    return operands, options


def _spelt(option: str, same: Mapping[str, str]) -> list[list[str]]:
    """The letters that it means, by each name that it may be cut short of; and as it stands, with its value."""
    part = option.split("=")[0]
    exact = [list(same[part])] if part in same else []
    cut = [list(same[long]) for long in same if len(part) > 1 and long != part and long.startswith(part)]
    is_valued = "=" in option or "*" in option
    return [[option], *exact, *cut] if is_valued else [*exact, *cut, [option]]


def _same_option(wanted: str, given: str) -> bool:
    """Long options may be cut short by whoever calls."""
    if len(wanted) == 1 or len(given) == 1 or "=" in wanted or "*" in wanted:
        return _is(wanted, given)
    return wanted == given or (given != "" and wanted.startswith(given.split("=")[0]))
