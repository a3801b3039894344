"""The audit chain: one per workspace, from its first row. Append only; nothing here changes or deletes a row."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import rfc8785
from django.utils import timezone

from . import ledger, rows
from .models import AuditEntry, Workspace

START = "0" * 64


@dataclass(frozen=True)
class Actor:
    """Who did it. `kind`: member, agent, key, rule, clock, system."""

    kind: str
    id: str = ""


SYSTEM = Actor("system")
CLOCK = Actor("clock")


def append(*, workspace_id: str, actor: Actor, event: str, subject_id: str = "", **data: Any) -> AuditEntry:
    """Must run inside the transaction of what it records: both are there, or neither."""
    with ledger.opened(workspace_id) as workspace:
        return link(workspace, actor=actor, event=event, subject_id=subject_id, **data)


def link(workspace: Workspace, *, actor: Actor, event: str, subject_id: str = "", **data: Any) -> AuditEntry:
    """As `append`, for who has the ledger open."""
    entry = AuditEntry(
        workspace=workspace,
        seq=workspace.audit_seq + 1,
        at=timezone.now(),
        actor=actor.kind,
        actor_id=actor.id,
        event=event,
        subject_id=subject_id,
        data=data,
        prev_hash=workspace.audit_head,
    )
    entry.hash = link_hash(entry)
    rows.insert(entry)
    workspace.audit_seq, workspace.audit_head = entry.seq, entry.hash
    return entry


def link_hash(entry: AuditEntry) -> str:
    """SHA-256 of RFC 8785 JSON over every stored field, the hash before included."""
    at: datetime = entry.at
    return hashlib.sha256(
        rfc8785.dumps(
            {
                "workspace": entry.workspace_id,
                "seq": entry.seq,
                "at": at.isoformat(timespec="microseconds"),
                "actor": entry.actor,
                "actor_id": entry.actor_id,
                "event": entry.event,
                "subject_id": entry.subject_id,
                "data": entry.data,
                "prev_hash": entry.prev_hash,
            }
        )
    ).hexdigest()


def broken_links(workspace: Workspace) -> Iterator[str]:
    """A sentence for each place where the chain does not hold; nothing when it does."""
    seq, head = 0, START
    for entry in AuditEntry.objects.filter(workspace=workspace).order_by("seq").iterator():
        if entry.seq != seq + 1:
            yield f"Rows {seq + 1} to {entry.seq - 1} are missing."
        if entry.prev_hash != head:
            yield f"Row {entry.seq} does not follow row {seq}."
        if link_hash(entry) != entry.hash:
            yield f"Row {entry.seq} is not what was written."
        seq, head = entry.seq, entry.hash
    if (seq, head) != (workspace.audit_seq, workspace.audit_head):
        yield f"The chain ends at row {seq}; the workspace says {workspace.audit_seq}."
