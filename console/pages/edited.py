"""What a card says of an edited call: who edited it, and what differs from what its agent proposed."""

import copy
from collections.abc import Mapping
from typing import Any

from approvals import differences
from approvals.models import Action
from sandboxes import call_edits

from . import diff
from .sheets import Sheet


def editable(action: Action) -> bool:
    """Whether Edit is offered; the form may still say that this text cannot be edited there."""
    if action.plan_id:
        return False
    return action.status == "pending" and call_edits.FIELDS.get(action.tool, "") in action.arguments


def sheets(action: Action) -> list[Sheet]:
    """On the card of an edited call: what differs from what its agent proposed."""
    first = action.edits.order_by("at").first() if action.edited else None
    if first is None:
        return []
    who = ", ".join(dict.fromkeys(str(each.by) for each in action.edits.select_related("by__user").order_by("at")))
    before = copy.copy(action)
    before.arguments = first.arguments_before
    return [difference(before, action.arguments, f"Edited by {who}: difference from what was proposed")]


def difference(before: Action, after: Mapping[str, Any], name: str = "Difference from what waits") -> Sheet:
    old, new = (_text(before, arguments) for arguments in (before.arguments, after))
    found = diff.rows(old, new)
    return Sheet(name, "End of difference", [diff.counts(found)], diff=diff.table(found, "edited"), anchor="edited")


def _text(action: Action, arguments: Mapping[str, Any]) -> str:
    text = differences.text_of(arguments[call_edits.FIELDS[action.tool]])
    return f"{arguments['path']}\n\n{text}" if action.tool == "write" else text
