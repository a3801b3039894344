"""Numbered changes: written in the transaction of what they tell of, announced after its commit."""

from collections.abc import Iterable
from functools import partial

from django.db import transaction
from django.db.models import F

from . import bus
from .models import Change, Workspace


def record(*, workspace_id: str, subject: str, subject_id: str, status: str, agent_id: str = "") -> Change:
    """Must run inside the transaction of the change itself: the lock on the workspace keeps numbers without gaps."""
    Workspace.objects.filter(pk=workspace_id).update(change_seq=F("change_seq") + 1)
    seq = Workspace.objects.values_list("change_seq", flat=True).get(pk=workspace_id)
    change = Change.objects.create(
        workspace_id=workspace_id, seq=seq, subject=subject, subject_id=subject_id, agent_id=agent_id, status=status
    )
    # robust: a failing bell must not look like a failed commit
    transaction.on_commit(partial(bus.announce, *topics(change)), robust=True)
    return change


def topics(change: Change) -> set[str]:
    found = {f"{change.subject}:{change.subject_id}", f"workspace:{change.workspace_id}", change.status}
    return found | ({f"agent:{change.agent_id}"} if change.agent_id else set())


def after(workspace_id: str, seq: int, *, limit: int = 200) -> list[Change]:
    return list(Change.objects.filter(workspace_id=workspace_id, seq__gt=seq).order_by("seq")[:limit])


def newer(last: int) -> tuple[int, set[str]]:
    """The last change's row number and the topics of what came after `last` (-1: from now on). For `bus.follow`."""
    if last < 0:
        return Change.objects.order_by("-pk").values_list("pk", flat=True).first() or 0, set()
    rows: Iterable[Change] = list(Change.objects.filter(pk__gt=last).order_by("pk")[:10_000])
    found: set[str] = set()
    for row in rows:
        last, found = row.pk, found | topics(row)
    return last, found
