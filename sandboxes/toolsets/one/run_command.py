"""Run a command line."""

from collections.abc import Mapping
from typing import Any

from sandboxes.toolsets import printed, run

ACT = run
DESCRIPTION = """
Run a shell command in your sandbox, in /work, and wait for its end. It may first wait for a person to approve it. The
answer has the exit code and what was printed.
"""
PROPERTIES = {
    "command": {"type": "string", "minLength": 1, "description": "A line for bash, e.g. `ls -l`."},
    "timeout_s": {
        "type": "number",
        "minimum": 0.1,
        "maximum": 600,
        "description": "Seconds until it is stopped; 120 unless given.",
    },
    "cwd": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "Where it runs; /work unless given."},
}
REQUIRED = ("command",)
EXAMPLE = {"command": "ls -l"}


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    return printed.text(result, can_follow=False)
