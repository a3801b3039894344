"""Halting an agent or the workspace, and lifting that. A page of its own, so that it works from anywhere: without
scripts, while the page it came from is offline, and whatever waits.

Acts are those of `sandboxes.quarantine` and `workspaces.halts`. GET never halts nor lifts.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import Count, Q
from django.http import Http404, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from approvals import together
from approvals.models import Action
from console.workspaces import halts, permissions
from console.workspaces.errors import NotFound, SandgateError
from console.workspaces.models import Agent, Halt
from sandboxes import file_acts, quarantine
from sandboxes.models import Command

from . import people, proof
from .shell import complain, member_page, say
from .words import number

METHODS = ("GET", "HEAD", "POST")
EVERYTHING = "all"


@member_page("halt")
def banners(request: Any) -> HttpResponseBase:
    """What every page says of halts, for pages that hear of one."""
    return render(request, "partials/_halts.html")


@member_page("halt", permissions.APPROVALS_REVIEW, methods=METHODS)
def halt(request: Any) -> HttpResponseBase:
    """`?agent=` and `?action=` come from the page where somebody decided to. POST halts; nothing can be missing but
    what is to be halted."""
    here, sent = request.here, request.POST or request.GET
    agents = Agent.objects.current().filter(workspace=here.workspace).order_by("name")
    chosen, action = _chosen(agents, sent.get("agent", "")), _action(request, sent.get("action", ""))
    if request.method == "POST" and (chosen or sent.get("agent") == EVERYTHING):
        return _halted(request, chosen, action)
    shown = {
        "agents": agents, "chosen": chosen, "action": action, "everything": EVERYTHING,
        "running": _commands(here.workspace.pk, chosen), "waiting": _waiting(request, chosen),
        "error": "Choose what to halt." if request.method == "POST" else "", "reason": sent.get("reason", ""),
    }  # fmt: skip
    return render(request, "halts/halt.html", shown, status=400 if request.method == "POST" else 200)


def _chosen(agents: Any, agent_id: str) -> Agent | None:
    if not agent_id or agent_id == EVERYTHING:
        return None
    found: Agent | None = agents.filter(pk=agent_id).first()
    if found is None:
        raise Http404
    return found


def _action(request: Any, action_id: str) -> Action | None:
    return Action.objects.visible_to(request.here.member).filter(pk=action_id).first() if action_id else None


def _halted(request: Any, agent: Agent | None, action: Action | None) -> HttpResponseBase:
    here, reason = request.here, request.POST.get("reason", "")
    if action is not None and action.status == "pending":
        with suppress(SandgateError):  # it was decided meanwhile: that keeps nobody from halting
            why = reason.strip() or halts.NO_REASON
            together.deny(action, by=here.member, reason=why)
    try:
        found = quarantine.halt(here.workspace, agent, by=here.member, reason=reason)
    except SandgateError as caught:
        complain(request, caught.detail)
        return redirect("halt", here.workspace.pk)
    cancelled = number(found.cancelled, "action")
    say(request, f"{agent or here.workspace} is halted. What runs is killed within 5 seconds, {cancelled} cancelled.")
    return redirect("queue", here.workspace.pk)


def _commands(workspace_id: str, agent: Agent | None) -> int:
    found = Command.objects.filter(Q(status="running") | Q(left_running=True), sandbox__workspace=workspace_id)
    return (found.filter(sandbox__agent=agent) if agent else found).count()


def _waiting(request: Any, agent: Agent | None) -> int:
    found = Action.objects.visible_to(request.here.member).filter(status__in=["pending", "approved"])
    return (found.filter(agent=agent) if agent else found).count()


@member_page("sandboxes", permissions.AGENTS_MANAGE)
def quarantined(request: Any, sandbox_id: str) -> HttpResponseBase:
    """`/work` of a halted sandbox as a tar: a download, never a page of this origin, and on record."""
    passage = file_acts.Passage()
    try:
        async_to_sync(file_acts.stream_quarantine)(request.here.member, sandbox_id, passage)
        first = async_to_sync(file_acts.take)(passage)
    except NotFound as error:
        raise Http404 from error
    except SandgateError as caught:
        complain(request, caught.detail)
        return redirect("sandbox", request.here.workspace.pk, sandbox_id)
    headers = {
        "Content-Disposition": f'attachment; filename="{sandbox_id}.tar"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingHttpResponse(_pieces(passage, first), content_type="application/octet-stream", headers=headers)


async def _pieces(passage: file_acts.Passage, first: bytes) -> AsyncIterator[bytes]:
    """Raises when it is cut: half of it is out by then, so the server cuts the connection."""
    try:
        piece = first
        while piece:
            yield piece
            piece = await file_acts.take(passage)
    finally:
        file_acts.leave(passage)()


@member_page("halt", permissions.AGENTS_MANAGE, methods=METHODS)
def lift(request: Any, halt_id: str) -> HttpResponseBase:
    """With a reason, and by somebody who has signed in, or said their password again, within 10 minutes."""
    found = Halt.objects.current().filter(workspace=request.here.workspace, pk=halt_id).first()
    if found is None:
        raise Http404
    wrong = _lifted(request, found) if request.method == "POST" else {}
    if request.method == "POST" and not wrong:
        say(request, f"{found.agent or found.workspace} may go on. What was cancelled stays so.")
        return redirect("agents", request.here.workspace.pk)
    kept = found.workspace.sandboxes.exclude(quarantined_until=None)
    shown = {
        "halt": found, "wrong": wrong, "reason": request.POST.get("reason", ""),
        "proved": proof.is_recent(request),
        "kept": (kept.filter(agent=found.agent) if found.agent else kept).aggregate(n=Count("pk"))["n"],
    }  # fmt: skip
    return render(request, "halts/lift.html", shown, status=400 if wrong else 200)


def _lifted(request: Any, found: Halt) -> dict[str, str]:
    """What is wrong, by field; nothing when it is lifted, by whomever."""
    if refusal := proof.refusal(request, people.throttle):
        return {"password": refusal}
    try:
        halts.lift(found, by=request.here.member, reason=request.POST.get("reason", ""))
    except SandgateError as caught:
        return {"reason": caught.detail}
    return {}
