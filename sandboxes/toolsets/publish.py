"""Publish a file: a copy of it that outlives the sandbox. It changes nothing in there, so it never asks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from unicodedata import category

from console.workspaces.errors import Invalid
from console.workspaces.models import Agent
from sandboxes import artifacts

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "publish", 1, "read"
TITLE_BYTES = 800  # a column of 200 characters


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, "path", "title")
    title = check.text(arguments.get("title") or "", field="title", limit_bytes=TITLE_BYTES)
    if any(category(character) in ("Cc", "Zl", "Zp") for character in title):
        raise Invalid("`title` is one line, without control characters.", field="title")
    return {"path": check.path(arguments.get("path")), "title": title}


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    return await artifacts.store(await box.copy_out(pass_, pass_.arguments["path"]))
