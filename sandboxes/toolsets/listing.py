"""List a directory with the rights of `agent`. Never asks; the row keeps how much it was, the caller gets what."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from console.workspaces.errors import Invalid
from console.workspaces.models import Agent
from sandboxes.turns import Turn

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box, Listing

NAME, VERSION, KIND = "list", 1, "read"
DEPTH_MOST = 20


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, "path", "depth")
    depth = arguments.get("depth")
    if depth is not None and (type(depth) is not int or not 1 <= depth <= DEPTH_MOST):
        raise Invalid(f"`depth` is a number from 1, the directory itself, to {DEPTH_MOST}.", field="depth")
    return {"path": check.path(arguments.get("path")), "depth": depth or 1}


async def execute(pass_: "Pass", box: "Box", turn: Turn) -> tuple["Listing", dict[str, Any]]:
    """The listing and what the row keeps of it. It is bounded, and takes no turn."""
    found = await box.entries(pass_, pass_.arguments["path"], depth=pass_.arguments["depth"])
    return found, {"path": found.path, "entries": len(found.entries), "truncated": found.truncated}
