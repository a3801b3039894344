"""Who is away until when, and who hears in their place. It ends by itself, at its time.

Must never change what anybody may do: a deputy hears of what waits, and approves only what they could approve before.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from . import audit, permissions, reviewers
from .errors import Invalid
from .members import by_need
from .models import Member

MOST_DAYS = 180


@transaction.atomic
def leave(*, until: datetime, deputy: Member | None, by: Member) -> None:
    """`by` is away from now on, also when they were until another time. Without a deputy what they would hear waits
    for them. Raises Invalid, which names `until` or `deputy`."""
    by_need(by, permissions.APPROVALS_REVIEW)
    if not timezone.now() < until <= timezone.now() + timedelta(days=MOST_DAYS):
        raise Invalid(f"Away until a time in the next {MOST_DAYS} days.", field="until")
    if deputy is not None and deputy not in deputies(by):
        raise Invalid("A deputy is another member here with `approvals:review`.", field="deputy")
    Member.objects.filter(pk=by.pk).update(away_until=until, deputy=deputy)
    told = {"until": until.isoformat(timespec="minutes"), "deputy": deputy.pk if deputy else ""}
    _audit(by, "member.away", **told)


@transaction.atomic
def come_back(*, by: Member) -> bool:
    """Before its time. False when they were not away."""
    there = Member.objects.filter(pk=by.pk, away_until__gt=timezone.now())
    if not there.update(away_until=None, deputy=None):
        return False
    _audit(by, "member.back")
    return True


def deputies(member: Member) -> list[Member]:
    """Whom they can name."""
    return list(reviewers.in_workspace(member.workspace_id).exclude(pk=member.pk).select_related("user"))


def hearer(member: Member, present: set[str]) -> str:
    """Id of who hears of what `member` would be told; empty: nobody, until they are back. `present`: ids of those who
    may review and are not away. A deputy who is not among them hears nothing, so it comes to `member` all the same."""
    if not member.is_away:
        return member.pk
    if member.deputy_id is None:
        return ""
    return member.deputy_id if member.deputy_id in present else member.pk


def _audit(by: Member, event: str, **told: str) -> None:
    audit.append(
        workspace_id=by.workspace_id, actor=audit.Actor("member", by.pk), event=event, subject_id=by.pk, **told
    )
