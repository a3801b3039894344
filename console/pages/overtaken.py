"""Whether a waiting write's file was written by another call since, as far as the server knows: without a look into the
sandbox. What a command changed is seen at the start, which refuses it."""

import logging
from collections.abc import Iterator

from approvals import draw
from approvals.models import Action

from .flags import Flag

_log = logging.getLogger(__name__)


def flags(action: Action) -> Iterator[Flag]:
    """Never raises."""
    try:
        if action.status == "pending" and action.tool in ("write", "edit") and (by := _written_since(action)):
            path = draw.one_line(str(action.arguments["path"]))
            why = f"{by.pk} wrote {path} after this was asked. Approved, this would be refused as stale."
            yield Flag("wait", "history", "File changed since", why)
    except Exception:
        _log.exception("Looking for what overtook action %s failed", action.pk)


def _written_since(action: Action) -> Action | None:
    path = action.arguments["path"]
    later = Action.objects.filter(
        sandbox_id=action.sandbox_id, status="succeeded", tool__in=("write", "edit"), ended_at__gt=action.created_at
    )
    last = later.filter(arguments__path=path).order_by("-ended_at").first()
    there = (last.result or {}).get("sha256") if last else None
    return last if there and there != action.bases.get(path) else None
