"""Numbered changes: written in the transaction of what they tell of, announced after its commit."""

from collections.abc import Iterable
from functools import partial

from django.db import transaction

from . import bus, rows
from .ledger import Ledger
from .models import Change


def record(opened: Ledger, *, subject: str, subject_id: str, status: str, agent_id: str = "") -> Change:
    """`opened` comes from `ledger.opened`, which also writes its number back."""
    opened.change_seq += 1
    change = Change(
        workspace_id=opened.workspace_id,
        seq=opened.change_seq,
        subject=subject,
        subject_id=subject_id,
        agent_id=agent_id,
        status=status,
    )
    rows.insert(change)
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
    news: Iterable[Change] = list(Change.objects.filter(pk__gt=last).order_by("pk")[:10_000])
    found: set[str] = set()
    for row in news:
        last, found = row.pk, found | topics(row)
    return last, found
