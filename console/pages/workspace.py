"""The workspace's settings for sandboxes, for who holds `workspace:manage`. The act is `workspaces.settings`."""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from console.workspaces import permissions, settings
from console.workspaces.errors import SandgateError

from . import limits
from .shell import complain, member_page, say


@member_page("workspace", permissions.WORKSPACE_MANAGE, methods=("GET", "HEAD", "POST"))
def changed(request: Any) -> HttpResponseBase:
    here, error = request.here, {}
    if request.method == "POST":
        try:
            settings.change_workspace(by=here.member, **_sent(request.POST))
            say(request, "Saved. Sandboxes made from now on have these settings.")
            return redirect("workspace", here.workspace.pk)
        except SandgateError as caught:
            error = {"field": str(caught.fields.get("field", "")), "detail": caught.detail}
            complain(request, f"{caught.detail} Nothing was changed.")
    return render(request, "workspace/settings.html", _shown(request, error), status=400 if error else 200)


def _sent(post: Any) -> dict[str, Any]:
    size = post.get("pool_size", "").strip()
    return {
        "limits": limits.typed(post),
        "images": limits.listed(post.get("images", "")),
        "pool_size": int(size) if size.isdecimal() and len(size) < 6 else size,
    }


def _shown(request: Any, error: dict[str, str]) -> dict[str, Any]:
    workspace, post = request.here.workspace, request.POST or None
    spans = settings.RANGES
    ceilings = {name: span.ceiling for name, span in spans.items()}
    return {
        "limits": limits.table(spans, workspace.limits, ceilings, post, **error),
        "images": post.get("images", "") if post else "\n".join(workspace.images),
        "pool_size": post.get("pool_size", "") if post else workspace.pool_size,
        "most_pooled": settings.MOST_POOLED,
        "error": error,
    }
