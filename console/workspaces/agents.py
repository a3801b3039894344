"""Agents and their Agent Tools: is the sandbox on, what may it be, which toolset, what needs approval."""

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from . import audit, permissions, protected, reviewers, rows
from . import settings as sandbox_settings
from .errors import Conflict, Invalid
from .keys import Caller
from .members import by_need
from .models import Agent, Member, Mode, Workspace

TOOLSETS = {1: "1, plain", 2: "2, hash-anchored"}
SWITCHES = ("sandbox_enabled", "persistent_allowed", "writable_root_allowed", "self_approval")
REVIEWING = ("approvals_needed", "reviewers")
PROTECTED = ("protected_more", "protected_exempt")
MODED_TOOLS = ("run", "install", "stdin", "write", "edit")
COOL_DOWN_MOST_MIN = 24 * 60
SETTINGS = (
    *SWITCHES,
    "toolset",
    "cool_down_min",
    "command_mode",
    "write_mode",
    "tool_modes",
    "network",
    "images",
    "limits",
    *PROTECTED,
    *REVIEWING,
)


@rows.Question
def _by_id(agent_id: str) -> Any:
    return Agent.objects.filter(pk=agent_id).values_list(*rows.columns(Agent))


def of(caller: Caller) -> Agent | None:
    """As it is now; None for a workspace key. Each call asks it twice: when it comes, and where it is judged."""
    if caller.agent_id is None:
        return None
    (found,) = _by_id(caller.agent_id)
    return rows.whole(Agent, found)


@transaction.atomic
def make(workspace: Workspace, *, name: str, by: Member | None, owner: Member | None = None) -> Agent:
    """A new agent: sandbox off, newest toolset, everything asks. `by` is None only for the first start."""
    if by is not None:
        by_need(by, permissions.AGENTS_MANAGE)
    if not (name := name.strip()) or len(name) > 60:
        raise Invalid("An agent's name has 1 to 60 characters.", field="name")
    try:
        with transaction.atomic():
            agent = Agent.objects.create(workspace=workspace, name=name, owner=owner)
    except IntegrityError as error:
        raise Conflict(f"{workspace} has an agent named {name} already. Choose another name.") from error
    _audit(agent, by, "agent.made", name=name, owner=owner.pk if owner else "")
    return agent


@transaction.atomic
def change_tools(agent: Agent, *, by: Member | None, **settings: Any) -> Agent:
    """New Agent Tools. The settings version goes up, so what was approved under the old ones no longer starts."""
    if by is not None:
        by_need(by, permissions.AGENTS_MANAGE)
    settings = _checked(agent, settings) | _of_protected(agent, settings, by)
    changed = {name: value for name, value in settings.items() if getattr(agent, name) != value}
    if not changed:
        return agent
    Agent.objects.filter(pk=agent.pk).update(**changed, settings_version=F("settings_version") + 1)
    _audit(agent, by, "agent.tools_changed", before={k: getattr(agent, k) for k in changed}, after=changed)
    agent.refresh_from_db()
    return agent


def _checked(agent: Agent, settings: dict[str, Any]) -> dict[str, Any]:
    if unknown := sorted(set(settings) - set(SETTINGS)):
        raise Invalid(f"Agent Tools have no setting `{unknown[0]}`.", field=unknown[0])
    if settings.get("toolset", 2) not in TOOLSETS:
        raise Invalid(f"There is no toolset {settings['toolset']}; there are 1 and 2.", field="toolset")
    for name in ("command_mode", "write_mode"):
        if settings.get(name, Mode.RULES) not in Mode.values:
            raise Invalid(f"`{name}` is one of {', '.join(Mode.values)}.", field=name)
    _check_tool_modes(settings.get("tool_modes", {}))
    check_cool_down(settings.get("cool_down_min", 0))
    for name in SWITCHES:
        if not isinstance(settings.get(name, False), bool):
            raise Invalid(f"`{name}` is true or false.", field=name)
    if settings.get("network", "none") not in ("none", "public"):
        raise Invalid("`network` is none or public.", field="network")
    return settings | _of_sandboxes(agent.workspace, settings) | reviewers.checked(agent, settings)


def check_cool_down(minutes: Any) -> None:
    if isinstance(minutes, bool) or not isinstance(minutes, int) or not 0 <= minutes <= COOL_DOWN_MOST_MIN:
        why = f"`cool_down_min` is 0 to {COOL_DOWN_MOST_MIN} minutes, not {minutes!r}."
        raise Invalid(why, field="cool_down_min")


def _check_tool_modes(given: Any) -> None:
    if not isinstance(given, dict) or set(given) - set(MODED_TOOLS) or set(given.values()) - set(Mode.values):
        raise Invalid(
            f"`tool_modes` says {', '.join(Mode.values)} of any of {', '.join(MODED_TOOLS)}, and of no other tool.",
            field="tool_modes",
        )


def _of_sandboxes(workspace: Workspace, settings: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "images" in settings:
        found["images"] = sandbox_settings.checked_images(settings["images"])
    if "limits" in settings:
        found["limits"] = sandbox_settings.checked_limits(settings["limits"], sandbox_settings.ranges(workspace))
    return found


def _of_protected(agent: Agent, settings: dict[str, Any], by: Member | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "protected_more" in settings:
        found["protected_more"] = protected.checked_more(settings["protected_more"])
    if "protected_exempt" in settings:
        found["protected_exempt"] = protected.checked_exempt(settings["protected_exempt"], agent, by)
    return found


def _audit(agent: Agent, by: Member | None, event: str, **data: Any) -> None:
    actor = audit.Actor("member", by.pk) if by else audit.SYSTEM
    audit.append(workspace_id=agent.workspace_id, actor=actor, event=event, subject_id=agent.pk, **data)
