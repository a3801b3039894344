"""What a proposal has to do with a denial before it: the denied text and what differs from it, beside the text to read.

Never raises, and never makes a card undrawable: what is shown here runs nothing.
"""

import json
import logging
from collections.abc import Mapping

from approvals import draw
from approvals.models import Action
from sandboxes.toolsets.two import edit

from . import diff
from .sheets import Sheet, sheet
from .texts import kept_text, text_of

ANCHOR = "denied"
_log = logging.getLogger(__name__)


def sheets(action: Action) -> list[Sheet]:
    """One sheet, or none: of the same tool the difference, of another one the denied text."""
    try:
        before = _denied(action)
        return [_against(before, action)] if before else []
    except Exception:
        _log.exception("Comparing action %s with the denied one failed", action.pk)
        return [Sheet("Denied before", "End of it", ["it could not be compared; open it from the queue's history"])]


def _denied(action: Action) -> Action | None:
    own = Action.objects.filter(workspace_id=action.workspace_id, agent_id=action.agent_id)
    return own.filter(pk=action.denied_before).first() if action.denied_before else None


def _against(before: Action, action: Action) -> Sheet:
    decision = before.decisions.filter(verdict="deny").select_related("by__user").first()
    who = draw.one_line(str(decision.by)) if decision else "a reviewer"
    about = [f"denied by {who}", f"“{draw.one_line(before.end_reason)}”"]
    was = _text(before)
    if before.tool != action.tool:
        return sheet(f"Denied before: {draw.one_line(before.tool)}", "End of what was denied", about, was)
    now = _text(action)
    if was == now:
        return sheet("Denied before, the same", "End of what was denied", about, was)
    rows = diff.rows(was, now)
    name = "Difference from what was denied"
    return Sheet(
        name, "End of difference", [*about, diff.counts(rows)], diff=diff.table(rows, ANCHOR), anchor=ANCHOR,
        survey=draw.survey(now),
    )  # fmt: skip


def _text(action: Action) -> str:
    """What a person would compare: the line, the file, the file that an edit makes; else all arguments."""
    arguments = action.arguments
    if edit.BECOMES in action.bases:
        made = kept_text(action.bases[edit.BECOMES]) or ""
        return _headed(arguments, made)
    if action.tool == "write":
        return _headed(arguments, text_of(arguments["content"]))
    if "command" in arguments:
        return text_of(arguments["command"]) + _script(action)
    return json.dumps(arguments, indent=2, ensure_ascii=False, sort_keys=True) + "\n" + _script(action)


def _script(action: Action) -> str:
    """What the command ran, below it."""
    if action.script is None:
        return ""
    path = json.dumps(action.script["path"], ensure_ascii=False)
    return f"\n\n{path}\n{kept_text(action.script['sha256']) or ''}"


def _headed(arguments: Mapping[str, object], text: str) -> str:
    """The path as its first line, so that another one is a difference."""
    return f"{json.dumps(str(arguments['path']), ensure_ascii=False)}\n{text}"
