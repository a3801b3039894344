"""Whether a program that runs what files of the workspace say may start without a person: only while all in its sandbox
was written with a person's knowledge. Asked of what a rule or a grant allows; docs/decisions/021.

Must never allow: it lets a verdict stand, or asks.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q

from approvals.models import Action
from approvals.policy import Verdict

from . import judging, trusting

UNSEEN = "unseen_changes"
APPROVALS_READ = 200
"""How many approved runs are looked through for one with that flag; further back, nothing counts as approved."""


def check(call: judging.Call, verdict: Verdict, *, sandbox_id: str) -> Verdict:
    """Under the workspace's lock, in the transaction that starts the call: what is allowed here is running for whoever
    is judged next, so neither of two that come at once misses the other."""
    program = _program_in(call.arguments) if call.tool == "run" else ""
    why = _why_not(call, program, sandbox_id)
    if not why and not verdict.is_quiet:
        why = _under_way(sandbox_id)
    return judging.asks(why) if why else verdict


def flags(tool: str, arguments: Mapping[str, Any], *, sandbox_id: str) -> tuple[str, ...]:
    """Of a card that is about to be shown, under the workspace's lock: whether its approval makes known what was
    written unseen. A line that is too long to be judged here makes nothing known."""
    if tool != "run" or not _unseen(sandbox_id):
        return ()
    line = judging.read(arguments)
    return (UNSEEN,) if line and trusting.program_in(line) else ()


def _program_in(arguments: Mapping[str, Any]) -> str:
    """What is kept elsewhere for its length may hold one."""
    line = judging.read(arguments)
    return trusting.program_in(line) if line else "a long line"


def _why_not(call: judging.Call, program: str, sandbox_id: str) -> str:
    if not program:
        return ""
    if call.arguments.get("background"):
        return f"`{program}` runs what files of the workspace say, and these may change while it is in the background."
    if unseen := _unseen(sandbox_id):
        return f"`{program}` runs what files of the workspace say, and {unseen} wrote without anybody having seen it."
    return ""


def _unseen(sandbox_id: str) -> str:
    """The last action that may have changed a file, unseen by a person, since one approved a card that said so."""
    changed = Action.objects.filter(sandbox_id=sandbox_id, changes_unseen=True).order_by("-started_at")
    if not changed.exists():
        return ""
    if approved_at := _approved_at(sandbox_id):
        # From when it was proposed: what was written since is on no card that was approved.
        goes_on = Q(ended_at=None) | Q(ended_at__gt=approved_at)
        left = Q(result__background=True) | Q(result__left_running=True) | Q(tool="run", status="unknown")
        changed = changed.filter(goes_on | left)
    return next((action.pk for action in changed.iterator() if action.executed is not False), "")


def _approved_at(sandbox_id: str) -> datetime | None:
    ran = Action.objects.filter(sandbox_id=sandbox_id, tool="run", decided_by="reviewer", started_at__isnull=False)
    last = ran.order_by("-created_at").values_list("created_at", "flags")[:APPROVALS_READ]
    return next((created_at for created_at, said in last if UNSEEN in said), None)


def _under_way(sandbox_id: str) -> str:
    """A program that was let through for what lies there must not find something else in the middle of its work."""
    running = Action.objects.filter(sandbox_id=sandbox_id, status="running", tool="run")
    for action in running.filter(decided_by__in=("rule", "grant")).exclude(under=[]):
        if program := _program_in(action.arguments):
            return f"{action.pk} runs `{program}`, which runs what files of the workspace say; this may change one."
    return ""
