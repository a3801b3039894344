"""Write a whole file, whatever is there."""

from collections.abc import Mapping
from typing import Any

from approvals.told import named
from sandboxes.toolsets import write

ACT = write
DESCRIPTION = """
Write a whole file. What is there is replaced; directories above it are made. It may first wait for a person to approve
it.
"""
PROPERTIES = {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file; relative to /work."},
    "content": {"type": "string", "description": "All of the file."},
}
REQUIRED = ("path", "content")
EXAMPLE = {"path": "src/hello.py", "content": "print('hello')\n"}


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    return {**given, "content": write.as_bytes(given["content"])}


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    return f"Wrote {named(result['path'])}, {result['size']} bytes."
