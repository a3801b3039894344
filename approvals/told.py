"""What an agent is told of an action: the same words in every door's answer and on the reviewer's page."""

from collections.abc import Sequence
from typing import Any

from .models import Action


def denied(action: Action) -> str:
    return f"This was denied and not run. Reason: {action.end_reason}"


def waits(action: Action) -> str:
    """While it is open. A wait that is over is no refusal."""
    what = {
        "pending": "waits for a person to approve it; nothing has run yet",
        "approved": "was approved and is about to start",
    }.get(action.status, "still runs")
    return f"{action.pk} {what}. Do not propose it again: go on waiting for it."


def ended(action: Action) -> str:
    """Of one that did not do what was asked: whether it ran, why not, and what to do next."""
    match action.status:
        case "denied":
            return f"A reviewer denied this. It was not run. Reason: {action.end_reason}"
        case "unknown":
            return f"It began, and how it ended is not known. {action.end_reason} Look before you try it again."
        case "failed" | "superseded":
            return _with_lines(action.error or {}, action.end_reason)
        case _:
            return action.end_reason


def _with_lines(error: dict[str, Any], otherwise: str) -> str:
    """A refused edit brings the lines as they are now, so that it can be made again at once."""
    return "\n".join([str(error.get("detail") or otherwise), *tagged(error.get("lines") or [])])


def tagged(lines: Sequence[Sequence[Any]]) -> list[str]:
    """`12kqzt|text` of each (number, tag, text); a gap between numbers is shown."""
    shown, before = [], None
    for number, tag, text in lines:
        if before is not None and number != before + 1:
            shown.append("…")
        shown.append(f"{number}{tag or ''}|{text}")
        before = number
    return shown
