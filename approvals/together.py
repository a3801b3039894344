"""Several decisions with one press: each is its own compare-and-swap, and each has its own end.

Approving takes only what this session has read to its end; denying takes any. Must never decide what was not named, nor
let one that fails stop the others.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from console.workspaces.errors import SandgateError
from console.workspaces.models import Member

from . import decisions, showing
from .errors import NotSeen
from .models import Action, View
from .plans import deciding

COUNTED = "Your approval counts. It needs another reviewer."
OF_A_PLAN = "It is a plan: open it, and approve those of its items that shall run. Nothing was decided."
NOT_READ = "Not read yet: open it and read it to its end, then it can be approved. Nothing was decided."


@dataclass(frozen=True)
class Became:
    """What the press made of one action; `said` is empty when that is what was wanted."""

    action: Action
    said: str = ""


def decide_each(
    actions: Iterable[Action],
    verdict: str,
    *,
    by: Member,
    session: str,
    reason: str = "",
) -> list[Became]:
    """In the order given. Not one transaction: what was decided stays decided."""
    return [_one(action, verdict, by=by, session=session, reason=reason) for action in actions]


def _one(action: Action, verdict: str, *, by: Member, session: str, reason: str) -> Became:
    if action.plan_id and verdict == "approve":
        return Became(action, OF_A_PLAN)
    try:
        if verdict == "deny":
            return Became(deny(action, by=by, reason=reason))
        view = _read(action, by=by, session=session)
        decided = decisions.decide(action, verdict, by=by, digest=action.digest, reason=reason, via="page", view=view)
    except NotSeen:
        return Became(action, NOT_READ)
    except SandgateError as error:
        action.refresh_from_db()
        return Became(action, error.detail)
    return Became(decided, COUNTED if decided.status == "pending" else "")


def deny(action: Action, *, by: Member, reason: str) -> Action:
    """With all of its plan, when it is an item of one."""
    if action.plan is None:
        return decisions.decide(action, "deny", by=by, digest=action.digest, reason=reason, via="page")
    action.refresh_from_db()
    if action.status != "denied":  # with an item of the same plan, a moment ago
        deciding.decide(action.plan, "deny", by=by, digest=deciding.digest_of(action.plan), reason=reason, via="page")
        action.refresh_from_db()
    return action


def _read(action: Action, *, by: Member, session: str) -> View:
    view = showing.of(action, by=by, session=session)
    if view is None or view.read_at is None:
        raise NotSeen(action.pk)
    return view


def of_conversation(action: Action) -> list[Action]:
    """What waits of the same agent and conversation, the first first."""
    same = Action.objects.pending().filter(
        workspace_id=action.workspace_id, agent_id=action.agent_id, conversation=action.conversation
    )
    return list(same.select_related("agent__owner__user", "workspace").order_by("created_at"))
