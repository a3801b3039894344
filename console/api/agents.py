"""Agents and their Agent Tools settings, as on the pages."""

from functools import partial
from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from console.workspaces import agents, db, members, permissions
from console.workspaces.keys import Caller
from console.workspaces.models import Agent
from sandboxes import protection

from . import acting, listing, schemas
from .door import caller, door

router = Router(tags=["Agents"])
manages = partial(door, router, keys="workspace", may=(permissions.AGENTS_MANAGE,))
gives = partial(door, router, keys="workspace", may=(permissions.MEMBERS_MANAGE,), answers={200: schemas.Done})


@manages("GET", "/agents", answers={200: schemas.Agents})
async def list_agents(
    request: HttpRequest, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.Agents:
    """List the workspace's agents. Newest first."""
    found, more = await db.read(_list, caller(request), limit, cursor)
    return schemas.Agents(items=[schemas.Agent.of(row) for row in found], next_cursor=more)


def _list(who: Caller, limit: int, cursor: str | None) -> tuple[list[Agent], str | None]:
    rows = Agent.objects.current().filter(workspace_id=who.workspace_id)
    rows = rows.select_related("workspace").prefetch_related("permissions")
    return listing.page(rows, limit, cursor)


@manages("POST", "/agents", answers={201: schemas.Agent}, fails=("not_found", "conflict"))
async def make_agent(request: HttpRequest, body: schemas.NewAgent) -> Status[schemas.Agent]:
    """Make an agent. Its sandbox is off and it has no permission until somebody gives it one."""
    return Status(201, await db.write(_make, caller(request), body))


def _make(who: Caller, body: schemas.NewAgent) -> schemas.Agent:
    by = acting.member(who)
    owner = acting.other_member(who, body.owner) if body.owner else None
    return schemas.Agent.of(agents.make(by.workspace, name=body.name, by=by, owner=owner))


@manages("GET", "/agents/{agent_id}/tools/sandbox", answers={200: schemas.AgentToolsNow})
async def get_agent_tools(request: HttpRequest, agent_id: str) -> schemas.AgentToolsNow:
    """Get an agent's Agent Tools settings."""
    return schemas.AgentToolsNow.of(await db.read(acting.agent, caller(request), agent_id))


@manages("PUT", "/agents/{agent_id}/tools/sandbox", answers={200: schemas.AgentToolsNow})
async def change_agent_tools(request: HttpRequest, agent_id: str, body: schemas.AgentTools) -> schemas.AgentToolsNow:
    """Change an agent's Agent Tools settings. What was approved under the old ones no longer starts."""
    changes = body.model_dump(exclude_unset=True, exclude_none=True)
    return await db.write(_change, caller(request), agent_id, changes)


def _change(who: Caller, agent_id: str, changes: dict[str, Any]) -> schemas.AgentToolsNow:
    agent = acting.agent(who, agent_id)
    protection.check_settings(changes, agent)
    agent = agents.change_tools(agent, by=acting.member(who), **changes)
    return schemas.AgentToolsNow.of(agent)


@gives("PUT", "/agents/{agent_id}/permissions/{permission}")
async def give_agent_permission(request: HttpRequest, agent_id: str, permission: str) -> schemas.Done:
    """Give an agent a permission. Once more changes nothing."""
    await db.write(acting.change, members.give, acting.agent, caller(request), agent_id, permission)
    return schemas.Done()


@gives("DELETE", "/agents/{agent_id}/permissions/{permission}")
async def take_agent_permission(request: HttpRequest, agent_id: str, permission: str) -> schemas.Done:
    """Take a permission from an agent. Once more changes nothing."""
    await db.write(acting.change, members.take, acting.agent, caller(request), agent_id, permission)
    return schemas.Done()
