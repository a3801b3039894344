"""Files that were published, which outlive their sandbox: said on pages, and handed out.

Their bytes are a sandbox's: they must never be a page of this origin, only a download, and each is on record.
"""

from posixpath import basename
from typing import Any
from unicodedata import category

from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from approvals.models import Action
from console.workspaces import audit, permissions
from console.workspaces.errors import NotFound
from console.workspaces.models import Member
from sandboxes import artifacts
from sandboxes.models import Artifact

from .shell import member_page

SHOWN = 100
HIDDEN = ("Cc", "Cf", "Zl", "Zp")


def of_sandbox(viewer: Member, sandbox_id: str) -> QuerySet[Artifact]:
    """Newest first, at most SHOWN."""
    return Artifact.objects.visible_to(viewer).filter(sandbox_id=sandbox_id).order_by("-created_at", "-pk")[:SHOWN]


def of_action(viewer: Member, action: Action) -> list[Artifact]:
    """What a `publish` kept; nothing when it has expired."""
    kept = (action.result or {}).get("artifact_id") if action.tool == "publish" else None
    return list(Artifact.objects.visible_to(viewer).filter(pk=kept)) if kept else []


@member_page("sandboxes", permissions.SANDBOXES_READ)
def content(request: Any, artifact_id: str) -> HttpResponseBase:
    """All of its bytes."""
    found = Artifact.objects.visible_to(request.here.member).filter(pk=artifact_id).first()
    if found is None:
        raise Http404
    try:
        file = artifacts.opened(found)
    except NotFound as error:
        raise Http404 from error
    if request.method != "HEAD":
        artifacts.record_download(found, audit.Actor("member", request.here.member.pk))
    return StreamingHttpResponse(
        artifacts.pieces(file, offset=0, length=found.size),
        content_type="application/octet-stream",
        headers={
            "Content-Disposition": content_disposition_header(True, _name(found)) or "attachment",
            "Content-Length": str(found.size),
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
        },
    )


def _name(artifact: Artifact) -> str:
    """The last part of its path, without what could end a header or turn a name round."""
    name = basename(artifact.path).encode("utf-8", "replace").decode()
    return "".join("_" if category(each) in HIDDEN else each for each in name) or "file"
