"""Keep a finished file."""

from collections.abc import Mapping
from typing import Any

from approvals.told import named
from sandboxes.toolsets import publish

ACT = publish
DESCRIPTION = """
Keep a copy of a finished file, up to 100 MB, for the people you work for: it outlives this sandbox. Publish results
(a report, an archive, a patch), not intermediate files. It changes nothing in the sandbox and never asks.
"""
PROPERTIES = {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file; relative to /work."},
    "title": {"type": "string", "maxLength": 200, "description": "One line that says what it is."},
}
REQUIRED = ("path",)
EXAMPLE = {"path": "report.xlsx", "title": "Sales by month"}


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    kept = f"Kept {named(result['path'])}, {result['size']} bytes"
    return f"{kept}, as artifact {result['artifact_id']}. It outlives this sandbox."
