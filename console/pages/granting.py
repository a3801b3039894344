"""Grants on a card and in the queue: what would be granted stands there whole, or there is no offer.

Acts are in `approvals.rules.grants`. Must never offer what this reviewer could not approve.
"""

import logging
import shlex
from typing import Any

from approvals.models import Action, Grant, View
from approvals.rules import grants

VERDICT = "grant"
MINUTES = (5, 15, 30, 60)
_log = logging.getLogger(__name__)


def offered(action: Action) -> list[str]:
    """Each command or the path, as text; nothing when it can only be approved once. Never raises."""
    try:
        return [f"{action.tool}: {shlex.join(words)}" for words in grants.offer(action) or ()]
    except Exception:
        _log.exception("What could be granted of %s is not known; nothing is offered", action.pk)
        return []


def give(request: Any, action: Action, *, digest: str, view: View) -> Grant:
    """Approves, and grants for as long as was chosen."""
    sent = request.POST.get("minutes", "")
    minutes = int(sent) if sent.isdecimal() and len(sent) < 4 else 0
    by = request.here.member
    return grants.approve_and_grant(action, by=by, digest=digest, minutes=minutes, via="page", view=view)


def in_force(request: Any) -> list[Grant]:
    own = Grant.objects.in_force().filter(workspace=request.here.workspace)
    return list(own.select_related("agent", "given_by__user").order_by("expires_at"))
