"""Agents and their Agent Tools, for who holds `agents:manage`. Changing is done by `workspaces.agents`, never here."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.db.models import Count, Max, Q
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from approvals.models import Suspension
from console.workspaces import agents, members, permissions, reviewers, settings
from console.workspaces.errors import SandgateError
from console.workspaces.models import Agent, Member, Mode
from sandboxes import exceptions, images
from sandboxes.models import NetworkException

from . import faults, limits, protected, reviewing
from .shell import complain, givers_in, member_page, say
from .words import listed as listed_names

MODES = {
    Mode.ALWAYS: "Always ask",
    Mode.RULES: "Ask unless a rule allows",
    Mode.NEVER: "Never ask",
}
ASKS: dict[str, str] = {Mode.ALWAYS: "always", Mode.RULES: "by rules"}
SAME: dict[str, str] = {
    Mode.ALWAYS: "run and write, always",
    Mode.RULES: "run and write, by rules",
    Mode.NEVER: "",
}
CHOICES = ("toolset", "command_mode", "write_mode", "network", "cool_down_min")
EXCEPTION_FAULTS = {
    "address": "Address: one IPv4 address of another machine, such as 10.1.2.3.",
    "port": "Port: a whole number, 1 to 65535.",
    "protocol": "Protocol: tcp or udp.",
}
KINDS = (("command_mode", "run", "Commands"), ("write_mode", "write", "Files written"))
SINGLE = {"install": "As commands", "stdin": "As commands", "edit": "As files written"}  # with a mode of their own


@dataclass
class Listed:
    agent: Agent
    state: tuple[str, str, str]  # level, icon, word
    asks: str
    reviewers: str
    waiting: int
    last_active: datetime | None


@member_page("agents", permissions.AGENTS_MANAGE, methods=("GET", "HEAD", "POST"))
def listed(request: Any) -> HttpResponseBase:
    here, error = request.here, ""
    if request.method == "POST":
        try:
            owner = here.member if request.POST.get("own") else None
            agent = agents.make(here.workspace, name=request.POST.get("name", ""), by=here.member, owner=owner)
            return redirect("agent-tools", here.workspace.pk, agent.pk)
        except SandgateError as caught:
            error = caught.detail
    return render(
        request,
        "agents/list.html",
        {
            "agents": _listed(here.workspace.pk),
            "suspended": Suspension.objects.open_in(here.workspace),
            "error": error,
            "sent": request.POST,
        },
        status=400 if error else 200,
    )


def _listed(workspace_id: str) -> list[Listed]:
    found = (
        Agent.objects.current()
        .filter(workspace_id=workspace_id)
        .annotate(waiting=Count("actions", filter=Q(actions__status="pending")), active=Max("actions__created_at"))
        .prefetch_related("halts__halted_by__user")
        .order_by("name")
    )
    return [_row(agent, agent.waiting, agent.active) for agent in found]


def _row(agent: Agent, waiting: int, active: datetime | None) -> Listed:
    able = [str(member) for member in reviewers.able(agent).select_related("user")]
    asks = _asks(agent)
    if halt := next((each for each in agent.halts.all() if each.lifted_at is None), None):
        state = ("stop", "octagon-x", f"halted by {halt.halted_by}")
    elif not agent.sandbox_enabled:
        state = ("", "circle-slash", "sandbox off")
    elif asks and len(able) < agent.approvals_needed:
        state = ("stop", "triangle-alert", "too few reviewers" if able else "no reviewer")
    else:
        state = ("go", "check", "on") if asks else ("wait", "triangle-alert", "not gated")
    words = asks if agent.sandbox_enabled else ""
    return Listed(
        agent,
        state,
        words or ("nothing" if agent.sandbox_enabled else ""),
        ", ".join(able) or "nobody",
        waiting,
        active,
    )


def _asks(agent: Agent) -> str:
    """`run by rules, write always`; empty when nothing asks."""
    if agent.command_mode == agent.write_mode and not agent.tool_modes:
        return SAME[agent.command_mode]
    modes = [(tool, getattr(agent, field)) for field, tool, _ in KINDS]
    modes = list({**dict(modes), **agent.tool_modes}.items())
    return ", ".join(f"{tool} {ASKS[mode]}" for tool, mode in modes if mode != Mode.NEVER)


@member_page("agents", permissions.AGENTS_MANAGE, methods=("GET", "HEAD", "POST"))
def tools(request: Any, agent_id: str) -> HttpResponseBase:
    agent = agent_in(request, agent_id)
    if request.method != "POST":
        return page(request, agent)
    version, ended = agent.settings_version, protected.ended_by_a_change(agent)
    if wrong := _save(agent, request.POST, by=request.here.member):
        complain(request, faults.told(wrong))
        return page(request, agent, sent=request.POST, wrong=wrong)
    agent.refresh_from_db()
    ended = ended if agent.settings_version != version else ""
    say(request, f"Saved. {agent.name} has these settings from now on.{ended}")
    return redirect("agent-tools", request.here.workspace.pk, agent.pk)


def _save(agent: Agent, post: Any, *, by: Member) -> faults.Faults:
    """What could not be; nothing when it is saved."""
    sent: dict[str, Any] = {name: post.get(name) == "on" for name in agents.SWITCHES}
    sent |= {name: post.get(name, "") for name in ("command_mode", "write_mode")}
    if "mode_edit" in post:
        others = {tool: mode for tool, mode in agent.tool_modes.items() if tool not in SINGLE}
        sent["tool_modes"] = others | {tool: post[f"mode_{tool}"] for tool in SINGLE if post.get(f"mode_{tool}")}
    wrong: faults.Faults = {}
    if "network" in post:  # else it is a page from before these could be set
        sent |= {"network": post["network"], "limits": limits.typed(post)}
        sent["images"] = limits.listed(post.get("images", ""))
        wrong = faults.of_limits(sent["limits"], settings.ranges(agent.workspace), up_to="most")
        wrong |= faults.of_images(sent["images"])
    if "protected_more" in post:
        sent["protected_more"] = limits.listed(post["protected_more"])
        wrong |= protected.of_patterns(sent["protected_more"])
    if "cool_down_min" in post:
        sent["cool_down_min"] = limits.whole(post["cool_down_min"])
        wrong |= faults.of_cool_down(sent["cool_down_min"])
    sent |= reviewing.typed(post)
    try:
        if not wrong:
            agents.change_tools(agent, by=by, toolset=int(post.get("toolset", "")), **sent)
    except SandgateError as caught:
        wrong = faults.of_act(caught)
    except ValueError:
        wrong = {"": "A setting is missing."}
    return wrong


def page(
    request: Any,
    agent: Agent,
    *,
    sent: Any = None,
    wrong: faults.Faults | None = None,
    opening: Any = None,
    exempting: Any = None,
) -> HttpResponseBase:
    """After a refusal with what was sent: `sent` for the settings, `opening` for the network exception, `exempting` for
    the exemption of a protected path."""
    shown = _shown(request, agent, sent) | _of_sandboxes(agent, sent, wrong or {}) | {"now": _now(agent, sent)}
    shown |= {"wrong": wrong or {}, "sent": sent, "opening": opening, "exempting": exempting}
    shown |= protected.shown(agent, sent)
    return render(request, "agents/tools.html", shown, status=400 if wrong or opening or exempting else 200)


def _now(agent: Agent, sent: Any) -> dict[str, Any]:
    """What each control shows: the kept value, or after a refusal the one that was sent."""
    found: dict[str, Any] = {name: getattr(agent, name) for name in agents.SWITCHES}
    found |= {name: str(getattr(agent, name)) for name in CHOICES}
    if sent is not None:
        found |= {name: sent.get(name) == "on" for name in agents.SWITCHES}
        found |= {name: sent[name] for name in CHOICES if name in sent}
    own = {
        tool: sent.get(f"mode_{tool}", "") if sent is not None else agent.tool_modes.get(tool, "") for tool in SINGLE
    }
    found["singles"] = [(tool, [("", words), *MODES.items()], own[tool]) for tool, words in SINGLE.items()]
    return found | {"kinds": [(field, tool, title, found[field]) for field, tool, title in KINDS]}


def _shown(request: Any, agent: Agent, sent: Any) -> dict[str, Any]:
    return {
        "agent": agent,
        "own_halt": agent.halts.filter(lifted_at=None).first(),
        "modes": MODES.items(),
        "toolsets": [(str(number), words) for number, words in agents.TOOLSETS.items()],
        **reviewing.shown(agent, sent),
        "may_run": agent.may(permissions.SANDBOXES_RUN),
        "may_give": permissions.MEMBERS_MANAGE in request.here.may,
        "to_self": members.to_self(agent, request.here.member),
        "givers": listed_names(givers_in(request.here.workspace, but=request.here.member)),
        "may_make_keys": permissions.KEYS_MANAGE in request.here.may,
        "keys": agent.keys.filter(revoked_at=None).count(),
        "base": f"{request.scheme}://{request.get_host()}",
    }


def _of_sandboxes(agent: Agent, post: Any, wrong: faults.Faults) -> dict[str, Any]:
    spans = settings.ranges(agent.workspace)
    most = {name: span.most for name, span in spans.items()}
    return {
        "limits": limits.table(spans, agent.limits, most, post, wrong),
        "images": post.get("images", "") if post else "\n".join(agent.images),
        "missing": async_to_sync(images.missing)(agent.images),
        "networks": [("none", "None"), ("public", "Public")],
        "exceptions": NetworkException.objects.filter(agent=agent, ended_at=None).order_by("created_at"),
    }


@member_page("agents", permissions.MEMBERS_MANAGE, methods=("POST",))
def run_permission(request: Any, agent_id: str) -> HttpResponseBase:
    """Gives or takes an agent's `sandboxes:run`, by name."""
    agent, by = agent_in(request, agent_id), request.here.member
    try:
        if request.POST.get("give"):
            members.give(agent, permissions.SANDBOXES_RUN, by=by)
        else:
            members.take(agent, permissions.SANDBOXES_RUN, by=by)
    except SandgateError as caught:
        complain(request, caught.detail)
    return redirect("agent-tools", request.here.workspace.pk, agent.pk)


