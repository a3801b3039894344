"""Find files by name. Never asks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from approvals.told import named
from console.workspaces.models import Agent
from sandboxes.toolsets import arguments as check

from ._found import LIMIT, PAGING, rest

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "glob", 1, "read"
DESCRIPTION = """
Find files by name. `*`, `?` and `[…]` stay within one name, `**` crosses directories, `{a,b}` is either; a pattern
without a slash is for names at any depth. Answers paths in order. What .gitignore leaves out is only counted. Never
asks.
"""
PROPERTIES = {
    "pattern": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "description": "Such as *.py or src/**/*.js.",
    },
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "Where; /work unless given."},
    "sort": {"type": "string", "enum": ["path", "recent"], "description": "recent: the last changed first."},
    **PAGING,
}
REQUIRED = ("pattern",)
EXAMPLE = {"pattern": "src/**/*.py"}


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, *PROPERTIES)
    return {
        "pattern": check.text(arguments.get("pattern"), field="pattern", limit_bytes=check.PATH_BYTES),
        "path": check.path(arguments.get("path") or check.WORK),
        "sort": arguments.get("sort") or "path",
        "limit": arguments.get("limit") or LIMIT,
        "offset": arguments.get("offset") or 0,
        "include_ignored": arguments.get("include_ignored", False),
    }


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    from sandboxes.engine import GlobRequest

    return await box.glob(pass_, GlobRequest(**pass_.arguments))


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    paths = result.get("paths", [])
    return "\n".join([*map(named, paths), *rest(result, paths, "files")])
