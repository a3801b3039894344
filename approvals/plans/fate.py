"""What a plan is doing and what became of it, read from its items. Pure: rows in, words out."""

from collections.abc import Iterable, Sequence

from approvals import told
from approvals.digest import of_digests
from approvals.models import Action

from . import order


def digest(items: Sequence[Action]) -> str:
    """Over what a reviewer can still approve, in its order; once nothing waits, over all of it."""
    waiting = [item for item in items if item.status == "pending"]
    return of_digests("sandgate-plan-v1", [item.digest for item in waiting or items])


def left_out(item: Action) -> bool:
    return item.status == "denied" and item.decided_by == "reviewer"


def status(items: Sequence[Action]) -> str:
    """One of an action's. `failed` also when a command of it exited with anything but 0; `denied` when none was
    approved."""
    states = {item.status for item in items}
    if "pending" in states:
        return "pending"
    kept = [item for item in items if not left_out(item)]
    if not kept:
        return "denied"
    if any(item.is_open for item in kept):
        return "running" if any(item.started_at for item in kept) else "approved"
    return _ended(next((item for item in kept if not order.went_well(item.status, item.result)), None))


def _ended(stopper: Action | None) -> str:
    if stopper is None:
        return "succeeded"
    return "failed" if stopper.status == "succeeded" else stopper.status


def is_open(items: Iterable[Action]) -> bool:
    return any(item.is_open for item in items)


def text(items: Sequence[Action]) -> str:
    """What a model reads of it: a line for each item, in order."""
    return "\n".join(f"{item.plan_place}. {item.tool} {item.pk}: {_line(item)}" for item in items)


def _line(item: Action) -> str:
    if item.is_open:
        return {"pending": "waits for a person", "approved": "approved, waits for its turn"}.get(item.status, "runs")
    if item.status != "succeeded":
        return told.ended(item)
    result = item.result or {}
    if "exit_code" in result:
        return "ran and took too long" if result.get("timed_out") else f"ran, exit code {result['exit_code']}"
    return "began in the background" if result.get("background") else "done"
