"""Network exceptions: single private destinations that an agent's sandboxes may reach."""

from functools import partial

from django.http import HttpRequest
from ninja import Router, Status

from console.workspaces import db, permissions
from console.workspaces.keys import Caller
from sandboxes import exceptions
from sandboxes.models import NetworkException

from . import acting, listing, schemas
from .door import caller, door

router = Router(tags=["Agents"])
manages = partial(door, router, keys="workspace", may=(permissions.AGENTS_MANAGE,))
PATH = "/agents/{agent_id}/network-exceptions"


@manages("GET", PATH, answers={200: schemas.NetworkExceptions})
async def list_network_exceptions(
    request: HttpRequest, agent_id: str, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.NetworkExceptions:
    """List an agent's network exceptions. Private destinations that its sandboxes may reach, newest first."""
    found, more = await db.read(_list, caller(request), agent_id, limit, cursor)
    return schemas.NetworkExceptions(items=[schemas.NetworkException.of(row) for row in found], next_cursor=more)


def _list(who: Caller, agent_id: str, limit: int, cursor: str | None) -> tuple[list[NetworkException], str | None]:
    rows = NetworkException.objects.filter(agent=acting.agent(who, agent_id), ended_at=None)
    return listing.page(rows, limit, cursor)


@manages("POST", PATH, answers={201: schemas.NetworkException}, fails=("conflict",))
async def make_network_exception(
    request: HttpRequest, agent_id: str, body: schemas.NewNetworkException
) -> Status[schemas.NetworkException]:
    """Open a private destination to an agent's sandboxes. Within two seconds, also to those that run."""
    return Status(201, await db.write(_make, caller(request), agent_id, body))


def _make(who: Caller, agent_id: str, body: schemas.NewNetworkException) -> schemas.NetworkException:
    agent = acting.agent(who, agent_id)
    return schemas.NetworkException.of(exceptions.make(agent, by=acting.member(who), **body.model_dump()))


@manages("DELETE", f"{PATH}/{{exception_id}}", answers={200: schemas.Done})
async def end_network_exception(request: HttpRequest, agent_id: str, exception_id: str) -> schemas.Done:
    """Close a private destination again. Within two seconds, also for connections that are open."""
    await db.write(_end, caller(request), agent_id, exception_id)
    return schemas.Done()


def _end(who: Caller, agent_id: str, exception_id: str) -> None:
    found = exceptions.find(acting.agent(who, agent_id), exception_id)
    exceptions.end(found, by=acting.member(who))
