"""Grants that end together, because of a halt or because who gave them has left. Must never lengthen one."""

from django.db.models import QuerySet
from django.utils import timezone

from console.workspaces import audit
from console.workspaces.models import Halt, Member

from .models import Grant


def of_halt(halt: Halt) -> int:
    found = Grant.objects.filter(workspace_id=halt.workspace_id)
    return _end(found.filter(agent_id=halt.agent_id) if halt.agent_id else found, by_id=halt.halted_by_id)


def given_by(member: Member, *, by: Member) -> int:
    return _end(Grant.objects.filter(given_by=member), by_id=by.pk)


def _end(grants: QuerySet[Grant], *, by_id: str) -> int:
    """In the caller's transaction, with a row of the chain for each."""
    now, ended = timezone.now(), 0
    for grant in grants.filter(ended_at=None, expires_at__gt=now):
        ended += Grant.objects.filter(pk=grant.pk, ended_at=None).update(ended_at=now)
        audit.append(
            workspace_id=grant.workspace_id, actor=audit.Actor("member", by_id), event="grant.ended",
            subject_id=grant.pk, agent=grant.agent_id, conversation=grant.conversation, uses=grant.use_count,
        )  # fmt: skip
    return ended
