"""Whose turn it is: an item of a plan starts only when each one before it was left out or is done.

Called by `states.advance` in the transaction that ends an item, so that no later one can start between the end of one
and what follows from it. Must never start anything, and never decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from approvals import states
from console.workspaces import audit, bus

from .models import Plan

if TYPE_CHECKING:
    from approvals.models import Action

START_WITHIN = timedelta(minutes=10)  # from when it is its turn
WHOLE_WITHIN = timedelta(hours=24)  # from the approval to the start of the last one
PASSED = ("succeeded", "denied")
"""What does not hold up those behind it: it is done, or a reviewer left it out. A failure holds up nothing either: in
the transaction of its end those behind it are ended too."""
STOPPED = "plan_stopped"
_WITH = "ended_with"  # in the audit row of what ended because of another item
_HOW = {
    "failed": "failed",
    "unknown": "began, and how it ended is not known",
    "superseded": "was no longer what was approved",
    "expired": "could not start in time",
    "cancelled": "was cancelled",
    "denied": "was denied by a rule",
}


def in_turn() -> Q:
    """Of any action: nothing before it in its plan is still to come. Those without a plan are always in turn."""
    from approvals.models import Action

    before = Action.objects.filter(plan=OuterRef("plan"), plan_place__lt=OuterRef("plan_place"))
    return Q(plan=None) | Q(~Exists(before.exclude(status__in=PASSED)))


def went_well(status: str, result: Mapping[str, Any] | None) -> bool:
    """For a plan, a command that exits with anything but 0 has failed."""
    return status == "succeeded" and (result or {}).get("exit_code", 0) == 0


def follow(
    item: Action, *, old: str, new: str, actor: audit.Actor, fields: Mapping[str, Any], told: Mapping[str, Any]
) -> None:
    """What the end of `item`, just written, means for the others of its plan."""
    is_halt = (fields.get("error") or {}).get("code") == "halted" and old != "running"
    if _WITH in told or fields.get("decided_by") == "reviewer" or is_halt:
        return  # whoever does that ends the others too
    if old == "pending":
        _end_alike(item, new, actor=actor, fields=fields)
    elif went_well(new, fields.get("result")):
        _let_next(item)
    else:
        _stop(item, new, fields)


def _end_alike(item: Action, new: str, *, actor: audit.Actor, fields: Mapping[str, Any]) -> None:
    """One card has one end: what expires, is taken back or out of date is so for all that wait."""
    for other in _others(item).filter(status="pending").order_by("plan_place"):
        states.advance(other, old="pending", new=new, actor=actor, told={_WITH: item.pk}, **fields)


def _let_next(item: Action) -> None:
    following = _others(item).filter(status="approved", plan_place__gt=item.plan_place).order_by("plan_place").first()
    if following is not None:
        _others(item).filter(pk=following.pk).update(start_by=timezone.now() + START_WITHIN)
        transaction.on_commit(lambda: bus.announce("approved"), robust=True)


def _stop(item: Action, new: str, fields: Mapping[str, Any]) -> None:
    """What comes after it is cancelled. The first item that stops a plan is the one that is named."""
    Plan.objects.filter(pk=item.plan_id, stopped_by="").update(stopped_by=item.pk)
    why = f"{_said(item, new, fields)} This was not run."
    error = {"code": STOPPED, "detail": why, "item": item.plan_place, "action_id": item.pk}
    for other in _others(item).filter(status="approved", plan_place__gt=item.plan_place).order_by("plan_place"):
        states.advance(
            other, old="approved", new="cancelled", actor=audit.SYSTEM, told={_WITH: item.pk}, decided_by="system",
            end_reason=why, error=error,
        )  # fmt: skip


def _said(item: Action, new: str, fields: Mapping[str, Any]) -> str:
    """`Item 2 of its plan, run act_…, ended with exit code 3.`"""
    result = fields.get("result") or {}
    how = f"ended with exit code {result['exit_code']}" if new == "succeeded" else _HOW[new]
    if result.get("timed_out"):
        how = "took too long and was killed"
    return f"Item {item.plan_place} of its plan, {item.tool} {item.pk}, {how}."


def _others(item: Action) -> Any:
    return type(item).objects.filter(plan_id=item.plan_id).exclude(pk=item.pk)
