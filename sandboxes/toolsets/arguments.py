"""Checks that tools share: paths, names, numbers. Each raises Invalid naming the field and what would pass."""

import math
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from console.workspaces.errors import Invalid
from sandboxes.errors import NotAllowed

WORK = "/work"
PATH_BYTES = 4096
ENVIRONMENT_BYTES = 256 << 10
# A variable that changes which program runs, or what it loads first. No such list is whole: the rest is on the card.
STEERING = re.compile(
    r"(PATH|HOME|SHELL|ENV|IFS|CDPATH|TMPDIR|PS4|PROMPT_COMMAND|INPUTRC|ZDOTDIR|XDG_.*|BASH.*|SHELLOPTS"
    r"|LD_.*|GCONV_PATH|LOCPATH|NLSPATH|HOSTALIASES|RES_OPTIONS|TERMCAP|TERMINFO.*"
    r"|PYTHON.*|PIP_.*|VIRTUAL_ENV|CONDA_.*|PERL.*|RUBY.*|GEM_.*|BUNDLE_.*|LUA_.*|PHPRC|PHP_INI_SCAN_DIR"
    r"|NODE_(OPTIONS|PATH|REPL.*|EXTRA_CA_CERTS)|(?i:npm|yarn)_.*|AWKPATH|AWKLIBPATH|TCLLIBPATH|TCL_LIBRARY|GUILE_.*"
    r"|_?JAVA_.*|JDK_.*|CLASSPATH|MAVEN_.*|GRADLE_.*|R_(PROFILE|ENVIRON|LIBS|HOME).*"
    r"|CARGO_.*|RUSTC.*|RUSTFLAGS|RUSTUP_.*|GO(PATH|ROOT|FLAGS|ENV|PROXY|BIN)"
    r"|MAKEFILES|MAKEFLAGS|GNUMAKEFLAGS|MFLAGS|CMAKE_.*|CC|CXX|CPP|COMPILER_PATH|GCC_EXEC_PREFIX|LIBRARY_PATH|CPATH"
    r"|GIT_.*|SSH_.*|HGRCPATH|EDITOR|VISUAL|BROWSER|.*PAGER|LESS|LESSOPEN|LESSCLOSE|MANPATH"
    r"|OPENSSL_.*|SSL_.*|SSLKEYLOGFILE|CURL_.*|WGETRC|TAR_OPTIONS|ZIPOPT|UNZIP|GREP_OPTIONS|SQLITE_.*)\Z"
)
VERSION = re.compile(r"([0-9a-f]{12})?\Z")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def path(value: object, *, field: str = "path") -> str:
    """Absolute; relative ones start at /work. Nothing is normalised: `..` is for the sandbox's own kernel to judge."""
    if not isinstance(value, str) or not value:
        raise Invalid(f"`{field}` is a path such as /work/run.py.", field=field)
    _text(value, field)
    if len(value.encode()) > PATH_BYTES:
        raise Invalid(f"`{field}` is longer than {PATH_BYTES} bytes.", field=field)
    return posixpath.join(WORK, value)


def text(value: object, *, field: str, limit_bytes: int) -> str:
    if not isinstance(value, str):
        raise Invalid(f"`{field}` is a text.", field=field)
    _text(value, field)
    if (size := len(value.encode())) > limit_bytes:
        raise Invalid(f"`{field}` has {size} bytes; the limit is {limit_bytes}.", field=field)
    return value


def _text(value: str, field: str) -> None:
    if "\0" in value:
        raise Invalid(f"`{field}` holds a NUL, which no command line or path can carry.", field=field)
    if not is_unicode(value):
        raise Invalid(f"`{field}` holds half a surrogate pair, so it is no valid Unicode.", field=field)


def is_unicode(value: str) -> bool:
    """False for half a character, which no encoding takes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def seconds(value: object, *, field: str, most: int) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not 0 < value <= most:  # type: ignore[operator]
        raise Invalid(f"`{field}` is more than 0 and at most {most} seconds, not {value!r}.", field=field)
    number = float(value)  # type: ignore[arg-type]
    return int(number) if number.is_integer() else number


def version(value: object, *, field: str = "version") -> str:
    """Of a file, as a read tells it; empty: nothing may be there."""
    if not isinstance(value, str) or not VERSION.match(value):
        raise Invalid(f"`{field}` is 12 hex digits, as a read of the file shows it.", field=field)
    return value


def flag(value: object, *, field: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"`{field}` is true or false.", field=field)
    return value


def environment(value: object, *, by_agent: bool, field: str = "env") -> dict[str, str]:
    """Names and texts. What steers which code runs is refused from agents: on the card the line would be a lie."""
    if not isinstance(value, Mapping) or len(value) > 100:
        raise Invalid(f"`{field}` maps at most 100 names to texts.", field=field)
    for name, content in value.items():
        if not isinstance(name, str) or not NAME.match(name):
            raise Invalid(f"`{field}` has the name {name!r}; letters, digits and _ only.", field=field)
        text(content, field=f"{field}.{name}", limit_bytes=64 * 1024)
    if by_agent and (steering := sorted(name for name in value if STEERING.match(name))):
        raise NotAllowed(
            f"`{steering[0]}` decides which code runs, so an agent cannot set it. Write the full path or put it in the "
            "command, where a reviewer sees it.",
            field=f"{field}.{steering[0]}",
        )
    if sum(len(name.encode()) + len(content.encode()) for name, content in value.items()) > ENVIRONMENT_BYTES:
        raise Invalid(f"`{field}` has more than {ENVIRONMENT_BYTES} bytes in all. Put it into a file.", field=field)
    return dict(value)


def only(arguments: Mapping[str, Any], *names: str) -> None:
    if unknown := sorted(set(arguments) - set(names)):
        raise Invalid(f"There is no argument `{unknown[0]}`; there are {', '.join(names)}.", field=unknown[0])
