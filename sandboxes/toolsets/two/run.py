"""Run a command."""

from collections.abc import Mapping
from typing import Any

from sandboxes.toolsets import printed, run

ACT = run
DESCRIPTION = """
Run a command in your sandbox, as a user without special rights, in /work, without a terminal. Give either `command`, a
line for bash, or `argv`, a program and its words without a shell. It may first wait for a person to approve it. The
answer comes when the command has ended, with its exit code and what it printed; an exit code other than 0 is an answer,
not an error of this tool. For what goes on for long, such as a server, set `background`: you get its id at once, and
use `follow` and `stop` with it. Do not use it to read, search or change files: `read`, `grep`, `glob`, `edit` and
`write` do that without asking, or with a better view for who approves.
"""
PROPERTIES = {
    "command": {"type": "string", "minLength": 1, "description": "A line for bash, e.g. `pytest -q tests`."},
    "argv": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "maxItems": 1000,
        "description": "A program and its words, without a shell. Instead of `command`.",
    },
    "timeout_s": {
        "type": "number",
        "minimum": 0.1,
        "maximum": 600,
        "description": "Seconds until it is stopped; 120 unless given. In the background none unless given.",
    },
    "cwd": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "Where it runs; /work unless given."},
    "env": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Variables for this command. Such as steer which code runs (PATH, LD_…, PYTHON…) are refused.",
    },
    "background": {"type": "boolean", "description": "Answer as soon as it runs, with its id."},
}
REQUIRED = ()
EXAMPLE = {"command": "pytest -q tests", "timeout_s": 300}


def text(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    return printed.text(result)
