"""Escalation: what nobody has decided by a time that its workspace sets is told to a second group.

Once for each card and all that it stands for, by the clock, from what is in the table. Must never decide, nor change
what approving takes or who may: being told is all that is given.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from console.workspaces import audit, changes, ledger, reviewers
from console.workspaces.models import Workspace

from . import twins
from .models import Action

AT_ONCE = 100


def due() -> list[str]:
    """Actions to escalate now, a round of them: each is a transaction of its own, and others write between them."""
    found: list[str] = []
    for workspace in Workspace.objects.filter(escalate_after_min__gt=0):
        since = timezone.now() - timedelta(minutes=workspace.escalate_after_min / settings.TIMER_DIVISOR)
        waiting = Action.objects.pending().cards().filter(workspace=workspace, escalated_at=None)
        found += waiting.filter(created_at__lte=since).order_by("pk").values_list("pk", flat=True)[:AT_ONCE]
    return found


@transaction.atomic
def escalate(action_id: str) -> bool:
    """Identical ones with it: each may stand for them later. False when it was decided, ended or escalated meanwhile,
    or its workspace turned this off."""
    action = Action.objects.select_related("workspace").get(pk=action_id)
    workspace = action.workspace
    ledger.hold(workspace.pk)
    workspace.refresh_from_db(fields=["escalate_after_min", "escalate_to"])
    group = list(reviewers.in_workspace(workspace.pk).filter(pk__in=workspace.escalate_to).values_list("pk", flat=True))
    now = {"escalated_at": timezone.now(), "escalated_to": group}
    waits = Action.objects.pending().filter(pk=action_id, escalated_at=None, expires_at__gt=Now())
    if not workspace.escalate_after_min or not waits.update(**now):
        return False
    others = list(twins.of(action).values_list("pk", flat=True))
    Action.objects.filter(pk__in=others).update(**now)
    with ledger.opened(workspace.pk) as opened:
        for pk in (action_id, *others):
            changes.record(opened, subject="action", subject_id=pk, agent_id=action.agent_id or "", status="pending")
        audit.link(
            opened, actor=audit.CLOCK, event="action.escalated", subject_id=action_id, digest=action.digest,
            tool=action.tool, after_min=workspace.escalate_after_min, to=group,
        )  # fmt: skip
    return True
