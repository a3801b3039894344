"""Write a whole file: a new one, or over the version that was read."""

from collections.abc import Mapping
from typing import Any

from approvals.told import named
from sandboxes.toolsets import write

from ._lines import changed

ACT = write
DESCRIPTION = """
Write a whole file: a new one, or instead of one that is there. To replace a file, give the `version` that `read` showed
for it; without a version nothing may be there, and with one that is no longer current nothing is written. Directories
above it are made. It may first wait for a person to approve it. To change a part of a file use `edit`.
"""
PROPERTIES = {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file; relative to /work."},
    "content": {"type": "string", "description": "All of it, as it is to be, ends of lines included."},
    "version": {
        "type": "string",
        "pattern": "^[0-9a-f]{12}$",
        "description": "Of the file that this replaces, as `read` shows it. Left out: the file must not exist.",
    },
    "mode": {
        "type": "string",
        "pattern": "^0?[0-7]{3}$",
        "description": 'Its permissions, such as "755"; as they were, or 644, unless given.',
    },
}
REQUIRED = ("path", "content")
EXAMPLE = {"path": "src/hello.py", "content": "print('hello')\n"}


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    mode = {"mode": int(given["mode"], 8)} if "mode" in given else {}
    return {**given, **mode, "content": write.as_bytes(given["content"]), "version": given.get("version", "")}


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    if "version" not in result:  # by another door, which names no version
        return f"Wrote {named(result['path'])}, {result['size']} bytes, version {result['sha256'][:12]}."
    return changed(result, "Wrote")
