"""Search in files, with ripgrep inside the sandbox. Never asks."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from approvals.told import named
from console.workspaces.models import Agent
from sandboxes.toolsets import arguments as check

from ._found import LIMIT, PAGING, rest

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "grep", 1, "read"
DESCRIPTION = """
Search for lines that match a pattern: a regular expression as ripgrep has them (no look-around, no back-references), or
with `literal` a plain text. Each match comes as path:line:column:text; a long line is cut around its match. Lines have
no tags here: `read` them before you `edit`. What .gitignore leaves out is only counted. Never asks.
"""
PATTERN_BYTES = 8192
PROPERTIES = {
    "pattern": {"type": "string", "minLength": 1, "maxLength": PATTERN_BYTES, "description": r"Such as def\s+load\b."},
    "path": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "description": "File or folder; /work unless given.",
    },
    "glob": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4096,
        "description": "Only in files so named: *.py.",
    },
    "literal": {"type": "boolean", "description": "The pattern is a plain text."},
    "ignore_case": {"type": "boolean", "description": "Small and capital letters are the same."},
    "context": {
        "type": "integer",
        "minimum": 0,
        "maximum": 20,
        "description": "Lines to show before and after each match; 0 unless given.",
    },
    "mode": {
        "type": "string",
        "enum": ["lines", "files", "count"],
        "description": "lines, unless given; files: only their paths; count: how many lines in each.",
    },
    **PAGING,
}
REQUIRED = ("pattern",)
EXAMPLE = {"pattern": "TODO", "glob": "*.py", "context": 2}


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, *PROPERTIES)
    glob = arguments.get("glob")
    return {
        "pattern": check.text(arguments.get("pattern"), field="pattern", limit_bytes=PATTERN_BYTES),
        "path": check.path(arguments.get("path") or check.WORK),
        "glob": None if glob is None else check.text(glob, field="glob", limit_bytes=check.PATH_BYTES),
        "literal": arguments.get("literal", False),
        "ignore_case": arguments.get("ignore_case", False),
        "context": arguments.get("context") or 0,
        "mode": arguments.get("mode") or "lines",
        "limit": arguments.get("limit") or LIMIT,
        "offset": arguments.get("offset") or 0,
        "include_ignored": arguments.get("include_ignored", False),
    }


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    from sandboxes.engine import GrepRequest

    return await box.grep(pass_, GrepRequest(**pass_.arguments))


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    if "counts" in result:
        lines = [f"{named(each['path'])}:{each['count']}" for each in result["counts"]]
        return "\n".join([*lines, *rest(result, lines, "files with matches"), *_not_seen(result)])
    if "paths" in result:
        lines = [named(path) for path in result["paths"]]
        return "\n".join([*lines, *rest(result, lines, "files with matches"), *_not_seen(result)])
    matches = result.get("matches", [])
    return "\n".join([*_lines(matches), *rest(result, matches, "matches"), *_not_seen(result)])


def _lines(matches: list[Mapping[str, Any]]) -> Iterator[str]:
    for n, each in enumerate(matches):
        path = named(each["path"])
        with_context = "before" in each or "after" in each
        if with_context and n:
            yield "--"
        yield from (f"{path}-{number}-{line}" for number, line in each.get("before", ()))
        yield f"{path}:{each['line']}:{each['column']}:{each['text']}"
        yield from (f"{path}-{number}-{line}" for number, line in each.get("after", ()))


def _not_seen(result: Mapping[str, Any]) -> list[str]:
    found = [f"{result['binary']} binary files have matches, which are not shown."] if result.get("binary") else []
    found += ["Very large files were left out."] if result.get("large_left_out") else []
    return [f"[{' '.join(found)}]"] if found else []
