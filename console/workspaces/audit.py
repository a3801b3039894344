"""The audit chain: one per workspace, from its first row. Append only; nothing here changes or deletes a row."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from . import ledger, origin, rows
from .chain import START, Head, Walk, link_hash
from .models import AuditEntry, Workspace

__all__ = ["CLOCK", "START", "SYSTEM", "Actor", "append", "broken_links", "heads", "link", "link_hash"]


@dataclass(frozen=True)
class Actor:
    """Who did it. `kind`: member, agent, key, rule, clock, system."""

    kind: str
    id: str = ""


SYSTEM = Actor("system")
CLOCK = Actor("clock")


def append(*, workspace_id: str, actor: Actor, event: str, subject_id: str = "", **data: Any) -> AuditEntry:
    """Must run inside the transaction of what it records: both are there, or neither."""
    with ledger.opened(workspace_id) as opened:
        return link(opened, actor=actor, event=event, subject_id=subject_id, **data)


def link(opened: ledger.Ledger, *, actor: Actor, event: str, subject_id: str = "", **data: Any) -> AuditEntry:
    """As `append`, for who has the ledger open."""
    if came_from := origin.of(actor.id):
        data["origin"] = came_from
    entry = AuditEntry(
        workspace_id=opened.workspace_id,
        seq=opened.audit_seq + 1,
        at=timezone.now(),
        actor=actor.kind,
        actor_id=actor.id,
        event=event,
        subject_id=subject_id,
        data=data,
        prev_hash=opened.audit_head,
    )
    entry.hash = link_hash(entry)
    rows.insert(entry)
    opened.audit_seq, opened.audit_head = entry.seq, entry.hash
    return entry


def broken_links(workspace: Workspace, heads: Iterable[Head] = ()) -> Iterator[str]:
    """A sentence for each place where the chain does not hold, or is not the one that had `heads`; nothing when it
    does. Rows may come meanwhile: the workspace is asked before and after."""
    workspace.refresh_from_db(fields=["audit_seq", "audit_head"])
    walk = Walk(heads, stands_at=Head(workspace.pk, workspace.audit_seq, workspace.audit_head))
    try:
        for entry in AuditEntry.objects.filter(workspace=workspace).order_by("seq").iterator():
            yield from walk.step(entry)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # columns that are no time, or no JSON
        yield f"A row after row {walk.seq} cannot be read ({error})."
    yield from walk.end()
    workspace.refresh_from_db(fields=["audit_seq", "audit_head"])
    if walk.seq > workspace.audit_seq:
        yield f"The chain ends at row {walk.seq}; the workspace says {workspace.audit_seq}."


def heads() -> list[Head]:
    """Of every chain, now: to be noted where nobody who can write this database can write."""
    at = timezone.now().isoformat(timespec="seconds")
    found = Workspace.objects.filter(audit_seq__gt=0).order_by("pk").values_list("pk", "audit_seq", "audit_head")
    return [Head(workspace_id, seq, head, at) for workspace_id, seq, head in found]
