"""What is counted of decisions, for `/metrics`: how long people took, what was decided by whom, what expired.

One registry and a verb for each thing, told after its commit. Labels come from the fixed lists here: must never carry
the name or id of anybody or anything.
"""

from functools import partial

from django.db import transaction
from prometheus_client import CollectorRegistry, Counter, Histogram

VERDICTS = ("approved", "denied", "expired", "cancelled", "superseded")
DECIDERS = ("rule", "grant", "reviewer", "agent", "clock", "system")
_SECONDS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600)

REGISTRY = CollectorRegistry()
_decisions = Counter(
    "sandgate_decisions", "Calls that were decided, by what became of them and by what decided.",
    ["verdict", "decided_by"], registry=REGISTRY,
)  # fmt: skip
_decision_s = Histogram(
    "sandgate_decision_seconds", "From a proposal to a reviewer's decision.", ["verdict"], buckets=_SECONDS,
    registry=REGISTRY,
)  # fmt: skip
for _verdict in ("approved", "denied"):  # a series is there, at nought, before the first of its kind
    _decision_s.labels(_verdict)
    for _by in ("rule", "grant", "reviewer"):
        _decisions.labels(_verdict, _by)
_decisions.labels("expired", "clock")


def decided(verdict: str, *, decided_by: str, seconds: float | None = None) -> None:
    """After this transaction's commit. `seconds` since it was proposed, where a person decided."""
    transaction.on_commit(partial(_count, verdict, decided_by, seconds))


def _count(verdict: str, decided_by: str, seconds: float | None) -> None:
    if verdict not in VERDICTS or decided_by not in DECIDERS:
        return
    _decisions.labels(verdict, decided_by).inc()
    if seconds is not None and decided_by == "reviewer" and verdict in ("approved", "denied"):
        _decision_s.labels(verdict).observe(max(0.0, seconds))
