"""Agents and their Agent Tools: whether the sandbox is on, which toolset, what needs approval."""

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from . import audit, permissions
from .errors import Conflict, Invalid
from .members import by_need
from .models import Agent, Member, Mode, Workspace

TOOLSETS = {1: "1, plain", 2: "2, hash-anchored"}
SETTINGS = ("sandbox_enabled", "toolset", "command_mode", "write_mode")


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
    _check(settings)
    changed = {name: value for name, value in settings.items() if getattr(agent, name) != value}
    if not changed:
        return agent
    Agent.objects.filter(pk=agent.pk).update(**changed, settings_version=F("settings_version") + 1)
    _audit(agent, by, "agent.tools_changed", before={k: getattr(agent, k) for k in changed}, after=changed)
    agent.refresh_from_db()
    return agent


def _check(settings: dict[str, Any]) -> None:
    if unknown := sorted(set(settings) - set(SETTINGS)):
        raise Invalid(f"Agent Tools have no setting `{unknown[0]}`.", field=unknown[0])
    if settings.get("toolset", 2) not in TOOLSETS:
        raise Invalid(f"There is no toolset {settings['toolset']}; there are 1 and 2.", field="toolset")
    for name in ("command_mode", "write_mode"):
        if settings.get(name, Mode.RULES) not in Mode.values:
            raise Invalid(f"`{name}` is one of {', '.join(Mode.values)}.", field=name)


def _audit(agent: Agent, by: Member | None, event: str, **data: Any) -> None:
    actor = audit.Actor("member", by.pk) if by else audit.SYSTEM
    audit.append(workspace_id=agent.workspace_id, actor=actor, event=event, subject_id=agent.pk, **data)
