"""The button that exports all of a conversation, for who may read both the audit log and sandboxes."""

from typing import Any

from asgiref.sync import async_to_sync
from django.http import Http404, StreamingHttpResponse
from django.http.response import HttpResponseBase

from console import incident
from console.workspaces import audit, permissions
from console.workspaces.errors import NotFound

from . import downloads
from .shell import member_page, refused


@member_page("audit", permissions.AUDIT_READ, methods=("GET",))
def export(request: Any) -> HttpResponseBase:
    member, agent = request.here.member, request.GET.get("agent", "")
    if not request.here.may_read_sandboxes:
        return refused(request, permissions.SANDBOXES_READ)
    try:
        content = async_to_sync(incident.export)(
            member.workspace_id, agent=agent, conversation=request.GET.get("conversation", ""),
            actor=audit.Actor("member", member.pk),
        )  # fmt: skip
    except NotFound as error:
        raise Http404 from error
    headers = {**downloads.HEADERS, "Content-Disposition": f'attachment; filename="incident-{agent}.zip"'}
    return StreamingHttpResponse(content, content_type="application/zip", headers=headers)
