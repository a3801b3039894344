"""Which deliveries are due, and writing them down: rows first, so that a crash loses none and plans none twice.

Reads on a reader's thread and writes only when there is something to write. Must never read what a command says.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max, Q
from django.utils import timezone

from approvals.models import Action
from console.workspaces.models import Member

from .deciding import News, Waiting, news
from .hearing import Heard, Hearing
from .models import Delivery, Told, Webhook

KEPT_FOR = timedelta(days=30)
Wants = Mapping[str, frozenset[str]]


def due() -> list[tuple[Webhook, News]]:
    """A reviewer's own email may be one that is not kept yet: for who hears of something without having chosen to."""
    escalated = Action.objects.pending().exclude(escalated_at=None).values_list("workspace_id", flat=True)
    workspaces = {*Webhook.objects.in_force().values_list("workspace_id", flat=True), *escalated}
    found, now = [], timezone.now()
    for workspace_id, actions in (waiting(workspaces) if workspaces else {}).items():
        for hook, wants in [*_shared(workspace_id, actions), *_own(workspace_id, actions)]:
            told, last_at = _told(hook, actions), _last_at(hook)
            said = news(actions, wants=wants, told=told, last_at=last_at, now=now, faster=settings.TIMER_DIVISOR)
            if said:
                found.append((hook, said))
    return found


def _shared(workspace_id: str, actions: list[Waiting]) -> Iterator[tuple[Webhook, Wants]]:
    """A workspace's webhook hears of all."""
    for hook in Webhook.objects.in_force().shared().filter(workspace_id=workspace_id):
        yield hook, dict.fromkeys((each.id for each in actions), frozenset(hook.events))


def _own(workspace_id: str, actions: list[Waiting]) -> Iterator[tuple[Webhook, Wants]]:
    hearing, kept = Hearing(workspace_id, actions), _kept(workspace_id)
    for member in hearing.reviewers:
        if heard := hearing.by(member, partial(_chosen, kept)):
            hook = kept.get(member.pk) or Webhook.own_of(member)
            yield hook, {action_id: each.reasons for action_id, each in heard.items()}


def heard(hook: Webhook, action_ids: Collection[str]) -> dict[str, Heard]:
    """Of these, what the member of this own email hears of now."""
    assert hook.member
    actions = waiting([hook.workspace_id], pk__in=action_ids).get(hook.workspace_id, [])
    return Hearing(hook.workspace_id, actions).by(hook.member, partial(_chosen, _kept(hook.workspace_id)))


def _kept(workspace_id: str) -> dict[str, Webhook]:
    found = Webhook.objects.kept().filter(workspace_id=workspace_id, member__isnull=False)
    return {str(hook.member_id): hook for hook in found}


def _chosen(kept: Mapping[str, Webhook], member: Member) -> frozenset[str]:
    return frozenset(kept[member.pk].events) if member.pk in kept else frozenset()


@transaction.atomic
def write_down(hook: Webhook, said: News) -> Delivery | None:
    """None when another process was first, or who is told has been turned off."""
    is_new = hook._state.adding
    if not is_new and not Webhook.objects.in_force().filter(pk=hook.pk).exists():
        return None
    try:
        with transaction.atomic():
            if is_new:
                hook.save()
            delivery = Delivery.objects.create(webhook=hook, event=said.event)
            Told.objects.bulk_create(
                Told(delivery=delivery, webhook=hook, action_id=action_id, event=event)
                for action_id, events in said.told.items()
                for event in sorted(events)
            )
    except IntegrityError:
        return None
    return delivery


def forget_old() -> int:
    """Deliveries that were over long ago, with their attempts."""
    old = Delivery.objects.filter(ended_at__lt=timezone.now() - KEPT_FOR)
    waits = Q(told__action__status="pending")  # else it would be told of as new
    return old.exclude(waits).delete()[0] if old.exists() else 0


def waiting(workspaces: Iterable[str], **which: Any) -> dict[str, list[Waiting]]:
    """By workspace; of identical ones the first, as the queue has it."""
    cards = Action.objects.pending().cards().filter(workspace_id__in=list(workspaces), **which).order_by("pk")
    found: dict[str, list[Waiting]] = {}
    for workspace_id, pk, agent_id, flags, expires_at, escalated_at, group in cards.values_list(
        "workspace_id", "pk", "agent_id", "flags", "expires_at", "escalated_at", "escalated_to"
    ):
        is_escalated, to = escalated_at is not None, frozenset(group)
        each = Waiting(pk, agent_id or "", bool(flags), expires_at, is_escalated=is_escalated, escalated_to=to)
        found.setdefault(workspace_id, []).append(each)
    return found


def _told(hook: Webhook, actions: list[Waiting]) -> dict[str, frozenset[str]]:
    ids = {each.id for each in actions}
    found: dict[str, frozenset[str]] = {}
    rows = Told.objects.filter(webhook=hook, action__status="pending").values_list("action_id", "event")
    for action_id, event in rows:
        if action_id in ids:
            found[action_id] = found.get(action_id, frozenset()) | {event}
    return found


def _last_at(hook: Webhook) -> datetime | None:
    deliveries = Delivery.objects.filter(webhook=hook).exclude(event="test")
    last: datetime | None = deliveries.aggregate(last=Max("created_at"))["last"]
    return last
