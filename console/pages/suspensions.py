"""Agents whose rules are suspended after denials: a banner where reviewers look, and the form that lifts it."""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from approvals import memory
from console.workspaces import permissions
from console.workspaces.errors import SandgateError

from .agents import agent_in
from .shell import complain, member_page, say


@member_page("queue", permissions.APPROVALS_REVIEW, methods=("POST",))
def lift(request: Any, agent_id: str) -> HttpResponseBase:
    """Back to the page that the form was on: whoever reviews may not open every agent's page."""
    agent = agent_in(request, agent_id)
    try:
        memory.lift_suspension(agent, by=request.here.member, reason=request.POST.get("reason", "")[:500])
        say(request, f"{agent.name}'s rules and grants count again.")
    except SandgateError as error:
        complain(request, error.detail)
    manages = permissions.AGENTS_MANAGE in request.here.may
    back = "agents" if request.POST.get("back") == "agents" and manages else "queue"
    return redirect(back, request.here.workspace.pk)
