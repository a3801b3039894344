"""Reading what a runner answered. Every field is hostile input: types and ranges are checked before anything is used.

Owns the way from a RESULT to a RunResult, a WriteResult or an error. Must never pass on a field it did not check.
"""

import json
import re
from typing import Any

from sandboxes.errors import FileError, SandboxError
from sandboxes.runner.frames import BrokenFrame

from .shapes import Entry, Protected, RunResult, WriteResult

TEXT_LIMIT = 8192
BIGGEST = 2**62
LONGEST_MS = 2**31 - 1
_CODE = re.compile(r"[a-z_]{1,40}")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_BOOT = re.compile(r"[A-Za-z0-9]{1,64}")
_VERSION = re.compile(r"[0-9a-f]{12}")
_TAG = re.compile(r"([bcdfghjklmnpqrstvwxz]{4})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
REFUSALS = {"too_many_commands", "bad_request", "busy", "command_ended", "stdin_full", "stdin_closed"}
FILE_CODES = {
    "file_not_found",
    "is_a_directory",
    "not_a_file",
    "permission_denied_in_sandbox",
    "no_space",
    "bad_path",
    "stale_edit",
    "not_a_directory",
    "bad_edit",
    "hard_link",
    "not_utf8",
    "too_large",
    "busy",
    "protected_path",
    "bad_pattern",
    "no_ripgrep",
    "script_changed",
}
LINES = 4000
PROTECTED_MOST = 50
NAMES = 200
DIFF_LIMIT = 1 << 16
MOVES = 2000
ENTRY_TYPES = ("file", "dir", "link", "other")


class Refusal(SandboxError):
    """The runner said no. `code` is one of ours: anything else it may say is not passed on as a code."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def number(message: dict[str, Any], name: str, *, most: int = BIGGEST) -> int:
    value = message.get(name)
    if type(value) is not int or not 0 <= value <= most:
        raise BrokenFrame(f"{name} is no number in range")
    return value


def flag(message: dict[str, Any], name: str) -> bool:
    value = message.get(name)
    if type(value) is not bool:
        raise BrokenFrame(f"{name} is no flag")
    return value


def text(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if type(value) is not str or len(value) > TEXT_LIMIT:
        raise BrokenFrame(f"{name} is no text")
    return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", value)  # no row takes these, and no answer half a character


def sha256(message: dict[str, Any]) -> str:
    value = text(message, "sha256")
    if not _SHA256.fullmatch(value):
        raise BrokenFrame("sha256 is none")
    return value


def ok(message: dict[str, Any]) -> dict[str, Any]:
    """The good half of an answer, or the error it carries, raised."""
    if type(error := message.get("error")) is dict:
        code, detail = text(error, "code"), text(error, "detail")
        if code in FILE_CODES and ("path" in error or code not in REFUSALS):
            raise FileError(code, detail, path=text(error, "path") if "path" in error else "", **_more(error))
        raise Refusal(code if code in REFUSALS else "sandbox_error", detail)
    if type(good := message.get("ok")) is not dict:
        raise BrokenFrame("neither ok nor error")
    return good


def _more(error: dict[str, Any]) -> dict[str, Any]:
    """What helps to try again: the file as it is now, or names that are there."""
    more: dict[str, Any] = {}
    if "version" in error:
        more["version"] = version(error)
    if "lines" in error:
        more["lines"] = lines(error)
    if "offset" in error:
        more["offset"] = number(error, "offset")
    for name in ("nearest", "names"):
        if name in error:
            more[name] = _names(error, name)
    if "leads_to" in error:
        more["leads_to"] = text(error, "leads_to")
    if "truncated" in error:
        more["truncated"] = flag(error, "truncated")
    return more


def version(message: dict[str, Any]) -> str:
    if not _VERSION.fullmatch(value := text(message, "version")):
        raise BrokenFrame("version is none")
    return value


def lines(message: dict[str, Any]) -> list[list[Any]]:
    """[number, tag, text] of each; the tag is "" where the text is cut."""
    found = message.get("lines")
    if type(found) is not list or len(found) > LINES:
        raise BrokenFrame("lines are none")
    return [_line(line) for line in found]


def _line(found: Any) -> list[Any]:
    if type(found) is not list or len(found) != 3:
        raise BrokenFrame("a line that is none")
    line = dict(zip(("number", "tag", "text"), found, strict=True))
    if not _TAG.fullmatch(tag := text(line, "tag")):
        raise BrokenFrame("a tag that is none")
    return [number(line, "number"), tag, text(line, "text")]


def _names(message: dict[str, Any], name: str) -> list[str]:
    found = message[name]
    if type(found) is not list or len(found) > NAMES:
        raise BrokenFrame(f"{name} are none")
    return [text({name: each}, name) for each in found]


def report(good: dict[str, Any]) -> dict[str, Any]:
    """Of an edit, or of a write by version; empty when there is none, or no longer."""
    if type(found := good.get("report")) is not dict:
        return {}
    diff = found.get("diff")
    if type(diff) is not str or len(diff) > DIFF_LIMIT:
        raise BrokenFrame("diff is none")
    return {
        "path": text(good, "path"),
        "version": version(found),
        "changed": flag(found, "changed"),
        "diff": _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", diff),
        "lines": lines(found),
        "size": number(good, "size"),
        "carried": flag(found, "carried"),
        "moved": _moved(found),
    }


def _moved(found: dict[str, Any]) -> list[list[int]]:
    moved = found.get("moved")
    if type(moved) is not list or len(moved) > MOVES:
        raise BrokenFrame("moved is none")
    for step in moved:
        if type(step) is not list or len(step) != 2 or not all(type(n) is int and abs(n) <= BIGGEST for n in step):
            raise BrokenFrame("moved by what is no number")
    return moved


def run_result(message: dict[str, Any]) -> RunResult:
    good = ok(message)
    stdout_bytes, stderr_bytes = number(good, "stdout_bytes"), number(good, "stderr_bytes")
    everything = stdout_bytes + stderr_bytes
    settled = message.get("settled") is True
    return RunResult(
        exit_code=number(good, "exit_code", most=255),
        timed_out=flag(good, "timed_out"),
        stopped=flag(good, "stopped"),
        left_running=flag(good, "left_running"),
        signalled=flag(good, "signalled"),
        duration_ms=number(good, "duration_ms", most=LONGEST_MS),
        stdout_bytes=stdout_bytes,
        stderr_bytes=stderr_bytes,
        lost_bytes=everything if settled else number(good, "lost_bytes", most=everything),
        protected=_protected(good.get("protected", [])),
        protected_more=number(good, "protected_more") if "protected_more" in good else 0,
    )


def _protected(found: Any) -> tuple[Protected, ...]:
    if type(found) is not list or len(found) > PROTECTED_MOST:
        raise BrokenFrame("protected is no list, or too long")
    for each in found:
        if type(each) is not list or len(each) != 2:
            raise BrokenFrame("a protected file that is none")
    named = [{"path": path, "sealed": sealed} for path, sealed in found]
    return tuple(Protected(text(each, "path"), flag(each, "sealed")) for each in named)


def unsealed(message: dict[str, Any]) -> tuple[str, bool]:
    """Where the file is, links resolved, and whether it had been sealed."""
    good = ok(message)
    return text(good, "path"), flag(good, "was_sealed")


def done(message: dict[str, Any]) -> None:
    ok(message)


def write_result(message: dict[str, Any]) -> WriteResult:
    good = ok(message)
    is_sealed = flag(good, "sealed") if "sealed" in good else None
    held_us = number(good, "held_us") if "held_us" in good else 0
    facts = (text(good, "path"), number(good, "size"), sha256(good), report(good))
    return WriteResult(*facts, sealed=is_sealed, held_us=held_us)


def entries(content: bytes | bytearray) -> tuple[Entry, ...]:
    """Of a listing. Blocking: for a thread."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BrokenFrame("a listing that is not JSON") from error
    if type(found) is not list:
        raise BrokenFrame("a listing that is no list")
    return tuple(map(_entry, found))


def _entry(found: Any) -> Entry:
    if type(found) is not list or len(found) != 5 or type(found[4]) is not int or abs(found[4]) > BIGGEST:
        raise BrokenFrame("an entry that is none")
    entry = dict(zip(("path", "type", "size", "mode"), found, strict=False))
    if entry["type"] not in ENTRY_TYPES:
        raise BrokenFrame("an entry of no known type")
    return Entry(
        _name(entry["path"]), entry["type"], number(entry, "size"), number(entry, "mode", most=0o7777), found[4]
    )


def _name(value: Any) -> bytes:
    try:
        if type(value) is str and len(value) <= TEXT_LIMIT and "\0" not in value:
            return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        pass
    raise BrokenFrame("a name that no file can have")


def any_result(message: dict[str, Any]) -> RunResult | WriteResult | None:
    """What a resumed action came to; None when the runner never heard of it."""
    if message.get("unknown") is True:
        return None
    return run_result(message) if "exit_code" in ok(message) else write_result(message)


def pinned(message: dict[str, Any]) -> None:
    """An older runner has never heard of it."""
    if message.get("unknown") is True:
        raise Refusal("sandbox_error", "This sandbox was made before scripts could be bound to a run. Make a new one.")
    ok(message)


def begun(message: dict[str, Any]) -> None:
    """Also when it has ended since."""
    ok(message)


def taken(message: dict[str, Any]) -> int:
    return number(ok(message), "taken")


def killed(message: dict[str, Any]) -> int | None:
    """None when the runner knows of no such command, or of nothing left of it."""
    return None if message.get("unknown") is True else number(ok(message), "killed")


def boot(message: dict[str, Any], *, version: int) -> str:
    """The runner's id of this start, from its welcome."""
    if number(message, "version") != version:
        raise BrokenFrame("another version of the protocol")
    if not _BOOT.fullmatch(boot := text(message, "boot")):
        raise BrokenFrame("boot is no id")
    return boot
