"""Who is told of what nobody has decided in time, on the page Notices. The act is `workspaces.settings`."""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from approvals.notices.models import Webhook
from console.workspaces import permissions, reviewers, settings
from console.workspaces.errors import SandgateError
from console.workspaces.models import Workspace

from . import limits
from .shell import complain, member_page, say


@member_page("notices", permissions.WORKSPACE_MANAGE, methods=("POST",))
def change(request: Any) -> HttpResponseBase:
    post, by = request.POST, request.here.member
    try:
        settings.change_workspace(
            by=by, escalate_after_min=limits.whole(post.get("after_min", "")), escalate_to=post.getlist("to")
        )
        say(request, "Saved. It holds for what waits now, too.")
    except SandgateError as wrong:
        complain(request, wrong.detail)
    return redirect("notices", request.here.workspace.pk)


def shown(workspace: Workspace) -> dict[str, Any]:
    members = reviewers.in_workspace(workspace.pk).select_related("user").order_by("user__name")
    group = [(member, member.pk in workspace.escalate_to) for member in members]
    hooks = Webhook.objects.in_force().shared().filter(workspace=workspace)
    is_heard = any(picked for _, picked in group) or any("escalated" in hook.events for hook in hooks)
    return {
        "escalate_after_min": workspace.escalate_after_min,
        "escalate_group": group,
        "most_escalate_min": settings.MOST_ESCALATE_MIN,
        "escalates_to_nobody": workspace.escalate_after_min and not is_heard,
    }
