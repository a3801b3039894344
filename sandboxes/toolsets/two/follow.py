"""What a command printed from a byte offset on. Reads the files that the host keeps, so it also answers when the
command or its sandbox has ended. Never since the last call: who asks twice is told the same."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from console.workspaces import bus, db
from console.workspaces.models import Agent
from sandboxes.toolsets import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.dispatch import Dispatcher

NAME, VERSION, KIND, BY_HOST = "follow", 1, "read", True
DESCRIPTION = """
See what a command has printed, from a byte offset on. `next_offset` of the answer is where to go on. With `wait_s` it
waits until there is more, or the command has ended. Asking again with the same offset gives the same again. What a
command prints beyond what is kept is counted in `lost_bytes`.
"""
LIMIT_BYTES, LIMIT_MOST_BYTES, WAIT_MOST_S = 20_000, 50_000, 55
A_CHARACTER_BYTES = 4
STREAMS = ("stdout", "stderr")
PROPERTIES = {
    "id": {"type": "string", "minLength": 1, "maxLength": 40, "description": "The command's id, cmd_…"},
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": 1 << 53,
        "description": "Byte to begin at; 0 unless given.",
    },
    "limit": {
        "type": "integer",
        "minimum": A_CHARACTER_BYTES,
        "maximum": LIMIT_MOST_BYTES,
        "description": f"Most bytes to answer with; {LIMIT_BYTES} unless given.",
    },
    "wait_s": {
        "type": "number",
        "minimum": 0,
        "maximum": WAIT_MOST_S,
        "description": "Seconds to wait for more; 0 unless given.",
    },
    "stream": {"type": "string", "enum": list(STREAMS), "description": "stdout unless given."},
}
REQUIRED = ("id",)
EXAMPLE = {"id": "cmd_01jd2k7xw3", "offset": 0, "wait_s": 10}


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, *PROPERTIES)
    return {
        "id": check.text(arguments.get("id"), field="id", limit_bytes=40),
        "offset": arguments.get("offset") or 0,
        "limit": arguments.get("limit") or LIMIT_BYTES,
        "wait_s": arguments.get("wait_s") or 0,
        "stream": arguments.get("stream") or "stdout",
    }


async def execute(pass_: "Pass", dispatcher: "Dispatcher") -> dict[str, Any]:
    from sandboxes import commands, outputs

    command = await db.read(commands.of_sandbox, pass_.sandbox_id, pass_.arguments["id"])
    if wait_s := pass_.arguments["wait_s"]:
        topics = (f"action:{command.action_id}", f"command:{command.pk}", outputs.topic(command.action_id))
        await bus.wait_for(lambda: db.read(_news, pass_), *topics, timeout_s=wait_s)
    return await db.read(_now, pass_)


def _news(pass_: "Pass") -> bool | None:
    found = _now(pass_)
    return bool(found["data"]) or found["status"] != "running" or None


def _now(pass_: "Pass") -> dict[str, Any]:
    from sandboxes import commands, paging

    wanted = pass_.arguments
    command = commands.as_it_is(commands.of_sandbox(pass_.sandbox_id, wanted["id"]))
    page = paging.page(command, wanted["stream"], wanted["offset"], limit=wanted["limit"])
    other = "stderr" if wanted["stream"] == "stdout" else "stdout"
    return {
        "id": command.pk,
        "stream": wanted["stream"],
        "data": page.content.decode(errors="replace"),
        "next_offset": page.end,
        "first_kept_offset": page.begin,
        "lost_bytes": page.lost_bytes,
        "status": command.status,
        "exit_code": command.exit_code,
        "total_bytes": getattr(command, f"{wanted['stream']}_bytes"),
        f"{other}_bytes": getattr(command, f"{other}_bytes"),
    }


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    return "\n".join(part for part in (_head(result), result.get("data", ""), _other(result)) if part)


def _head(result: Mapping[str, Any]) -> str:
    code = "" if result["exit_code"] is None else f", exit code {result['exit_code']}"
    state = f"{result['id']} {result['status']}{code}."
    lost = f" {result['lost_bytes']} bytes before this are not kept any more." if result["lost_bytes"] else ""
    at, total = result["next_offset"], result["total_bytes"]
    more = f"go on with offset {at}." if at < total or result["status"] == "running" else "that is all of it."
    return f"{state}{lost} {result['stream']} up to byte {at} of {total}; {more}"


def _other(result: Mapping[str, Any]) -> str:
    other = "stderr" if result["stream"] == "stdout" else "stdout"
    return f"It also printed {size} bytes to {other}." if (size := result[f"{other}_bytes"]) else ""
