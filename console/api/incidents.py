"""All that is on record of one conversation, as an archive."""

from typing import Annotated

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router

from console import incident
from console.workspaces import permissions

from .door import caller, door
from .downloads import disposition

router = Router(tags=["Audit"])
ZIP = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}


@door(
    router, "GET", "/incident", may=(permissions.AUDIT_READ,), keys="workspace", answers={200: None}, streams=ZIP,
    fails=("not_found",),
)  # fmt: skip
async def export_incident(
    request: HttpRequest,
    agent: Annotated[str, Query(max_length=40)],
    conversation: Annotated[str, Query(min_length=1, max_length=200)],
) -> StreamingHttpResponse:
    """Export all of a conversation. A zip of the exact bytes of what was proposed and ran, digests, decisions, outputs,
    file versions, its audit rows and the part of the chain that proves them, with a README and a manifest of SHA-256s.
    Needs `sandboxes:read` too. That it was made is an audit row."""
    who = caller(request)
    who.need(permissions.SANDBOXES_READ)
    content = await incident.export(who.workspace_id, agent=agent, conversation=conversation, actor=who.actor)
    headers = {"Content-Disposition": disposition(f"incident-{agent}.zip")}
    return StreamingHttpResponse(content, content_type="application/zip", headers=headers)
