"""What an agent is told of an action: the same words in every door's answer and on the reviewer's page."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .models import Action

_DENIER = {"reviewer": "A reviewer", "rule": "A rule of the workspace"}


def edited(difference: str, text: str) -> str:
    """Before what became of it, because it is not what its agent asked for that ran."""
    return f"A reviewer edited this before it was approved. The difference:\n{difference}\n{text}"


def waits(action: Action) -> str:
    """While it is open. A wait that is over is no refusal."""
    what = {
        "pending": "waits for a person to approve it; nothing has run yet",
        "approved": "was approved and is about to start",
    }.get(action.status, "still runs")
    return f"{action.pk} {what}. Do not propose it again: go on waiting for it."


def ended(action: Action) -> str:
    """Of one that did not do what was asked: whether it ran, why not, and what to do next. Every door says this."""
    match action.status:
        case "denied":
            who = _DENIER.get(action.decided_by, "Sandgate")
            return f"{who} denied this. It was not run. Reason: {action.end_reason}"
        case "expired":
            return f"This expired. {action.end_reason}"
        case "cancelled":
            return f"This was cancelled. It was not run. {action.end_reason}"
        case "unknown":
            return f"It began, and how it ended is not known. {action.end_reason} Look before you try it again."
        case "failed" | "superseded":
            error = action.error or {}
            return "\n".join([str(error.get("detail") or action.end_reason), *aids(error)])
        case _:
            return action.end_reason


def aids(error: Mapping[str, Any]) -> list[str]:
    """What helps to make the next call right: of a refused edit the lines as they are now, so that it can be made again
    at once; of a path that is not there, the nearest; of a directory, what is in it."""
    found = tagged(error.get("lines") or [])
    if version := error.get("version"):
        found.insert(0, f"The file is at version {version} now{':' if found else '.'}")
    if nearest := error.get("nearest"):
        found.append(f"Nearest: {', '.join(map(named, nearest))}")
    found += map(named, error.get("names") or [])
    if error.get("names") and error.get("truncated"):
        found.append("[Only the first names; there are more.]")
    return found


def named(name: str) -> str:
    """A file's name or path in a text. One that could pass for more than itself, by a newline, is quoted as in JSON."""
    return name if name.isprintable() and not name.startswith('"') else json.dumps(name)


def tagged(lines: Sequence[Sequence[Any]]) -> list[str]:
    """`12kqzt|text` of each (number, tag, text); a gap between numbers is shown."""
    shown, before = [], None
    for number, tag, text in lines:
        if before is not None and number != before + 1:
            shown.append("…")
        shown.append(f"{number}{tag or ''}|{text}")
        before = number
    return shown
