"""Audit rows for doors: questions that need to know what an agent or a conversation is, and exports as streams.

Owns the two forms of an export, CSV for people's tables and JSON lines for proof, and that making one is on record
before its first byte. Must never hold more than a batch of rows.
"""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from django.db import transaction

from approvals.draw import one_line
from approvals.models import Action
from console.workspaces import audit, audit_export, audit_search, db
from console.workspaces.audit_search import Sought
from console.workspaces.chain import Head
from console.workspaces.models import AuditEntry
from sandboxes.models import Artifact, Command, Sandbox

COLUMNS = (
    "seq", "at", "actor", "actor_id", "event", "subject_id", "address", "signed_in_by", "data", "prev_hash", "hash",
)  # fmt: skip
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "'")
TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}


def subjects(workspace_id: str, *, agent: str = "", conversation: str = "") -> tuple[Any, ...]:
    """Queries for the ids of all that belongs to an agent, to a conversation, or to both."""
    own = {"workspace_id": workspace_id} | ({"agent_id": agent} if agent else {})
    own |= {"conversation": conversation} if conversation else {}
    boxes = Sandbox.objects.filter(**own).values("pk")
    found = [Action.objects.filter(**own).values("pk"), boxes]
    found += [
        Command.objects.filter(sandbox__in=boxes).values("pk"),
        Artifact.objects.filter(sandbox__in=boxes).values("pk"),
    ]
    return (*found, [agent]) if agent and not conversation else tuple(found)


def sought(workspace_id: str, *, agent: str = "", conversation: str = "", **asked: Any) -> Sought:
    said = {name: value for name, value in (("agent", agent), ("conversation", conversation)) if value}
    if not said:
        return Sought(**asked)
    return Sought(**asked, subjects=subjects(workspace_id, **said), said=said)


def begin(workspace_id: str, wanted: Sought, *, form: str, actor: audit.Actor) -> Head:
    """On record, with what was asked; the head that the export goes up to, this row included."""
    with transaction.atomic():
        row = audit.append(
            workspace_id=workspace_id, actor=actor, event="audit.exported", form=form, filters=wanted.told()
        )
    return Head(workspace_id, row.seq, row.hash)


async def export(workspace_id: str, wanted: Sought, *, form: str, actor: audit.Actor) -> AsyncIterator[bytes]:
    head = await db.write(begin, workspace_id, wanted, form=form, actor=actor)
    return (_csv if form == "csv" else lines)(workspace_id, wanted, head)


async def batches(workspace_id: str, wanted: Sought, *, after: int, head: Head) -> AsyncIterator[list[AuditEntry]]:
    while found := await db.read(audit_search.batch, workspace_id, wanted, after=after, through=head.seq):
        yield found
        after = found[-1].seq


async def lines(workspace_id: str, wanted: Sought, head: Head, *, after: int = 0) -> AsyncIterator[bytes]:
    """As docs/audit.md says it."""
    filters, rows = wanted.told(), 0
    yield audit_export.first_line(workspace_id, head=head, filters=filters, complete=not filters).encode()
    async for found in batches(workspace_id, wanted, after=after, head=head):
        rows += len(found)
        yield "".join(map(audit_export.row_line, found)).encode()
    yield audit_export.last_line(rows).encode()


async def _csv(workspace_id: str, wanted: Sought, head: Head) -> AsyncIterator[bytes]:
    yield _rows([COLUMNS])
    async for found in batches(workspace_id, wanted, after=0, head=head):
        yield _rows(map(_cells, found))


def _rows(rows: Iterable[Iterable[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([cell(value) for value in row] for row in rows)
    return out.getvalue().encode()


def _cells(entry: AuditEntry) -> list[Any]:
    came = entry.data.get("origin") if isinstance(entry.data, dict) else None
    came = came if isinstance(came, dict) else {}
    return [
        entry.seq, entry.at.isoformat(timespec="microseconds"), entry.actor, entry.actor_id, entry.event,
        entry.subject_id, came.get("address", ""), came.get("by", ""), json.dumps(entry.data, ensure_ascii=False),
        entry.prev_hash, entry.hash,
    ]  # fmt: skip


def cell(value: Any) -> str:
    """Drawn, and never a formula: what could be one begins with `'`, as does what begins with that by itself. So taking
    one `'` off and `draw.undrawn` give the exact text."""
    drawn = one_line(str(value))
    return f"'{drawn}" if drawn.startswith(FORMULAS) else drawn
