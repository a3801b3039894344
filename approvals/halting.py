"""What a halt does to actions: whatever waits or was approved is cancelled, and nothing of it starts any more.

Owns that, in the transaction that declares the halt. Running ones are ended by whoever ends their sandbox. Must never
touch an action of somebody whom the halt does not name.
"""

from django.db import transaction

from console.workspaces import audit, halts
from console.workspaces.models import Agent, Halt, Member, Workspace

from . import states
from .models import Action
from .rules import ending


@transaction.atomic
def halt(
    workspace: Workspace, agent: Agent | None, *, by: Member, reason: str = "", via: str = "page"
) -> tuple[Halt, bool]:
    """The halt in force, and whether this call declared it. Either way nothing of it waits when this returns."""
    found, is_new = halts.declare(workspace, agent, by=by, reason=reason, via=via)
    ending.of_halt(found)
    if cancelled := _cancel(found):
        found.cancelled += cancelled
        found.save(update_fields=["cancelled"])
    return found, is_new


def _cancel(halt: Halt) -> int:
    waiting = Action.objects.filter(workspace_id=halt.workspace_id, status__in=["pending", "approved"])
    waiting = waiting.filter(agent_id=halt.agent_id) if halt.agent_id else waiting
    return sum(cancel(action, halt) for action in waiting)


def cancel(action: Action, halt: Halt) -> bool:
    """Of one that has not started."""
    why = f"{halts.said(halt)} It was not run."
    return states.advance(
        action, old=action.status, new="cancelled", actor=audit.Actor("member", halt.halted_by_id),
        decided_by="system", end_reason=why, error={"code": "halted", "detail": why},
    )  # fmt: skip


def is_stopped(action: Action) -> bool:
    """Whether a halt is in force for `action`, which is approved: then it is cancelled here."""
    found = halts.current(action.workspace_id, action.agent_id)
    return found is not None and cancel(action, found)
