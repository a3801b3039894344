"""Sandboxes: what was asked of each, what runs in it, what is kept of it; and their end by hand.

Acts are those of `sandboxes.acts`, the same that REST calls. Must never make a sandbox, nor show one of others.
"""

import signal
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from approvals.models import Action
from console.workspaces import permissions
from console.workspaces.errors import SandgateError
from console.workspaces.keys import Caller
from sandboxes import acts
from sandboxes.models import Command, Sandbox

from . import rows
from .shell import complain, member_page, say

ENDED_SHOWN = 50
ACTIONS_SHOWN = 200
ENDED = {
    "deleted": "deleted",
    "idle": "idle too long",
    "max_lifetime": "lifetime over",
    "oom": "out of memory",
    "process_limit": "too many processes",
    "crashed": "crashed or removed from outside",
    "host_lost": "host lost",
    "halted": "halted",
}


@member_page("sandboxes", permissions.SANDBOXES_READ)
def listed(request: Any) -> HttpResponseBase:
    pending = Action.objects.pending().filter(sandbox_id=OuterRef("pk")).order_by().values("sandbox_id")
    found = Sandbox.objects.visible_to(request.here.member).select_related("agent")
    found = found.annotate(waiting=Coalesce(Subquery(pending.annotate(n=Count("pk")).values("n")), 0))
    shown = {
        "live": found.filter(~Q(status="ended")).order_by("-last_activity_at"),
        "ended": [_said(each) for each in found.filter(status="ended").order_by("-ended_at")[:ENDED_SHOWN]],
    }
    return render(request, "sandboxes/list.html", shown)


@member_page("sandboxes", permissions.SANDBOXES_READ)
def detail(request: Any, sandbox_id: str) -> HttpResponseBase:
    found = Sandbox.objects.visible_to(request.here.member).select_related("agent")
    sandbox = found.filter(pk=sandbox_id).first()
    if sandbox is None:
        raise Http404
    actions = Action.objects.visible_to(request.here.member).filter(sandbox_id=sandbox.pk).select_related("agent")
    shown = {
        "sandbox": _said(sandbox),
        "rows": [rows.row(action) for action in actions.order_by("-created_at")[:ACTIONS_SHOWN]],
        "waiting": actions.pending().count(),
        "idle_at": _idle_at(sandbox),
        "running": _running(sandbox),
        "exceptions": _exceptions(sandbox),
        "may_run": permissions.SANDBOXES_RUN in request.here.may,
    }
    return render(request, "sandboxes/detail.html", shown)


def _running(sandbox: Sandbox) -> list[tuple[Command, rows.Row]]:
    """Commands with a process that lives, and what each of them is."""
    found = list(sandbox.commands.filter(Q(status="running") | Q(left_running=True)).order_by("-pk"))
    actions = Action.objects.select_related("agent").in_bulk([command.action_id for command in found])
    return [(command, rows.row(actions[command.action_id])) for command in found]


def _exceptions(sandbox: Sandbox) -> int:
    if sandbox.network == "none" or sandbox.agent is None:
        return 0
    return sandbox.agent.network_exceptions.filter(ended_at=None).count()


@member_page("sandboxes", permissions.SANDBOXES_RUN, methods=("POST",))
def stop_command(request: Any, sandbox_id: str, command_id: str) -> HttpResponseBase:
    here = request.here
    try:
        async_to_sync(acts.stop_command)(Caller.of_member(here.member), sandbox_id, command_id, signal.SIGTERM)
        say(request, f"{command_id} is stopped, with all that it had started.")
    except SandgateError as caught:
        complain(request, caught.detail)
    return redirect("sandbox", here.workspace.pk, sandbox_id)


@member_page("sandboxes", permissions.SANDBOXES_RUN, methods=("POST",))
def delete(request: Any, sandbox_id: str) -> HttpResponseBase:
    here = request.here
    try:
        async_to_sync(acts.delete_sandbox)(Caller.of_member(here.member), sandbox_id)
    except SandgateError as caught:
        complain(request, caught.detail)
        return redirect("sandbox", here.workspace.pk, sandbox_id)
    say(request, f"Sandbox {sandbox_id} and its files are gone.")
    return redirect("sandboxes", here.workspace.pk)


def _said(sandbox: Sandbox) -> Sandbox:
    """With the reason of its end in words."""
    sandbox.because = ENDED.get(sandbox.ended_reason or "", "")  # type: ignore[attr-defined]
    return sandbox


def _idle_at(sandbox: Sandbox) -> datetime:
    return sandbox.last_activity_at + timedelta(seconds=sandbox.idle_timeout_s)
