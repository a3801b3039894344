"""Change lines of a file, all or none. The digest binds the edits and, for a gated call, the file that they change and
the file that they make of it: what a person saw is what there will be."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from console.workspaces.errors import Invalid
from console.workspaces.models import Agent
from sandboxes.runner import edits as by_line
from sandboxes.toolsets import arguments as check
from sandboxes.toolsets import write

from ._lines import changed

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box, EditRequest
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "edit", 1, "write"
DESCRIPTION = """
Change lines of a text file. Read it first: give the `version` that `read` showed, and name lines by number and tag,
such as `12kqzt`. All edits are of the file as you read it, so later numbers do not move; all are made, or none. Nothing
is written when the file has changed there since: you then get the lines as they are now. It may first wait for a person
to approve it.
"""
ITEM = {
    "type": "object",
    "properties": {
        "do": {
            "type": "string",
            "enum": ["replace", "delete", "insert_before", "insert_after", "append", "prepend"],
            "description": "replace and delete: the lines `from` to `to`. append, prepend: at the file's end or start.",
        },
        "from": {"type": "string", "maxLength": 40, "description": "A line by number and tag, such as 12kqzt."},
        "to": {
            "type": "string",
            "maxLength": 40,
            "description": "The last line of a range, that line included; only `from` unless given.",
        },
        "lines": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The new lines, one an item, without ends of lines, numbers or tags.",
        },
    },
    "required": ["do"],
    "additionalProperties": False,
}
EDITS_MOST = 1000
PROPERTIES = {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file; relative to /work."},
    "version": {"type": "string", "pattern": "^[0-9a-f]{12}$", "description": "Of the file, as `read` shows it."},
    "edits": {"type": "array", "items": ITEM, "minItems": 1, "maxItems": EDITS_MOST, "description": "In any order."},
}
REQUIRED = ("path", "version", "edits")
EXAMPLE = {
    "path": "src/app.py",
    "version": "3f9c0b71d2ae",
    "edits": [{"do": "replace", "from": "12kqzt", "to": "13bdwm", "lines": ["import os", "import sys"]}],
}
BECOMES = "becomes"
"""Among the bases, where every other name is an absolute path: the SHA-256 of the file that a person saw it become."""


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    """What no file could take is refused here, in the runner's own words; which lines there are it alone can say."""
    check.only(arguments, *PROPERTIES)
    if not isinstance(edits := arguments.get("edits"), list):
        raise Invalid("`edits` is a list of edits.", field="edits")
    if not (version := check.version(arguments.get("version"))):
        raise Invalid("`version` is missing. Read the file first.", field="version")
    for n, each in enumerate(edits):
        for word in (each.get("from", ""), each.get("to", ""), *each.get("lines", ())):
            if not check.is_unicode(word):
                raise Invalid("An edit holds half a surrogate pair, so it is no valid Unicode.", field=f"edits.{n}")
        try:
            by_line.one(n + 1, each)
        except by_line.Wrong as error:
            raise Invalid(f"In {error}.", field=f"edits.{n}") from error
    return {"path": check.path(arguments.get("path")), "version": version, "edits": edits}


def request(arguments: Mapping[str, Any], bases: Mapping[str, str | None]) -> "EditRequest":
    from sandboxes.engine import EditRequest

    path = arguments["path"]
    seen = {"base": bases.get(path), "becomes": bases.get(BECOMES)}
    return EditRequest(path=path, version=arguments["version"], edits=arguments["edits"], **seen)


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    return result(await box.edit(pass_, request(pass_.arguments, pass_.bases)), outputs)


result = write.result


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    return changed(result, "Edited")
