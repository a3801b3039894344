"""Stop a command with all that it started. It only takes back what a Pass began, so it never asks."""

from collections.abc import Mapping
from signal import Signals
from typing import TYPE_CHECKING, Any

from console.workspaces import db
from console.workspaces.models import Agent
from sandboxes.toolsets import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.dispatch import Dispatcher

NAME, VERSION, KIND, BY_HOST = "stop", 1, "read", True
DESCRIPTION = """
Stop a command that runs, with every process that it started: `signal` first, then KILL after 2 seconds. Also ends what
a command that has ended left running. Answers when nothing of it is left. It never asks.
"""
SIGNALS = ("TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2")
PROPERTIES = {
    "id": {"type": "string", "minLength": 1, "maxLength": 40, "description": "The command's id, cmd_…"},
    "signal": {"type": "string", "enum": list(SIGNALS), "description": "The first signal; TERM unless given."},
}
REQUIRED = ("id",)
EXAMPLE = {"id": "cmd_01jd2k7xw3", "signal": "TERM"}


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, "id", "signal")
    command_id = check.text(arguments.get("id"), field="id", limit_bytes=40)
    return {"id": command_id, "signal": arguments.get("signal") or "TERM"}


async def execute(pass_: "Pass", dispatcher: "Dispatcher") -> dict[str, Any]:
    """`killed`: how many processes this ended, by whichever signal."""
    from sandboxes import commands

    name = pass_.arguments["signal"]
    command = await db.read(commands.of_sandbox, pass_.sandbox_id, pass_.arguments["id"])
    if command.status != "running" and not command.left_running:
        return {"id": command.pk, "status": command.status, "killed": 0, "exit_code": command.exit_code}
    await db.write(commands.record_stop_by, pass_.action_id, command, signal=name)
    killed = await dispatcher.stop(command, Signals[f"SIG{name}"])
    command = await db.read(commands.of_sandbox, pass_.sandbox_id, command.pk)
    return {"id": command.pk, "status": command.status, "killed": killed, "exit_code": command.exit_code}


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    code = "" if result["exit_code"] is None else f", exit code {result['exit_code']}"
    ended = f" This ended {_processes(result['killed'])}." if result["killed"] else ""
    return f"{result['id']}: {result['status']}{code}, and nothing of it runs.{ended}"


def _processes(count: int) -> str:
    return f"{count} processes" if count > 1 else "1 process"
