"""Downloads by people at pages: bytes as they are, never a page of this origin, and on record before the first goes."""

from typing import Any

from django.db import transaction
from django.http import HttpResponse

from console.workspaces import audit

HEADERS = {"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff"}


def record(request: Any, event: str, subject_id: str, **data: Any) -> None:
    """Not of a HEAD, which brings nobody a byte."""
    if request.method == "HEAD":
        return
    member = request.here.member
    with transaction.atomic():
        audit.append(
            workspace_id=member.workspace_id, actor=audit.Actor("member", member.pk), event=event,
            subject_id=subject_id, **data,
        )  # fmt: skip


def answer(content: bytes, name: str) -> HttpResponse:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type="application/octet-stream", headers=headers)
