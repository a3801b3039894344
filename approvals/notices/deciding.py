"""When somebody is told that something waits: pure, plain data in, the most urgent reason out.

At once for what is flagged or soon over; else at most one in five minutes, with counts. "At once" has a
floor of its own, so that an agent that proposes flagged calls by the hundred fills nobody's phone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

URGENT = ("expiring", "flagged")  # the most urgent one first
NEARLY_OVER = timedelta(hours=1)
QUIET, URGENT_QUIET = timedelta(minutes=5), timedelta(seconds=30)


@dataclass(frozen=True)
class Waiting:
    """What is known of a pending action here."""

    id: str
    agent_id: str
    is_flagged: bool
    expires_at: datetime | None


def reasons(action: Waiting, *, now: datetime) -> frozenset[str]:
    is_late = action.expires_at is not None and action.expires_at - now <= NEARLY_OVER
    holds = {"expiring": is_late, "flagged": action.is_flagged, "waiting": True}
    return frozenset(reason for reason, so in holds.items() if so)


@dataclass(frozen=True)
class News:
    """What one webhook is to be told now. `told`: of each action, under which reasons."""

    event: str
    told: dict[str, frozenset[str]]


def news(
    actions: Iterable[Waiting],
    *,
    wants: Iterable[str],
    told: dict[str, frozenset[str]],
    last_at: datetime | None,
    now: datetime,
    faster: float = 1,
) -> News | None:
    """None when there is nothing new, or not yet. `told` before, of each action; `last_at`: the last that was told.
    `faster` divides the quiet times."""
    wanted, found = frozenset(wants), {}
    for action in actions:
        if fresh := (reasons(action, now=now) & wanted) - told.get(action.id, frozenset()):
            found[action.id] = fresh
    if not found:
        return None
    every = frozenset[str]().union(*found.values())
    event = next((reason for reason in URGENT if reason in every), "waiting")
    quiet = (QUIET if event == "waiting" else URGENT_QUIET) / faster
    return News(event, found) if last_at is None or now - last_at >= quiet else None
