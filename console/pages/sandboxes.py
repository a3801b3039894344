"""Sandboxes: what was asked of each, what runs in it, what is kept of it; and their end by hand.

Acts are those of `sandboxes.acts`, the same that REST calls. Must never make a sandbox, nor show one of others.
"""

import signal
from collections.abc import Iterable
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
from console.workspaces.models import AuditEntry
from sandboxes import acts
from sandboxes.models import Command, Sandbox

from . import kept, rows
from .shell import complain, member_page, say

ENDED_SHOWN = 50
ACTIONS_SHOWN = 200
ENDED = {
    "deleted": "deleted",
    "idle": "idle too long",
    "max_lifetime": "lifetime over",
    "oom": "out of memory",
    "process_limit": "too many processes",
    "disk_limit": "its system grew too large",
    "crashed": "crashed or removed from outside",
    "host_lost": "host lost",
    "halted": "halted",
}
STOPPED = "the console was stopped"


@member_page("sandboxes", permissions.SANDBOXES_READ)
def listed(request: Any) -> HttpResponseBase:
    pending = Action.objects.pending().filter(sandbox_id=OuterRef("pk")).order_by().values("sandbox_id")
    found = Sandbox.objects.visible_to(request.here.member).select_related("agent")
    found = found.annotate(waiting=Coalesce(Subquery(pending.annotate(n=Count("pk")).values("n")), 0))
    shown = {
        "live": found.filter(~Q(status="ended")).order_by("-last_activity_at"),
        "ended": _said(found.filter(status="ended").order_by("-ended_at")[:ENDED_SHOWN]),
    }
    return render(request, "sandboxes/list.html", shown)


@member_page("sandboxes", permissions.SANDBOXES_READ)
def detail(request: Any, sandbox_id: str) -> HttpResponseBase:
    """The page; `?part=live` is what of it changes by itself."""
    found = Sandbox.objects.visible_to(request.here.member).select_related("agent")
    sandbox = found.filter(pk=sandbox_id).first()
    if sandbox is None:
        raise Http404
    actions = Action.objects.visible_to(request.here.member).filter(sandbox_id=sandbox.pk).select_related("agent")
    shown = {
        "sandbox": _said([sandbox])[0],
        "rows": rows.of(actions.order_by("-created_at")[:ACTIONS_SHOWN]),
        "waiting": actions.pending().count(),
        "idle_at": _idle_at(sandbox),
        "running": _running(sandbox),
        "exceptions": _exceptions(sandbox),
        "kept": kept.of_sandbox(request.here.member, sandbox.pk),
        "may_run": permissions.SANDBOXES_RUN in request.here.may,
        "may_export": permissions.AUDIT_READ in request.here.may,
    }
    return render(request, f"sandboxes/{'_live' if request.GET.get('part') == 'live' else 'detail'}.html", shown)


def _running(sandbox: Sandbox) -> list[tuple[Command, rows.Row]]:
    """Commands with a process that lives, and what each of them is."""
    found = list(sandbox.commands.filter(Q(status="running") | Q(left_running=True)).order_by("-pk"))
    actions = Action.objects.select_related("agent").in_bulk([command.action_id for command in found])
    return list(zip(found, rows.of(actions[command.action_id] for command in found), strict=True))


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


def _said(sandboxes: Iterable[Sandbox]) -> list[Sandbox]:
    """With the reason of their end in words. A console that was stopped in order lost its host as well: the audit row
    of the end tells it from one that died."""
    found = list(sandboxes)
    lost = [each.pk for each in found if each.ended_reason == "host_lost"]
    ends = AuditEntry.objects.filter(
        workspace__in={each.workspace_id for each in found}, event="sandbox.ended", subject_id__in=lost
    )
    stopped = {end.subject_id for end in ends if end.data.get("because")} if lost else set()
    for each in found:
        in_order = each.pk in stopped
        each.because = STOPPED if in_order else ENDED.get(each.ended_reason or "", "")  # type: ignore[attr-defined]
    return found


def _idle_at(sandbox: Sandbox) -> datetime:
    return sandbox.last_activity_at + timedelta(seconds=sandbox.idle_timeout_s)
