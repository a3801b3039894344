"""How a change of a file reads to a model. Pure."""

from collections.abc import Mapping
from typing import Any

from approvals.told import named, tagged

MOVES_SHOWN = 20


def changed(result: Mapping[str, Any], did: str) -> str:
    """Of `edit` and `write`: the new version, and the lines as they are to be named now."""
    if not result.get("changed", True):
        return f"{named(result['path'])} is as you want it already; it was not touched. Version {result['version']}."
    parts = [f"{did} {named(result['path'])}: version {result['version']}, {result['size']} bytes."]
    if result.get("carried"):
        parts.append("It had changed elsewhere since you read it; that is kept, and line numbers may be others.")
    parts += _moved(result.get("moved") or [])
    if lines := result.get("lines"):
        parts += ["Around the change it is now:", *tagged(lines)]
    return "\n".join(parts)


def _moved(moved: list[list[int]]) -> list[str]:
    """Without it, a second edit from the same read would need another read."""
    if not moved:
        return []
    steps = ", ".join(f"from old line {start} on {by:+d}" for start, by in moved[:MOVES_SHOWN])
    return [f"Lines moved: {steps}."]
