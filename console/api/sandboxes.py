"""Sandboxes: create, list, get, delete."""

from django.http import HttpRequest
from ninja import Router, Status

from console.workspaces import db, permissions
from console.workspaces.keys import Caller
from sandboxes import acts, lifecycle
from sandboxes.models import Sandbox

from . import schemas
from .door import SEES, caller, door

router = Router(tags=["Sandboxes"])
RUNS = (permissions.SANDBOXES_RUN,)


@door(
    router, "POST", "/sandboxes", may=RUNS, answers={201: schemas.Sandbox},
    fails=(
        "sandbox_not_enabled", "halted", "not_allowed_by_settings", "too_many", "no_runtime", "no_capacity",
        "create_failed", "sandbox_gone", "channel_lost", "sandbox_unresponsive",
    ),
)  # fmt: skip
async def create_sandbox(request: HttpRequest, body: schemas.NewSandbox) -> Status[schemas.Sandbox]:
    """Create a sandbox. The answer comes when it is running."""
    made = await acts.create_sandbox(caller(request), acts.NewSandbox(**body.model_dump()))
    return Status(201, schemas.Sandbox.of(made))


@door(router, "GET", "/sandboxes", may=SEES, answers={200: list[schemas.Sandbox]})
async def list_sandboxes(request: HttpRequest) -> list[schemas.Sandbox]:
    """List the live sandboxes that this key may see. Newest first."""
    return [schemas.Sandbox.of(row) for row in await db.read(_live, caller(request))]


def _live(who: Caller) -> list[Sandbox]:
    return list(Sandbox.objects.visible_to(who).live().order_by("-pk"))


@door(router, "GET", "/sandboxes/{sandbox_id}", may=SEES, answers={200: schemas.Sandbox})
async def get_sandbox(request: HttpRequest, sandbox_id: str) -> schemas.Sandbox:
    """Get a sandbox. One that ended stays readable, with its `ended_reason`; a deleted one is 404."""
    return schemas.Sandbox.of(await db.read(lifecycle.find, caller(request), sandbox_id))


@door(
    router, "DELETE", "/sandboxes/{sandbox_id}", may=RUNS, answers={200: schemas.Done},
    fails=("sandbox_not_enabled", "halted", "no_runtime"),
)  # fmt: skip
async def delete_sandbox(request: HttpRequest, sandbox_id: str) -> schemas.Done:
    """Delete a sandbox with its files. What waits for approval in it is superseded."""
    await acts.delete_sandbox(caller(request), sandbox_id)
    return schemas.Done()
