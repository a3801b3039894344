"""What the published client asks for when it is made: a catalogue of nodes (there are none) and its own key."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from console.workspaces import db
from console.workspaces.models import Key

from . import schemas
from .door import caller, door

router = Router(tags=["This key"])


@door(router, "GET", "/nodes", answers={200: list[Any]})
async def list_nodes(request: HttpRequest) -> list[Any]:
    """List workflow nodes. There are none; the published client asks when it is made."""
    return []


@door(router, "GET", "/admin/me", answers={200: schemas.Me})
async def get_me(request: HttpRequest) -> schemas.Me:
    """Get this key. What it is, and what it may do right now."""
    who = caller(request)
    key = await db.read(Key.objects.get, pk=who.key_id)
    return schemas.Me(
        id=key.pk,
        name=key.name,
        value=f"{key.hint}…",
        permissions=sorted(who.permissions),
        workspace_id=who.workspace_id,
        agent_id=who.agent_id,
        member_id=who.member_id,
        expires_at=key.expires_at,
    )
