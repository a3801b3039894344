"""Read a text file, each line with its number and tag: what `edit` names lines by. Never asks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from approvals.told import named, tagged
from console.workspaces.models import Agent
from sandboxes.toolsets import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "read", 2, "read"
DESCRIPTION = """
Read a text file. The first line of the answer has the file's `version`; each line of the file comes as number, tag and
`|`, such as `12kqzt|import os`. To change a file, give `edit` its version and name lines by number and tag: `12kqzt`.
The number and the tag are not part of the file. Up to 2,000 lines or 50 KB at once; go on with `offset`. Never asks.
"""
LINES_MOST = 2000
PROPERTIES = {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file; relative to /work."},
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": 1 << 53,
        "description": "The first line, from 1; 1 unless given. With `as` hex or base64: the first byte, from 0.",
    },
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": 1 << 20,
        "description": "Most lines, 2000 unless given. With `as` hex or base64: most bytes.",
    },
    "as": {"type": "string", "enum": ["text", "hex", "base64"], "description": "For what is no text: its bytes."},
}
REQUIRED = ("path",)
EXAMPLE = {"path": "src/app.py", "offset": 1, "limit": 200}


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    return {("form" if name == "as" else name): value for name, value in given.items()}


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    check.only(arguments, "path", "offset", "limit", "form")
    part = {name: arguments[name] for name in ("offset", "limit") if arguments.get(name) is not None}
    form = arguments.get("form") or "text"
    if form == "text" and part.get("offset") == 0:
        part["offset"] = 1
    return {"path": check.path(arguments.get("path")), **part, **({"form": form} if form != "text" else {})}


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    wanted = dict(pass_.arguments)
    return await box.view(pass_, wanted.pop("path"), **wanted)


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    if "data" in result:
        return "\n".join([_bytes_head(result), result["data"]])
    if "lines" not in result:
        return f"{_head(result, first=0)}\nThis answer is not kept any more. Read the file again."
    head = _head(result, first=arguments.get("offset", 1))
    return "\n".join([head, *tagged(result["lines"]), *_rest(result)])


def _head(result: Mapping[str, Any], *, first: int) -> str:
    span = f"lines {result['from']}-{result['to']} of {count}" if (count := result["line_count"]) else "no lines"
    if count and not result["to"]:
        span = f"there is no line {first}: it has {count}"
    end = "yes" if result["final_newline"] else "no"
    bom = "  BOM" if result.get("bom") else ""
    return (
        f"{named(result['path'])}  version {result['version']}  {span}  {result['newline']}  final newline {end}{bom}"
    )


def _rest(result: Mapping[str, Any]) -> list[str]:
    found = []
    if cut := result.get("cut"):
        numbers = ", ".join(map(str, cut[:20]))
        found.append(f"[lines shown cut, which cannot be named in an edit: {numbers}]")
    if result["truncated"]:
        found.append(f"[there is more: read on with offset {result['next']}]")
    return found


def _bytes_head(result: Mapping[str, Any]) -> str:
    more = f"  there is more: offset {result['next']}" if result["truncated"] else ""
    what = f"{result['size']} bytes  from byte {result['offset']} as {result['form']}"
    return f"{named(result['path'])}  version {result['version']}  {what}{more}"
