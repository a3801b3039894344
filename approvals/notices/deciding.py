"""When somebody is told that something waits: pure, plain data in, the most urgent reason out.

At once for what is flagged or soon over; else at most one in five minutes, with counts. "At once" has a
floor of its own, so that an agent that proposes flagged calls by the hundred fills nobody's phone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

URGENT = ("expiring", "escalated", "flagged")  # the most urgent one first
NEARLY_OVER = timedelta(hours=1)
QUIET, URGENT_QUIET = timedelta(minutes=5), timedelta(seconds=30)


@dataclass(frozen=True)
class Waiting:
    """What is known of a pending action here."""

    id: str
    agent_id: str
    is_flagged: bool
    expires_at: datetime | None
    is_escalated: bool = False
    escalated_to: frozenset[str] = frozenset()


def reasons(action: Waiting, *, now: datetime) -> frozenset[str]:
    is_late = action.expires_at is not None and action.expires_at - now <= NEARLY_OVER
    holds = {"expiring": is_late, "escalated": action.is_escalated, "flagged": action.is_flagged, "waiting": True}
    return frozenset(reason for reason, so in holds.items() if so)


@dataclass(frozen=True)
class News:
    """What one webhook is to be told now. `told`: of each action, under which reasons."""

    event: str
    told: dict[str, frozenset[str]]


def news(
    actions: Iterable[Waiting],
    *,
    wants: Mapping[str, frozenset[str]],
    told: dict[str, frozenset[str]],
    last_at: datetime | None,
    now: datetime,
    faster: float = 1,
) -> News | None:
    """None when there is nothing new, or not yet. `wants`: of each action, under which reasons it is heard of; `told`:
    under which it was before; `last_at`: the last that was told. `faster` divides the quiet times."""
    nothing, found = frozenset[str](), {}
    for action in actions:
        if fresh := (reasons(action, now=now) & wants.get(action.id, nothing)) - told.get(action.id, nothing):
            found[action.id] = fresh
    if not found:
        return None
    every = frozenset[str]().union(*found.values())
    event = next((reason for reason in URGENT if reason in every), "waiting")
    quiet = (QUIET if event == "waiting" else URGENT_QUIET) / faster
    return News(event, found) if last_at is None or now - last_at >= quiet else None
