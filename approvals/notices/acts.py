"""Who is told: webhooks are made, turned on and off, tried and ended by who manages the workspace; a reviewer's own
email by that reviewer. Each is on record, and none with its address: chats keep their passwords in it.
"""

from collections.abc import Iterable
from functools import partial

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone

from console.workspaces import audit, bus, permissions, webhook_addresses
from console.workspaces.errors import Conflict, Invalid
from console.workspaces.members import by_need
from console.workspaces.models import Member

from .loop import TOPIC
from .models import EVENTS, KINDS, OWN_EVENTS, Delivery, Webhook

MOST_WEBHOOKS = 20


@transaction.atomic
def make(*, kind: str, target: str, by: Member, events: Iterable[str] = EVENTS) -> Webhook:
    """Raises Invalid, which names the field. Whether its host is public is looked at when it is sent to."""
    by_need(by, permissions.WORKSPACE_MANAGE)
    if Webhook.objects.kept().shared().filter(workspace=by.workspace).count() >= MOST_WEBHOOKS:
        raise Conflict(f"{by.workspace} has {MOST_WEBHOOKS} webhooks. End one first.")
    if kind not in KINDS:
        raise Invalid(f"A webhook is one of {', '.join(KINDS)}, not {str(kind)[:20]!r}.", field="kind")
    hook = Webhook.objects.create(
        workspace=by.workspace, kind=kind, target=_target(kind, target.strip()), events=_events(events), owner=by
    )
    _audit(hook, by, "webhook.made", events=hook.events)
    return hook


@transaction.atomic
def turn(hook: Webhook, *, on: bool, by: Member) -> bool:
    """False when it was so. Who turns one on whose owner has left answers for it from then on."""
    by_need(by, permissions.WORKSPACE_MANAGE)
    if hook.enabled == on and (not on or hook.owner.is_current):
        return False
    owner = hook.owner if hook.owner.is_current else by
    if not Webhook.objects.kept().filter(pk=hook.pk).update(enabled=on, owner=owner):
        raise Conflict("This webhook was ended meanwhile.")
    _audit(hook, by, "webhook.enabled" if on else "webhook.disabled")
    return True


@transaction.atomic
def end(hook: Webhook, *, by: Member) -> bool:
    """False when it had ended. What waits to be delivered to it is not."""
    by_need(by, permissions.WORKSPACE_MANAGE)
    if not Webhook.objects.kept().filter(pk=hook.pk).update(ended_at=timezone.now()):
        return False
    _audit(hook, by, "webhook.ended")
    return True


@transaction.atomic
def test(hook: Webhook, *, by: Member) -> Delivery:
    """Written down like any other, so that what it shows is what will happen."""
    by_need(by, permissions.WORKSPACE_MANAGE)
    if not Webhook.objects.in_force().filter(pk=hook.pk).exists():
        raise Conflict("This webhook is off. Turn it on first.")
    if Delivery.objects.filter(webhook=hook, event="test", status="waiting").exists():
        raise Conflict("A test of this webhook is under way already. The log says how it went.")
    delivery = Delivery.objects.create(webhook=hook, event="test")
    _audit(hook, by, "webhook.tested", delivery=delivery.pk)
    transaction.on_commit(partial(bus.announce, TOPIC), robust=True)
    return delivery


@transaction.atomic
def set_own_email(*, on: bool, by: Member) -> bool:
    """Whether `by` is told by email of what they may approve. False when it was so."""
    by_need(by, permissions.APPROVALS_REVIEW)
    if has_own_email(by) == on:
        return False
    hook = Webhook.objects.kept().filter(member=by).first() or Webhook.own_of(by)
    hook.events = list(OWN_EVENTS) if on else []
    hook.save()
    _audit(hook, by, "notices.email_on" if on else "notices.email_off")
    return True


def has_own_email(member: Member) -> bool:
    return Webhook.objects.kept().filter(member=member).exclude(events=[]).exists()


def _target(kind: str, target: str) -> str:
    try:
        if kind == "email":
            validate_email(target)
            return target
        parsed = webhook_addresses.parsed(target)
    except ValidationError:
        raise Invalid("That is no email address.", field="target") from None
    except webhook_addresses.WebhookFailed as refused:
        raise Invalid(str(refused), field="target") from refused
    if kind == "ntfy" and not parsed.path.partition("?")[0].strip("/"):
        raise Invalid("An ntfy address ends with its topic: https://ntfy.sh/topic.", field="target")
    return target


def _events(events: Iterable[str]) -> list[str]:
    found = set(events)
    if not found or found - set(EVENTS):
        raise Invalid(f"`events` is one or more of {', '.join(EVENTS)}.", field="events")
    return [event for event in EVENTS if event in found]


def _audit(hook: Webhook, by: Member, event: str, **told: object) -> None:
    where = {} if hook.member_id else {"host": hook.shown}
    audit.append(
        workspace_id=hook.workspace_id, actor=audit.Actor("member", by.pk), event=event, subject_id=hook.pk,
        kind=hook.kind, **where, **told,
    )  # fmt: skip
