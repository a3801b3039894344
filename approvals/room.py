"""Whether an agent may put one more question to people: somebody can answer it, and not too much waits already.

Owns the limits on what waits, and who may review for an agent. Must never decide a call.
"""

from datetime import timedelta
from typing import Any

from django.db.models import Q, Sum
from django.utils import timezone

from console.workspaces import permissions
from console.workspaces.models import Agent, Member

from .errors import NoReviewer, TooMany
from .models import Action, PayloadUse

OPEN_PROPOSALS = 20
PROPOSALS_A_MINUTE = 60
PAYLOAD_BYTES = 200 << 20  # over all open actions of an agent


def check(agent: Agent, *, more_bytes: int) -> None:
    """Raises NoReviewer or TooMany. `more_bytes`: of contents that would be kept for this call."""
    if not reviewers(agent).exists():
        raise NoReviewer(
            f"Nobody can approve for agent {agent.name}: no member besides its owner has `approvals:review`. "
            "Ask a member with `members:manage` to give it to somebody."
        )
    own = Action.objects.filter(agent=agent)
    if own.pending().count() >= OPEN_PROPOSALS:
        raise TooMany(
            f"{agent.name} has {OPEN_PROPOSALS} proposals waiting for a person. Wait for one, or cancel one.",
            retry_after=30,
        )
    check_pace(agent)
    _check_payload(agent, more_bytes)


def check_pace(agent: Agent) -> None:
    """Of what asked, and of what was denied at once: that costs nobody's attention, and rows all the same."""
    lately = Action.objects.filter(agent=agent, created_at__gt=timezone.now() - timedelta(minutes=1))
    if lately.filter(Q(asked=True) | Q(status="denied")).count() >= PROPOSALS_A_MINUTE:
        raise TooMany(f"{agent.name} proposed {PROPOSALS_A_MINUTE} times within a minute. Slow down.", retry_after=60)


def _check_payload(agent: Agent, more_bytes: int) -> None:
    if not more_bytes:
        return
    open_ = PayloadUse.objects.filter(action__in=Action.objects.filter(agent=agent).open())
    held_bytes: int = open_.aggregate(total=Sum("size"))["total"] or 0
    if held_bytes + more_bytes > PAYLOAD_BYTES:
        raise TooMany(
            f"{agent.name} has contents of {held_bytes} bytes in calls that have not ended; with the {more_bytes} of "
            f"this call it would be more than {PAYLOAD_BYTES}. Wait for one to be decided, or cancel one.",
            retry_after=30,
        )


def reviewers(agent: Agent) -> Any:
    """The members who may decide for `agent` now: with `approvals:review`, and not its owner unless it allows that."""
    able = Member.objects.current().filter(workspace=agent.workspace).with_permission(permissions.APPROVALS_REVIEW)
    return able if agent.self_approval or agent.owner_id is None else able.exclude(pk=agent.owner_id)