@member_page("agents", permissions.AGENTS_MANAGE, methods=("POST",))
def network_exception(request: Any, agent_id: str) -> HttpResponseBase:
    """Opens a private destination to an agent's sandboxes, or closes the one named by `end`."""
    agent, by, post = agent_in(request, agent_id), request.here.member, request.POST
    try:
        if named := post.get("end"):
            exceptions.end(exceptions.find(agent, named), by=by)
            said = "Closed, within two seconds also for connections that are open."
        else:
            made = _open(agent, post, by=by)
            said = f"{made} is open to {agent.name}, within two seconds also in sandboxes that run."
    except SandgateError as caught:
        field = str(caught.fields.get("field", ""))
        words = EXCEPTION_FAULTS.get(field, caught.detail) if "`" in caught.detail else caught.detail
        complain(request, "No destination was opened or closed.")
        return page(request, agent, opening={"sent": post, "field": field, "words": words})
    messages.success(request, said, extra_tags="exceptions")
    return redirect(f"{reverse('agent-tools', args=[request.here.workspace.pk, agent.pk])}#s-exceptions")


def _open(agent: Agent, post: Any, *, by: Member) -> NetworkException:
    port = post.get("port", "").strip()
    return exceptions.make(
        agent, address=post.get("address", "").strip(), protocol=post.get("protocol", ""),
        port=int(port) if port.isdecimal() and len(port) < 6 else 0, reason=post.get("reason", "")[:200], by=by,
    )  # fmt: skip


def agent_in(request: Any, agent_id: str) -> Agent:
    found = (
        Agent.objects.current()
        .select_related("owner__user", "workspace")
        .filter(workspace=request.here.workspace, pk=agent_id)
    )
    agent = found.first()
    if agent is None:
        raise Http404
    return agent
