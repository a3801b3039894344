"""How a RunRequest becomes a runner's request.

Owns the limits on a command. Must never put a long text where the kernel takes 128 KiB: such a script goes beside the
arguments, and the shell reads it from an open file that its children do not get.
"""

from typing import Any

from sandboxes.errors import SandboxError

from .shapes import RunRequest

LONG_ARGUMENT_BYTES = 96 << 10
ARGUMENTS_LIMIT_BYTES = (1 << 20) + (256 << 10)  # 512 KiB of words, the call's variables and those of the sandbox
SCRIPT_LIMIT_BYTES = 2 << 20
STDIN_LIMIT_BYTES = 8 << 20
LONGEST_S = 24 * 3600.0
READ_SCRIPT = 'eval -- "$(cat <&9)" 9<&-'


class BadCommand(SandboxError):
    code = "bad_request"


def request(command_id: str, asked: RunRequest) -> tuple[dict[str, Any], bytes]:
    """The message, and the script to attach to it (empty for most)."""
    argv, script = _shape(list(asked.argv))
    _check(asked, argv, script)
    message = {
        "op": "run",
        "id": command_id,
        "argv": argv,
        "cwd": asked.cwd,
        "env": dict(asked.env),
        "timeout_s": asked.timeout_s,
        "background": asked.background,
        "as_root": asked.as_root,
        "script_bytes": len(script),
    }
    if asked.script is not None:
        message["pinned"] = True
    return message, script


def _shape(argv: list[str]) -> tuple[list[str], bytes]:
    if len(argv) >= 3 and "-c" in argv[-3:-1] and argv[-2] in ("-c", "--") and _bytes(argv[-1]) > LONG_ARGUMENT_BYTES:
        return [*argv[:-1], READ_SCRIPT], argv[-1].encode("utf-8", "surrogateescape")
    return argv, b""


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _check(asked: RunRequest, argv: list[str], script: bytes) -> None:
    words = [*argv, asked.cwd, *(f"{name}={value}" for name, value in asked.env.items())]
    if not argv or not argv[0]:
        raise BadCommand("The command is empty.")
    if b"\0" in script or any("\0" in word for word in words):
        raise BadCommand("The command, its directory or its environment holds a NUL, which no program can be given.")
    if any(not name or "=" in name for name in asked.env):
        raise BadCommand("A variable's name is empty or holds '='.")
    if max(map(_bytes, words)) > LONG_ARGUMENT_BYTES or sum(map(_bytes, words)) > ARGUMENTS_LIMIT_BYTES:
        raise BadCommand(f"An argument or variable is longer than {LONG_ARGUMENT_BYTES} bytes. Put it into a file.")
    if len(script) > SCRIPT_LIMIT_BYTES:
        raise BadCommand(f"The command is longer than {SCRIPT_LIMIT_BYTES} bytes. Put it into a file.")
    if len(asked.stdin) > STDIN_LIMIT_BYTES:
        raise BadCommand(f"stdin is longer than {STDIN_LIMIT_BYTES} bytes. Put it into a file.")
    if asked.background and asked.timeout_s is None:
        return
    if asked.timeout_s is None or not 0 < asked.timeout_s <= LONGEST_S:
        raise BadCommand(f"timeout_s is {asked.timeout_s}: it must be above 0 and at most {LONGEST_S:g}.")
