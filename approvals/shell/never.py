"""Programs that no rule may allow, and why: they run what their words or their input say, or change the shell.

A rule that names one of them would allow anything. Must never be asked about a line, only about one argv.
"""

import posixpath
from collections.abc import Sequence

SHELLS = frozenset("sh bash dash ash zsh ksh mksh fish csh tcsh rbash".split())
INTERPRETERS = frozenset(
    "python python2 python3 pypy pypy3 ipython perl ruby irb node nodejs deno bun php lua luajit tclsh wish expect"
    " guile racket sbcl clisp ghci runghc erl escript elixir iex scala groovy jshell java julia R Rscript octave"
    " osascript pwsh powershell gdb lldb dc bc sqlite3 psql mysql m4 ts-node tsx jrunscript ocaml swipl".split()
) - {"bc", "dc"}
WRAPPERS = frozenset(
    "env sudo su doas runuser timeout nice ionice chrt taskset nohup setsid stdbuf unbuffer xargs find fd fdfind"
    " parallel watch entr busybox toybox time strace ltrace valgrind script scriptreplay flock chroot unshare nsenter"
    " setpriv prlimit systemd-run at batch crontab screen tmux dtach socat nc ncat netcat rlwrap choom catchsegv"
    " faketime fakeroot proot bwrap firejail runcon linux32 linux64 setarch uv poetry pipenv pipx conda mamba hatch"
    " pdm rye nox tox just task start-stop-daemon run-parts ld.so which-command".split()
) - {"which-command"}
EDITORS = frozenset(
    "vi vim nvim view vimdiff ex ed red nano pico emacs emacsclient micro helix hx joe mcedit code subl less more most"
    " man info pager".split()
)
REWRITERS = frozenset("sed gsed awk gawk mawk nawk tee sponge dd patch".split())
# Of bash itself: they run text, load code, or change what later words mean; `test -v 'a[$(x)]'` runs x.
BUILTINS = frozenset(
    "command builtin exec eval source . trap alias unalias export coproc declare typeset local readonly set shopt unset"
    " hash enable bind complete compgen compopt read mapfile readarray let fc history getopts shift return break"
    " continue exit logout suspend bg fg jobs disown wait dirs pushd popd umask ulimit caller".split()
)
NO_NAME = "It names no program."
BY_PATH = "It names a file to run, and what is in that file may change."
SYSTEM_FOLDERS = frozenset(("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"))
_WHYS = (
    (SHELLS, "a shell: it runs whatever text it is given"),
    (INTERPRETERS, "an interpreter: it runs whatever text it is given"),
    (WRAPPERS, "made to start other programs"),
    (EDITORS, "an editor or a pager, which can run commands"),
    (REWRITERS, "able to run commands or to write any file"),
    (BUILTINS, "a part of the shell that runs text or changes what later words mean"),
)


def never_by_rule(argv: Sequence[str]) -> str:
    """Why no rule may allow this call; empty when a rule may."""
    if not argv or not argv[0]:
        return NO_NAME
    folder, name = posixpath.split(argv[0])
    if folder and folder not in SYSTEM_FOLDERS:
        return BY_PATH
    for names, why in _WHYS:
        if name in names or (names is INTERPRETERS and _versioned(name)):
            return f"No rule can allow `{name}`: it is {why}."
    return _by_words(name, argv[1:])


def _versioned(name: str) -> bool:
    """python3.11 is python."""
    bare = name.rstrip("0123456789.-")
    return bare != name and bare in INTERPRETERS


def _by_words(name: str, words: Sequence[str]) -> str:
    if name == "cd" and not _stays(words):
        return "No rule can allow `cd` to a folder that is not named, or is not below `/work`."
    if name in ("printf", "test", "[") and any(word.startswith(("-v", "-R")) for word in words):
        return f"No rule can allow `{name}` with a variable: it may run what stands in its name."
    if name == "git":
        return _git(words)
    return ""


def _stays(words: Sequence[str]) -> bool:
    if len(words) != 1 or not words[0] or words[0].startswith("-"):
        return False
    below = posixpath.join("/work", words[0]) + "/"
    return below.startswith("/work/") and ".." not in words[0]


def _git(words: Sequence[str]) -> str:
    if not words or words[0].startswith("-"):
        return "No rule can allow `git` with words before its sub-command: they change what it runs."
    if words[0] not in GIT_COMMANDS:
        return f"No rule can allow `git {words[0]}`: it runs other programs, or is not one of git's own."
    return ""


# Git's own that run nothing by their words alone; what is not one of git's own may be an alias, which is any command.
GIT_COMMANDS = frozenset(
    "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap"
    " check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree"
    " count-objects describe diff diff-files diff-index diff-tree fetch fmt-merge-msg for-each-ref format-patch fsck gc"
    " get-tar-commit-id grep hash-object index-pack init log ls-files ls-remote ls-tree mailinfo merge merge-base"
    " merge-file merge-tree mktag mktree mv name-rev notes pack-objects pack-refs patch-id prune pull push range-diff"
    " read-tree rebase reflog remote repack reset restore rev-list rev-parse revert rm shortlog show show-branch"
    " show-index show-ref sparse-checkout stash status stripspace submodule switch symbolic-ref tag unpack-objects"
    " update-index update-ref verify-commit verify-pack verify-tag version whatchanged worktree write-tree".split()
)
