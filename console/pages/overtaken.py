"""Whether the file that a waiting call writes or runs was written by another call since, as far as the server knows:
without a look into the sandbox. What a command changed is seen at the start, which refuses it."""

import logging
from collections.abc import Iterator

from approvals import draw
from approvals.models import Action

from .flags import Flag

_log = logging.getLogger(__name__)


def flags(action: Action) -> Iterator[Flag]:
    """Never raises."""
    try:
        path, base = _made_for(action)
        if action.status == "pending" and path and (by := _written_since(action, path, base)):
            why = f"{by.pk} wrote {draw.one_line(path)} after this was asked. Approved, this would be refused as stale."
            yield Flag("wait", "history", "File changed since", why)
    except Exception:
        _log.exception("Looking for what overtook action %s failed", action.pk)


def _made_for(action: Action) -> tuple[str, str | None]:
    """The file that it writes or runs, "" for none, and the hash of what a person sees there."""
    if action.script:
        return action.script["path"], action.script["sha256"]
    path = str(action.arguments["path"]) if action.tool in ("write", "edit") else ""
    return path, action.bases.get(path)


def _written_since(action: Action, path: str, base: str | None) -> Action | None:
    later = Action.objects.filter(
        sandbox_id=action.sandbox_id, status="succeeded", tool__in=("write", "edit"), ended_at__gt=action.created_at
    )
    last = later.filter(arguments__path=path).order_by("-ended_at").first()
    there = (last.result or {}).get("sha256") if last else None
    return last if there and there != base else None
