"""List a directory."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from approvals.told import named
from console.workspaces.models import Agent
from sandboxes.toolsets import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "list", 2, "read"
DESCRIPTION = "List the files in a directory. Never asks."
DEPTH_MOST, SHOWN = 20, 1000
PROPERTIES = {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The directory; /work unless given."},
    "depth": {
        "type": "integer",
        "minimum": 1,
        "maximum": DEPTH_MOST,
        "description": "1, which is the default: what lies in it. 2: also what lies in those directories.",
    },
}
REQUIRED = ()
EXAMPLE = {"path": "src"}
ENDS = {"dir": "/", "link": "@", "file": "", "other": "?"}


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, "path", "depth")
    return {"path": check.path(arguments.get("path") or check.WORK), "depth": arguments.get("depth") or 1}


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    found = await box.entries(pass_, pass_.arguments["path"], depth=pass_.arguments["depth"])
    items = [
        {"path": entry.path.decode(errors="replace"), "type": entry.type, "size": entry.size}
        for entry in found.entries[:SHOWN]
    ]
    return {"path": found.path, "items": items, "truncated": found.truncated or len(found.entries) > SHOWN}


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    lines = [f"{named(item['path'])}{ENDS[item['type']]}" for item in result["items"]]
    more = [f"There is more than these {len(lines)}; list a directory below."] if result["truncated"] else []
    return "\n".join([*lines, *more]) or f"{named(result['path'])} is empty."
