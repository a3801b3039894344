"""The workspace's settings for sandboxes, for who holds `workspace:manage`. The act is `workspaces.settings`."""

from typing import Any

from asgiref.sync import async_to_sync
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from console.workspaces import permissions, settings
from console.workspaces.errors import SandgateError
from console.workspaces.models import Member
from sandboxes import images

from . import faults, limits
from .shell import complain, member_page, say


@member_page("workspace", permissions.WORKSPACE_MANAGE, methods=("GET", "HEAD", "POST"))
def changed(request: Any) -> HttpResponseBase:
    here, wrong = request.here, {}
    if request.method == "POST":
        if not (wrong := _save(here.member, _sent(request.POST))):
            say(request, "Saved. Sandboxes made from now on have these settings.")
            return redirect("workspace", here.workspace.pk)
        complain(request, faults.told(wrong))
    return render(request, "workspace/settings.html", _shown(request, wrong), status=400 if wrong else 200)


def _save(by: Member, sent: dict[str, Any]) -> faults.Faults:
    """What could not be; nothing when it is saved."""
    wrong = faults.of_limits(sent["limits"], settings.RANGES, up_to="ceiling")
    wrong |= faults.of_images(sent["images"]) | faults.of_pool(sent["pool_size"])
    try:
        if not wrong:
            settings.change_workspace(by=by, **sent)
    except SandgateError as caught:
        wrong = faults.of_act(caught)
    return wrong


def _sent(post: Any) -> dict[str, Any]:
    size = post.get("pool_size", "").strip()
    return {
        "limits": limits.typed(post),
        "images": limits.listed(post.get("images", "")),
        "pool_size": int(size) if size.isdecimal() and len(size) < 6 else size,
    }


def _shown(request: Any, wrong: faults.Faults) -> dict[str, Any]:
    workspace, post = request.here.workspace, request.POST or None
    spans = settings.RANGES
    ceilings = {name: span.ceiling for name, span in spans.items()}
    return {
        "limits": limits.table(spans, workspace.limits, ceilings, post, wrong),
        "images": post.get("images", "") if post else "\n".join(workspace.images),
        "pool_size": post.get("pool_size", "") if post else workspace.pool_size,
        "missing": async_to_sync(images.missing)(workspace.images),
        "most_pooled": settings.MOST_POOLED,
        "wrong": wrong,
    }
