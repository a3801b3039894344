"""Whether an agent may put one more question to people: somebody can answer it, and not too much waits already.

Owns the limits on what waits. Must never decide a call.
"""

from datetime import timedelta

from django.db.models import Q, Sum
from django.utils import timezone

from console.workspaces import reviewers
from console.workspaces.models import Agent

from .errors import NoReviewer, TooMany
from .models import Action, PayloadUse

OPEN_PROPOSALS = 20
PROPOSALS_A_MINUTE = 60
PAYLOAD_BYTES = 200 << 20  # over all open actions of an agent


def check(agent: Agent, *, more_bytes: int, more: int = 1) -> None:
    """Raises NoReviewer or TooMany. `more_bytes`: of contents that would be kept for this call. `more`: how many calls
    it is; all of a plan's wait as one proposal, and each counts for the pace."""
    _check_reviewers(agent)
    if _open(agent) >= OPEN_PROPOSALS:
        raise TooMany(
            f"{agent.name} has {OPEN_PROPOSALS} proposals waiting for a person. Wait for one, or cancel one.",
            retry_after=30,
        )
    check_pace(agent, more=more)
    _check_payload(agent, more_bytes)


def _open(agent: Agent) -> int:
    pending = Action.objects.filter(agent=agent).pending()
    return pending.filter(plan=None).count() + pending.exclude(plan=None).values("plan").distinct().count()


def check_pace(agent: Agent, *, more: int = 1) -> None:
    """Of what asked, and of what was denied at once: that costs nobody's attention, and rows all the same."""
    lately = Action.objects.filter(agent=agent, created_at__gt=timezone.now() - timedelta(minutes=1))
    if lately.filter(Q(asked=True) | Q(status="denied")).count() + more > PROPOSALS_A_MINUTE:
        raise TooMany(f"{agent.name} proposed {PROPOSALS_A_MINUTE} times within a minute. Slow down.", retry_after=60)


def _check_reviewers(agent: Agent) -> None:
    able = reviewers.able(agent).count()
    if able >= agent.approvals_needed:
        return
    if able:
        raise NoReviewer(
            f"Agent {agent.name} needs {agent.approvals_needed} approvals, and only {able} of its reviewers can give "
            "one. Ask a member with `agents:manage` to name more, or to ask for fewer."
        )
    who = "none of those it names" if agent.reviewers else "no member besides its owner"
    raise NoReviewer(
        f"Nobody can approve for agent {agent.name}: {who} has `approvals:review`. "
        "Ask a member with `members:manage` to give it to somebody."
    )


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
