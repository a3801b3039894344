"""One row per reviewer and digest: how many have approved what would run now, and which decision counted.

Approvals from before the last edit, and of who could not give one now, do not count. Must never move an action.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from console.workspaces import audit, changes, ledger, permissions
from console.workspaces.models import Member

from . import selves
from .errors import AlreadyDecided
from .models import Action, Decision, Edit
from .notices.models import Told


def given(action: Action) -> list[Decision]:
    """The approvals of what the action is now, by those who could give them now, first one first."""
    return [vote for vote in _since_last_edit(action) if not _why_void(action, vote.by)]


def why_too_few(action: Action) -> str:
    """Why what was approved would not be approved as things are now; empty when it would."""
    votes = _since_last_edit(action)
    void = [(vote.by, why) for vote in votes if (why := _why_void(action, vote.by))]
    if len(votes) - len(void) >= action.approvals_needed:
        return ""
    if void:
        return f"{void[0][0]} approved this and {void[0][1]}."
    return f"It needs {action.approvals_needed} approvals and has {len(votes)}."


def _since_last_edit(action: Action) -> list[Decision]:
    found = _not_reset(action.decisions.filter(digest=action.digest))
    return list(found.select_related("by__user").order_by("at"))


def _not_reset(decisions: QuerySet[Decision]) -> QuerySet[Decision]:
    """The approvals among them. An edit resets them all, one that brings an earlier text back too."""
    later = Edit.objects.filter(action=OuterRef("action"), at__gte=OuterRef("at"))
    return decisions.filter(~Exists(later), verdict="approve")


def _why_void(action: Action, by: Member) -> str:
    if not by.may(permissions.APPROVALS_REVIEW):
        return "may no longer review"
    return "may not approve it any more: who owns, edits or reviews has changed" if selves.why_not(action, by) else ""


def drop_for(items: Sequence[Action], *, by: Member) -> None:
    """Of items that go on without others of their plan: who approved them approved all of it. In a transaction that
    holds the workspace. The chain keeps both."""
    for item in items:
        if dropped := ask_again(item):
            item.decisions.filter(verdict="approve").delete()
            audit.append(
                workspace_id=item.workspace_id, actor=audit.Actor("member", by.pk), event="action.approvals_reset",
                subject_id=item.pk, digest=item.digest, tool=item.tool, plan=item.plan_id, approvals_reset=dropped,
            )  # fmt: skip


def waiting_after(members: Iterable[Member], action_ids: Collection[str]) -> dict[str, set[str]]:
    """By member, ids of those of these waiting actions that they have approved and others have not yet. `members`: who
    may review now. Asks the same few questions however many there are."""
    own = Decision.objects.filter(action__in=action_ids, by__in=members, digest=F("action__digest"))
    edited = set(Edit.objects.filter(action__in=action_ids).values_list("action_id", "by_id"))
    found: dict[str, set[str]] = {}
    for vote in _not_reset(own).select_related("by", "action__agent"):
        if not selves.why_not(vote.action, vote.by, has_edited=(vote.action_id, vote.by_id) in edited):
            found.setdefault(vote.by_id, set()).add(vote.action_id)
    return found


def ask_again(action: Action) -> list[str]:
    """Names of those whose approvals are about to count no more. They are told anew that it waits."""
    reset = given(action)
    Told.objects.filter(action=action, webhook__member__in=[vote.by_id for vote in reset]).delete()
    return [str(vote.by) for vote in reset]


@transaction.atomic
def drop_of(member: Member) -> int:
    """What they approved and others have not yet: it would count again, were they brought back. The chain keeps it."""
    return Decision.objects.filter(by=member, verdict="approve", action__status="pending").delete()[0]


def is_one_of_more(action: Action, *, by: Member, digest: str) -> bool:
    """Whether an approval by `by` leaves others to be asked. Raises AlreadyDecided when theirs is there."""
    if action.approvals_needed <= 1:
        return False
    votes = given(action)
    if mine := next((vote for vote in votes if vote.by_id == by.pk), None):
        raise AlreadyDecided(f"You approved this already, at {mine.at:%H:%M:%S} UTC. It needs another reviewer.")
    waits = Q(pk=action.pk, status="pending", digest=digest, expires_at__gt=Now())
    return len(votes) + 1 < action.approvals_needed and Action.objects.filter(waits).exists()


def record(action: Action, verdict: str, *, by: Member, told: dict[str, Any], **kept: Any) -> None:
    """An approval that is not the last one: the action goes on waiting, and those who look at it hear of it."""
    keep(action, verdict, by=by, **kept)
    with ledger.opened(action.workspace_id) as opened:
        changes.record(opened, subject="action", subject_id=action.pk, agent_id=action.agent_id or "", status="pending")
        audit.link(
            opened, actor=audit.Actor("member", by.pk), event="action.approval", subject_id=action.pk,
            digest=action.digest, tool=action.tool, given=len(given(action)), needed=action.approvals_needed, **told,
        )  # fmt: skip


def keep(action: Action, verdict: str, *, by: Member, digest: str, **kept: Any) -> None:
    """Who approved and then denies has denied; the chain has both."""
    Decision.objects.update_or_create(
        action=action, by=by, digest=digest, defaults={"verdict": verdict, "at": timezone.now(), **kept}
    )


def deciding(action: Action) -> Decision | None:
    """The one that counted: a denial, or the approval that was the last one needed. None while it waits."""
    if action.status == "pending":
        return None
    found = action.decisions.select_related("by__user").filter(digest=action.digest).order_by("at")
    return found.filter(verdict="deny").last() or (found.last() if action.start_by else None)
