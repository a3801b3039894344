"""The audit log, newest first, with the hashes that chain it; and the same rows as a file."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router
from pydantic import AwareDatetime

from console import audited
from console.workspaces import audit_search, db, permissions

from . import schemas
from .door import caller, door
from .downloads import disposition

router = Router(tags=["Audit"])
Before = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$", description="`next_cursor` of the page before.")]
Id = Annotated[str, Query(max_length=40)]
ActorId = Annotated[str, Query(max_length=40, description="An id, or a kind: member, agent, key, rule, clock, system.")]
Event = Annotated[str, Query(max_length=60, description="Such as `action.denied`; `action.` for all that begin so.")]
Conversation = Annotated[str, Query(max_length=200, description="Of any agent, or of `agent`.")]
Text = Annotated[str, Query(max_length=200, description="Somewhere in the row.")]
FILES: dict[str, Any] = {media.partition(";")[0]: {"schema": {"type": "string"}} for media in audited.TYPES.values()}


@door(router, "GET", "/audit", may=(permissions.AUDIT_READ,), keys="workspace", answers={200: schemas.AuditRows})
async def list_audit(
    request: HttpRequest,
    subject: Id = "",
    actor: ActorId = "",
    event: Event = "",
    agent: Id = "",
    conversation: Conversation = "",
    text: Text = "",
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
    limit: schemas.Limit = 50,
    cursor: Before = None,
) -> schemas.AuditRows:
    """List what happened. Newest first; all that is asked for must be so. `subject`: rows about this action, sandbox,
    key, agent or member. `agent` and `conversation`: about or by anything of theirs. `since` is in it,
    `until` is not."""
    workspace_id = caller(request).workspace_id
    wanted = audited.sought(
        workspace_id, agent=agent, conversation=conversation, actor=actor, event=event, subject=subject, text=text,
        since=since, until=until,
    )  # fmt: skip
    before = int(cursor) if cursor else None
    rows, more = await db.read(audit_search.page, workspace_id, wanted, limit=limit, before=before)
    return schemas.AuditRows(items=[schemas.AuditRow.of(row) for row in rows], next_cursor=str(more) if more else None)


@door(
    router, "GET", "/audit/export", may=(permissions.AUDIT_READ,), keys="workspace", answers={200: None}, streams=FILES
)
async def export_audit(
    request: HttpRequest,
    format: Literal["jsonl", "csv"] = "jsonl",
    subject: Id = "",
    actor: ActorId = "",
    event: Event = "",
    agent: Id = "",
    conversation: Conversation = "",
    text: Text = "",
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
) -> StreamingHttpResponse:
    """Get the rows as a file. In the order of the chain, as JSON lines that can be checked without this server, or as
    CSV whose cells are drawn and never formulas. Filters are those of the list. That it was made is a row itself."""
    who = caller(request)
    wanted = audited.sought(
        who.workspace_id, agent=agent, conversation=conversation, actor=actor, event=event, subject=subject, text=text,
        since=since, until=until,
    )  # fmt: skip
    content = await audited.export(who.workspace_id, wanted, form=format, actor=who.actor)
    headers = {"Content-Disposition": disposition(f"audit.{format}")}
    return StreamingHttpResponse(content, content_type=audited.TYPES[format], headers=headers)
