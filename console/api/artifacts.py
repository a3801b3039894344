"""Artifacts: keep a copy of a file, list what was kept, get it."""

import asyncio

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router, Status

from console.workspaces import db, permissions
from console.workspaces.keys import Caller
from sandboxes import artifacts, file_acts
from sandboxes.models import Artifact

from . import downloads, gated, listing, schemas
from .door import SEES, caller, door
from .files import READ_ERRORS

router = Router(tags=["Artifacts"])


@door(
    router, "POST", "/sandboxes/{sandbox_id}/artifacts", may=(permissions.SANDBOXES_RUN,), gate="recorded",
    answers={201: schemas.Artifact}, fails=(*READ_ERRORS, *gated.REFUSALS, "no_capacity"),
)  # fmt: skip
async def publish_artifact(
    request: HttpRequest, sandbox_id: str, body: schemas.NewArtifact
) -> Status[schemas.Artifact]:
    """Keep a copy of a file, up to 100 MB. It outlives the sandbox, for 30 days. What is copied is the file as it is
    now; whoever sees its agent's actions can get it."""
    who = caller(request)
    await file_acts.check_room(who, sandbox_id)
    arguments = {"path": body.path, "title": body.title}
    ended = await gated.call(request, sandbox_id, "publish", arguments, reason="")
    found = await db.read(artifacts.find, who, (ended.action.result or {})["artifact_id"])
    return Status(201, schemas.Artifact.of(found))


@door(router, "GET", "/artifacts", may=SEES, answers={200: schemas.Artifacts})
async def list_artifacts(
    request: HttpRequest, sandbox: str | None = None, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.Artifacts:
    """List the artifacts that this key may see. Newest first."""
    found, more = await db.read(_list, caller(request), sandbox, limit, cursor)
    return schemas.Artifacts(items=[schemas.Artifact.of(row) for row in found], next_cursor=more)


def _list(who: Caller, sandbox: str | None, limit: int, cursor: str | None) -> tuple[list[Artifact], str | None]:
    found = Artifact.objects.visible_to(who)
    return listing.page(found.filter(sandbox_id=sandbox) if sandbox else found, limit, cursor)


@door(router, "GET", "/artifacts/{artifact_id}", may=SEES, answers={200: schemas.Artifact})
async def get_artifact(request: HttpRequest, artifact_id: str) -> schemas.Artifact:
    """Get an artifact. One that has expired is 404."""
    return schemas.Artifact.of(await db.read(artifacts.find, caller(request), artifact_id))


@door(
    router, "GET", "/artifacts/{artifact_id}/content", may=SEES, answers={200: None, 206: None},
    streams=downloads.BYTES, fails=("range_not_satisfiable",),
)  # fmt: skip
@door(router, "HEAD", "/artifacts/{artifact_id}/content", may=SEES, answers={200: None, 206: None})
async def get_artifact_content(
    request: HttpRequest, artifact_id: str, wanted: downloads.RangeHeader = None
) -> HttpResponseBase:
    """Get an artifact's bytes, or the part that `Range` asks for. `ETag` is their SHA-256. They are never served as a
    page: `application/octet-stream`, `attachment`."""
    found = await db.read(artifacts.find, caller(request), artifact_id)
    etag = f'"{found.sha256}"'
    part = downloads.part_of(request, etag=etag)
    span = part.within(found.size) if part else (0, found.size)
    if span is None:
        return downloads.nothing_there(found.path, found.size)
    file = await asyncio.to_thread(artifacts.opened, found)
    if request.method != "HEAD":
        await db.write(artifacts.record_download, found, caller(request).actor)
    offset, length = span
    content = artifacts.pieces(file, offset=offset, length=0 if request.method == "HEAD" else length)
    if part:
        response = downloads.partial(found.path, found.size, span, content)
    else:
        response = downloads.whole(found.path, found.size, content)
    response.headers["ETag"] = etag
    return response
