"""Numbers about deciding, of one workspace and a number of days: how much is asked, how fast it is decided, by whom.

Owns what is counted and how. Plain data out, computed from the table each time. Reads never ask and are not counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, Q
from django.db.models.functions import TruncDate
from django.utils import timezone

from . import states
from .models import Action, Decision

HASTY_S = 2
KINDS = ("rule", "approved", "denied", "expired")
_BY_RULE = Q(asked=False, decided_by__in=("rule", "grant"))


@dataclass(frozen=True)
class Times:
    """Of some decisions, in seconds. `p50_s`, `p95_s`: None without any."""

    count: int
    p50_s: float | None
    p95_s: float | None
    hasty: int

    @classmethod
    def of(cls, seconds: Iterable[float]) -> "Times":
        found = sorted(seconds)
        return cls(len(found), rank(found, 50), rank(found, 95), sum(each < HASTY_S for each in found))


@dataclass(frozen=True)
class Numbers:
    """`days`: for each day the count of each of KINDS, in that order. `by_*`: id → times, the most decisions first."""

    asked: int
    calls: int
    denied: int
    expired: int
    by_rule: int
    times: Times
    by_reviewer: dict[str, Times]
    by_agent: dict[str, Times]
    days: dict[date, tuple[int, ...]]
    since: datetime


def rank(found: Sequence[float], percent: int) -> float | None:
    """The smallest value that `percent` of all are not above; `found` is sorted."""
    return found[max(0, -(-len(found) * percent // 100) - 1)] if found else None


def numbers(workspace_id: str, *, days: int, now: datetime | None = None) -> Numbers:
    """Of what was proposed in the last `days` days, today included."""
    now = now or timezone.now()
    since = (now - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    own = Action.objects.filter(workspace_id=workspace_id, created_at__gte=since, created_at__lte=now)
    own = own.exclude(agent=None).exclude(tool__in=states.UNAUDITED_TOOLS)
    took = _took(own)
    kinds = {"calls": Q(), "asked": Q(asked=True), "by_rule": _BY_RULE, "denied": _kind("denied")}
    kinds["expired"] = _kind("expired")
    counts = own.aggregate(**{f"count_{name}": Count("pk", kind) for name, kind in kinds.items()})
    return Numbers(
        **{name: counts[f"count_{name}"] for name in kinds},
        times=Times.of(seconds for *_, seconds in took),
        by_reviewer=_grouped((by, seconds) for by, _, seconds in took),
        by_agent=_grouped((agent, seconds) for _, agent, seconds in took),
        days=_days(own, since.date(), days),
        since=since,
    )


def before(found: Numbers, workspace_id: str) -> Numbers:
    """Of as many days right before those."""
    return numbers(workspace_id, days=len(found.days), now=found.since - timedelta(microseconds=1))


def _kind(name: str) -> Q:
    if name == "rule":
        return _BY_RULE
    by_person = Q(asked=True, decided_by="reviewer")
    return {
        "approved": Q(asked=True, decisions__verdict="approve") & ~Q(status="denied"),
        "denied": by_person & Q(status="denied"),
        "expired": Q(asked=True, status="expired"),
    }[name]


def _took(own: "Iterable[Action]") -> list[tuple[str, str, float]]:
    """Of each decision of a person: who, about which agent, how long after the proposal."""
    rows = Decision.objects.filter(action__in=own).values_list("by_id", "action__agent_id", "action__created_at", "at")
    return [(by, agent or "", max(0.0, (at - created).total_seconds())) for by, agent, created, at in rows]


def _grouped(pairs: Iterable[tuple[str, float]]) -> dict[str, Times]:
    found: dict[str, list[float]] = {}
    for name, seconds in pairs:
        found.setdefault(name, []).append(seconds)
    return {name: Times.of(found[name]) for name in sorted(found, key=lambda each: -len(found[each]))}


def _days(own: "Iterable[Action]", first: date, days: int) -> dict[date, tuple[int, ...]]:
    counts = {kind: Count("pk", _kind(kind), distinct=True) for kind in KINDS}
    rows = own.annotate(day=TruncDate("created_at")).order_by().values("day").annotate(**counts)  # type: ignore[attr-defined]
    found = {row["day"]: tuple(row[kind] for kind in KINDS) for row in rows}
    return {day: found.get(day, (0,) * len(KINDS)) for day in (first + timedelta(days=n) for n in range(days))}
