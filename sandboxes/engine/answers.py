"""Reading what a runner answered. Every field is hostile input: types and ranges are checked before anything is used.

Owns the way from a RESULT to a RunResult, a WriteResult or an error. Must never pass on a field it did not check.
"""

import re
from typing import Any

from sandboxes.errors import FileError, SandboxError
from sandboxes.runner.frames import BrokenFrame

from .shapes import RunResult, WriteResult

TEXT_LIMIT = 8192
BIGGEST = 2**62
_CODE = re.compile(r"[a-z_]{1,40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
FILE_CODES = {
    "file_not_found",
    "is_a_directory",
    "not_a_file",
    "permission_denied_in_sandbox",
    "no_space",
    "bad_path",
    "stale_edit",
}


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
    return value


def sha256(message: dict[str, Any]) -> str:
    value = text(message, "sha256")
    if not _SHA256.fullmatch(value):
        raise BrokenFrame("sha256 is none")
    return value


def ok(message: dict[str, Any]) -> dict[str, Any]:
    """The good half of an answer, or the error it carries, raised."""
    if type(error := message.get("error")) is dict:
        code, detail = text(error, "code"), text(error, "detail")
        if code in FILE_CODES:
            raise FileError(code, detail, path=text(error, "path") if "path" in error else "")
        raise Refusal(code if code in ("too_many_commands", "bad_request", "busy") else "sandbox_error", detail)
    if type(good := message.get("ok")) is not dict:
        raise BrokenFrame("neither ok nor error")
    return good


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
        duration_ms=number(good, "duration_ms"),
        stdout_bytes=stdout_bytes,
        stderr_bytes=stderr_bytes,
        lost_bytes=everything if settled else number(good, "lost_bytes", most=everything),
    )


def write_result(message: dict[str, Any]) -> WriteResult:
    good = ok(message)
    return WriteResult(path=text(good, "path"), size=number(good, "size"), sha256=sha256(good))


def any_result(message: dict[str, Any]) -> RunResult | WriteResult | None:
    """What a resumed action came to; None when the runner never heard of it."""
    if message.get("unknown") is True:
        return None
    return run_result(message) if "exit_code" in ok(message) else write_result(message)


def killed(message: dict[str, Any]) -> int:
    return 0 if message.get("unknown") is True else number(ok(message), "killed")


def boot(message: dict[str, Any], *, version: int) -> str:
    """The runner's id of this start, from its welcome."""
    if number(message, "version") != version:
        raise BrokenFrame("another version of the protocol")
    return text(message, "boot")
