"""What runs in this sandbox: commands in the background, and what commands left running. Reads rows, never the
sandbox."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from approvals import payloads
from console.workspaces import db
from console.workspaces.models import Agent
from sandboxes.toolsets import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.dispatch import Dispatcher

NAME, VERSION, KIND, BY_HOST = "processes", 1, "read", True
DESCRIPTION = """
List the commands of your sandbox that still run, or that ended and left processes running, with their ids for `follow`
and `stop`.
"""
PROPERTIES: dict[str, Any] = {}
REQUIRED = ()
EXAMPLE: dict[str, Any] = {}
SHOWN_CHARACTERS = 200


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments)
    return {}


async def execute(pass_: "Pass", dispatcher: "Dispatcher") -> dict[str, Any]:
    return {"items": await db.read(_items, pass_.sandbox_id)}


def _items(sandbox_id: str) -> list[dict[str, Any]]:
    from approvals.models import Action
    from sandboxes import commands

    found = commands.not_over(sandbox_id)
    asked = Action.objects.in_bulk([command.action_id for command in found])
    return [
        {
            "id": command.pk,
            "status": command.status,
            "background": command.background,
            "left_running": command.left_running,
            "command": _shown(asked[command.action_id].arguments),
            "started_at": command.started_at.isoformat(timespec="seconds"),
        }
        for command in found
    ]


def _shown(arguments: Mapping[str, Any]) -> str:
    if "argv" in arguments:
        line = " ".join(arguments["argv"])
    else:
        line = payloads.content(arguments.get("command", "")).decode(errors="replace")
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}…"


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    if not result["items"]:
        return "Nothing runs in this sandbox."
    return "\n".join(f"{item['id']}  {_state(item)}  {item['command']}" for item in result["items"])


def _state(item: Mapping[str, Any]) -> str:
    return "ended, left processes running" if item["left_running"] else f"{item['status']} since {item['started_at']}"
