"""The audit log, newest first, with the hashes that chain it."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router

from console.workspaces import db, permissions
from console.workspaces.keys import Caller
from console.workspaces.models import AuditEntry

from . import schemas
from .door import caller, door

router = Router(tags=["Audit"])
Before = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$", description="`next_cursor` of the page before.")]


@door(router, "GET", "/audit", may=(permissions.AUDIT_READ,), keys="workspace", answers={200: schemas.AuditRows})
async def list_audit(
    request: HttpRequest, subject: str | None = None, limit: schemas.Limit = 50, cursor: Before = None
) -> schemas.AuditRows:
    """List what happened. Newest first; with `subject`, to this action, sandbox, key, agent or member."""
    found = await db.read(_list, caller(request), subject, limit, cursor)
    more = str(found[limit - 1].seq) if len(found) > limit else None
    return schemas.AuditRows(items=[schemas.AuditRow.of(row) for row in found[:limit]], next_cursor=more)


def _list(who: Caller, subject: str | None, limit: int, cursor: str | None) -> list[AuditEntry]:
    rows = AuditEntry.objects.filter(workspace_id=who.workspace_id).order_by("-seq")
    rows = rows.filter(subject_id=subject) if subject else rows
    return list((rows.filter(seq__lt=int(cursor)) if cursor else rows)[: limit + 1])
