"""What Agent Tools say of protected files: further names, and paths that are exempt for a time. Changing is done by
`workspaces.agents`, never here."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from console.workspaces import agents, permissions, protected
from console.workspaces.errors import SandgateError
from console.workspaces.models import Agent, Member
from sandboxes import protection

from . import faults
from .shell import complain, member_page
from .words import number

MOST_HOURS = protected.EXEMPT_FOR.days * 24
NOT_HOURS = f"Hours: a whole number, 1 to {MOST_HOURS}."


@dataclass
class Exemption:
    path: str
    reason: str
    until: datetime
    by: str


def shown(agent: Agent, post: Any) -> dict[str, Any]:
    """For the page; after a refusal with what was sent."""
    names = {member.pk: str(member) for member in Member.objects.filter(workspace=agent.workspace)}
    return {
        "waiting": agent.actions.pending().count(),
        "protected_more": post.get("protected_more", "") if post else "\n".join(agent.protected_more),
        "exemptions": [
            Exemption(
                each["path"], each["reason"], datetime.fromisoformat(each["expires_at"]), names.get(each["by"], "")
            )
            for each in protected.exempt_now(agent)
        ],
    }


def of_patterns(patterns: list[str]) -> faults.Faults:
    try:
        protection.check_patterns({"protected_more": patterns})
        protected.checked_more(patterns)
    except SandgateError as refused:
        return {"protected_more": refused.detail.replace("`protected_more`", "Protected names")}
    return {}


@member_page("agents", permissions.AGENTS_MANAGE, methods=("POST",))
def exemption(request: Any, agent_id: str) -> HttpResponseBase:
    """Exempts one full path for some hours, or ends the exemption of the path named by `end`."""
    from .agents import agent_in, page  # which show what is here

    agent, post = agent_in(request, agent_id), request.POST
    try:
        if path := post.get("end"):
            left = [each for each in agent.protected_exempt if each["path"] != path]
            said = f"`{path}` is protected again."
        else:
            asked = _asked(post)
            left = [*(each for each in agent.protected_exempt if each["path"] != asked["path"]), asked]
            protection.check_settings({"protected_exempt": left}, agent)
            said = f"`{asked['path']}` is exempt for {post['hours'].strip()} h, from its next call on."
        said += ended_by_a_change(agent)
        agents.change_tools(agent, by=request.here.member, protected_exempt=left)
    except (SandgateError, ValueError) as caught:
        field = str(getattr(caught, "fields", {"field": "hours"}).get("field", "")).rpartition(".")[2]
        words = caught.detail if isinstance(caught, SandgateError) else NOT_HOURS
        complain(request, "No path was exempted.")
        return page(request, agent, exempting={"sent": post, "words": words, "field": field})
    messages.success(request, said, extra_tags="exemptions")
    return redirect(f"{reverse('agent-tools', args=[request.here.workspace.pk, agent.pk])}#s-exempt")


def ended_by_a_change(agent: Agent) -> str:
    """To be asked before it: each digest names the version of the settings, so none of what waits can run after it."""
    count = agent.actions.pending().count()
    return f" {number(count, 'action')} that waited will not run: proposed under other settings." if count else ""


def _asked(post: Any) -> dict[str, str]:
    """Raises ValueError for the hours."""
    hours = int(post.get("hours", "").strip())
    if not 1 <= hours <= MOST_HOURS:
        raise ValueError
    until = timezone.now() + timedelta(hours=hours)
    return {"path": post.get("path", "").strip(), "expires_at": until.isoformat(), "reason": post.get("reason", "")}
