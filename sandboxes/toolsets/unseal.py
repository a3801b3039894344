"""Lift the seal of one protected file, so that commands can change it until its sandbox is started again. Tools cannot
write it even then. Asked for like a write; it says nothing of what the file holds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from console.workspaces.models import Agent

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "unseal", 1, "write"


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, "path")
    return {"path": check.path(arguments.get("path"))}


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    path, was_sealed = await box.unseal(pass_, pass_.arguments["path"])
    return {"path": path, "was_sealed": was_sealed}
