"""Finding audit rows of one workspace, newest first: what the page, the API and exports ask alike.

Owns what can be asked. Every question is answered within one workspace, which the caller's own row or key names.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from .models import AuditEntry, Workspace

BATCH = 500


@dataclass(frozen=True)
class Sought:
    """Empty ones ask nothing. `subjects`: ids as queries, any of which a row may be about or by."""

    actor: str = ""
    event: str = ""  # whole, or a beginning that ends in a dot: `action.`
    subject: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None
    subjects: tuple[Any, ...] | None = None
    said: dict[str, str] = field(default_factory=dict)  # what `subjects` was made of, for the export

    def told(self) -> dict[str, str]:
        """For the first line of an export, and for the row that says it was made."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("subjects", "said")}
        return {name: str(value) for name, value in own.items() if value} | self.said


def found(workspace_id: str, sought: Sought) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(workspace_id=workspace_id)
    if sought.actor:
        rows = rows.filter(Q(actor_id=sought.actor) | Q(actor=sought.actor))
    if sought.event:
        rows = (
            rows.filter(event__startswith=sought.event) if sought.event[-1] == "." else rows.filter(event=sought.event)
        )
    if sought.subject:
        rows = rows.filter(subject_id=sought.subject)
    if sought.since:
        rows = rows.filter(at__gte=sought.since)
    if sought.until:
        rows = rows.filter(at__lt=sought.until)
    if sought.subjects is not None:
        rows = rows.filter(_any_of(sought.subjects))
    return (_saying(rows, sought.text) if sought.text else rows).order_by("-seq")


def _any_of(subjects: tuple[Any, ...]) -> Q:
    wanted = Q()
    for ids in subjects:
        wanted |= Q(subject_id__in=ids) | Q(actor_id__in=ids)
    return wanted


def _saying(rows: QuerySet[AuditEntry], text: str) -> QuerySet[AuditEntry]:
    """In any column. SQLite keeps JSON in ASCII, so what is not is looked for as it is written there, too."""
    written = json.dumps(text)[1:-1]
    return rows.alias(said=Cast("data", TextField())).filter(
        Q(subject_id=text) | Q(actor_id=text) | Q(event__icontains=text) | Q(hash__startswith=text)
        | Q(said__icontains=text) | Q(said__icontains=written)
    )  # fmt: skip


def page(workspace_id: str, sought: Sought, *, limit: int, before: int | None) -> tuple[list[AuditEntry], int | None]:
    """The rows, and the number before which the next page begins; None on the last."""
    rows = found(workspace_id, sought)
    here = list((rows.filter(seq__lt=before) if before is not None else rows)[: limit + 1])
    return here[:limit], here[limit - 1].seq if len(here) > limit else None


def batch(workspace_id: str, sought: Sought, *, after: int, through: int) -> list[AuditEntry]:
    """The next rows in the order of the chain, for an export that holds no more than these."""
    rows = found(workspace_id, sought).filter(seq__gt=after, seq__lte=through).order_by("seq")
    return list(rows[:BATCH])


def events(workspace_id: str) -> Iterator[str]:
    """The kinds that there are, for a form to choose from. One look in the index for each."""
    rows = AuditEntry.objects.filter(workspace_id=workspace_id).order_by("event").values_list("event", flat=True)
    event = rows.first()
    while event is not None:
        yield event
        event = rows.filter(event__gt=event).first()


def last_seq(workspace_id: str) -> tuple[int, str]:
    seq, head = Workspace.objects.values_list("audit_seq", "audit_head").get(pk=workspace_id)
    return seq, head
