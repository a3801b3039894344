"""Which deliveries are due, and writing them down: rows first, so that a crash loses none and plans none twice.

Reads on a reader's thread and writes only when there is something to write. Must never read what a command says.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max, Q
from django.utils import timezone

from approvals import votes
from approvals.models import Action
from console.workspaces import reviewers
from console.workspaces.models import Agent, Member

from .deciding import News, Waiting, news
from .models import Delivery, Told, Webhook

KEPT_FOR = timedelta(days=30)


def due() -> list[tuple[Webhook, News]]:
    hooks = list(Webhook.objects.in_force().select_related("member"))
    if not hooks:
        return []
    now, found = timezone.now(), []
    waiting = _waiting({hook.workspace_id for hook in hooks})
    for hook in hooks if waiting else ():
        actions = _for(hook, waiting.get(hook.workspace_id, []))
        told, last_at = _told(hook, actions), _last_at(hook)
        said = news(
            actions, wants=hook.events, told=told, last_at=last_at, now=now, faster=settings.TIMER_DIVISOR
        )  # fmt: skip
        if said:
            found.append((hook, said))
    return found


@transaction.atomic
def write_down(hook: Webhook, said: News) -> Delivery | None:
    """None when another process was first, or who is told has been turned off."""
    if not Webhook.objects.in_force().filter(pk=hook.pk).exists():
        return None
    try:
        with transaction.atomic():
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


def _waiting(workspaces: Iterable[str]) -> dict[str, list[Waiting]]:
    """Of identical ones the first, as the queue has it."""
    cards = Action.objects.pending().cards().filter(workspace_id__in=list(workspaces)).order_by("pk")
    found: dict[str, list[Waiting]] = {}
    for workspace_id, pk, agent_id, flags, expires_at in cards.values_list(
        "workspace_id", "pk", "agent_id", "flags", "expires_at"
    ):
        found.setdefault(workspace_id, []).append(Waiting(pk, agent_id or "", bool(flags), expires_at))
    return found


def _for(hook: Webhook, actions: list[Waiting]) -> list[Waiting]:
    """A reviewer hears of what they may approve and have not approved yet; a workspace's webhook of all."""
    if hook.member is None or not actions:
        return actions
    theirs = approvable_by(hook.member, {each.agent_id for each in actions})
    mine = votes.waiting_after(hook.member)
    return [each for each in actions if each.agent_id in theirs and each.id not in mine]


def approvable_by(member: Member, agent_ids: Iterable[str]) -> set[str]:
    agents = Agent.objects.filter(pk__in=list(agent_ids), workspace_id=member.workspace_id)
    return {agent.pk for agent in agents if reviewers.may_approve(member, agent)}


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
