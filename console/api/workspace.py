"""The workspace's own settings for sandboxes, as on its page."""

from functools import partial
from typing import Any

from django.http import HttpRequest
from ninja import Router

from console.workspaces import db, permissions, settings
from console.workspaces.keys import Caller
from console.workspaces.models import Workspace

from . import acting, schemas
from .door import caller, door

router = Router(tags=["Workspace"])
manages = partial(
    door, router, keys="workspace", may=(permissions.WORKSPACE_MANAGE,), answers={200: schemas.WorkspaceSettingsNow}
)


@manages("GET", "/workspace")
async def get_workspace_settings(request: HttpRequest) -> schemas.WorkspaceSettingsNow:
    """Get the workspace's settings. With the limits that are in force for its own keys."""
    found = await db.read(Workspace.objects.get, pk=caller(request).workspace_id)
    return schemas.WorkspaceSettingsNow.of(found)


@manages("PUT", "/workspace")
async def change_workspace_settings(
    request: HttpRequest, body: schemas.WorkspaceSettings
) -> schemas.WorkspaceSettingsNow:
    """Change the workspace's settings. They hold for sandboxes made from now on."""
    return await db.write(_change, caller(request), body.model_dump(exclude_unset=True, exclude_none=True))


def _change(who: Caller, changes: dict[str, Any]) -> schemas.WorkspaceSettingsNow:
    return schemas.WorkspaceSettingsNow.of(settings.change_workspace(by=acting.member(who), **changes))
