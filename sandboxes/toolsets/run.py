"""Run a command as `agent`, in `/work`, without a terminal. Its result is numbers; what it prints goes to outputs."""

import posixpath
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from approvals import payloads, shell
from console.workspaces.errors import Invalid
from console.workspaces.models import Agent
from sandboxes.errors import FileError

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "run", 1, "command"
COMMAND_BYTES = 1 << 20
# With cwd and environment below what the engine can hand over: what a person approves must be able to start.
WORD_BYTES, ARGV_BYTES = 96 << 10, 512 << 10
STDIN_BYTES = 1 << 20
TIMEOUT_S, TIMEOUT_MOST_S, BACKGROUND_MOST_S = 120, 3600, 86400
# What begins with a dash is a line too, and no option of the shell.
SHELL = ("bash", "--noprofile", "--norc", "-c", "--")


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    """`command` or `argv`, with every default written out, so that the digest binds what really runs. `background` only
    when it is: a digest of a command in the foreground is what it was before there was another kind."""
    check.only(arguments, "command", "argv", "timeout_s", "cwd", "env", "stdin", "background")
    background = check.flag(arguments.get("background", False), field="background")
    what = _what(arguments.get("command"), arguments.get("argv"))
    env = check.environment(arguments.get("env") or {}, by_agent=agent is not None)
    stdin = check.text(arguments.get("stdin") or "", field="stdin", limit_bytes=STDIN_BYTES)
    return {
        **what,
        **({"background": True} if background else {}),
        "cwd": check.path(arguments.get("cwd") or check.WORK, field="cwd"),
        "env": env,
        "stdin": payloads.pack(stdin),
        "timeout_s": _timeout(arguments.get("timeout_s"), background=background),
    }


def _timeout(value: object, *, background: bool) -> float | None:
    """None, in the background only: until it is stopped or its sandbox ends."""
    if value is None:
        return None if background else TIMEOUT_S
    return check.seconds(value, field="timeout", most=BACKGROUND_MOST_S if background else TIMEOUT_MOST_S)


def _what(command: object, argv: object) -> dict[str, Any]:
    if (command is None) == (argv is None):
        raise Invalid("Send either `command`, a shell line, or `argv`, a list of words.", field="command")
    if command is not None:
        line = check.text(command, field="command", limit_bytes=COMMAND_BYTES)
        if not line.strip():
            raise Invalid("`command` is empty. Send the line to run.", field="command")
        return {"command": payloads.pack(line)}
    if not isinstance(argv, list | tuple) or not argv or len(argv) > 1000:
        raise Invalid("`argv` is a list of 1 to 1000 words; the first is the program.", field="argv")
    words = [check.text(word, field=f"argv.{n}", limit_bytes=WORD_BYTES) for n, word in enumerate(argv)]
    if not words[0]:
        raise Invalid("`argv.0`, the program, is empty.", field="argv.0")
    if sum(len(word.encode()) for word in words) > ARGV_BYTES:
        raise Invalid(f"`argv` has more than {ARGV_BYTES} bytes in all. Put them into a file.", field="argv")
    return {"argv": words}


def read(arguments: Mapping[str, Any]) -> shell.Read:
    if "argv" in arguments:
        return shell.read_argv(arguments["argv"])
    return shell.read(payloads.content(arguments["command"]).decode())


def script_of(arguments: Mapping[str, Any]) -> shell.Script:
    """Of a command that is bound to one. Needs no process, which might fail. FileError when this version reads the line
    in another way than the one that bound it."""
    if script := shell.likely_script(read(arguments)):
        return script
    raise FileError("script_changed", "Which script this runs is read in another way now. Propose it again.", path="")


def named(arguments: Mapping[str, Any], script: shell.Script) -> str:
    """The file as the command names it, absolute; `..` is left for who follows links."""
    path = posixpath.join(arguments["cwd"], script.word)
    return path if ".." in path.split("/") else posixpath.normpath(path)


def command_line(arguments: Mapping[str, Any], bound: Mapping[str, Any] | None = None) -> list[str]:
    """`bound`: the script whose text was approved. Where a link or `..` leads to it, which anybody could turn in the
    last moment, it is named by its real path; nothing else of what was approved is another."""
    words, line = list(arguments.get("argv", ())), ""
    if not words:
        line = payloads.content(arguments["command"]).decode()
    if bound and not is_straight(arguments, script := script_of(arguments), bound["path"]):
        if script.span:
            line = line[: script.span.start] + shlex.quote(bound["path"]) + line[script.span.stop :]
        else:
            words[script.at] = bound["path"]
    return [*SHELL, line] if line else words


def is_straight(arguments: Mapping[str, Any], script: shell.Script, real: str) -> bool:
    """Whether neither a link nor `..` is on the way."""
    return named(arguments, script) == real


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    from sandboxes.engine import RunRequest, Script

    arguments, bound = pass_.arguments, pass_.script
    request = RunRequest(
        argv=command_line(arguments, bound),
        cwd=arguments["cwd"],
        env=dict(arguments["env"]),
        stdin=payloads.content(arguments["stdin"]),
        timeout_s=arguments["timeout_s"],
        script=Script(bound["path"], bound["sha256"]) if bound else None,
    )
    if arguments.get("background"):
        await box.start(pass_, request)
        return {"background": True}
    return result(await box.run(pass_, request, outputs), outputs)


def _status(ended: Any) -> str:
    ends = (("timed_out", ended.timed_out), ("stopped", ended.stopped), ("signalled", ended.signalled))
    return next((word for word, is_so in ends if is_so), "exited")


def result(ended: Any, outputs: "Outputs") -> dict[str, Any]:
    """What the row keeps of a RunResult; the texts stay in the outputs."""
    return {
        "status": _status(ended),
        "exit_code": ended.exit_code,
        "timed_out": ended.timed_out,
        "left_running": ended.left_running,
        "duration_ms": ended.duration_ms,
        "stdout_bytes": ended.stdout_bytes,
        "stderr_bytes": ended.stderr_bytes,
        "truncated": outputs.truncated,
        **({"reason": ended.reason} if ended.reason else {}),
        **_protected(ended),
    }


def _protected(ended: Any) -> dict[str, Any]:
    """New files under protected names."""
    found = [{"path": each.path, "sealed": each.sealed} for each in ended.protected]
    more = {"protected_more": ended.protected_more} if ended.protected_more else {}
    return {"protected": found, **more} if found else {}
