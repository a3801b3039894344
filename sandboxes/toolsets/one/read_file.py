"""Read a text file, plain."""

from collections.abc import Mapping
from typing import Any

from sandboxes.toolsets.two import read

ACT = read
DESCRIPTION = "Read a text file, up to 2,000 lines or 50 KB at once; go on with `offset`. Never asks."
PROPERTIES = {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file; relative to /work."},
    "offset": {"type": "integer", "minimum": 1, "maximum": 1 << 53, "description": "The first line, from 1."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 2000, "description": "Most lines; 2000 unless given."},
}
REQUIRED = ("path",)
EXAMPLE = {"path": "src/app.py"}


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    if "lines" not in result:
        return "This answer is not kept any more. Read the file again."
    lines = [line for _, _, line in result["lines"]]
    more = [f"[there is more: read on with offset {result['next']}]"] if result["truncated"] else []
    if not lines and (count := result["line_count"]):
        return f"There is no line {arguments.get('offset', 1)}: the file has {count}."
    return "\n".join([*lines, *more]) if lines else "The file is empty."
