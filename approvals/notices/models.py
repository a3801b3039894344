"""Webhooks, what was to be delivered to them, and each attempt. Facts and questions; acts are in `acts.py`.

A delivery names actions and never holds a text of theirs: what is sent is written anew for each attempt.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone
from django.utils.crypto import get_random_string, salted_hmac

from console.workspaces import permissions
from console.workspaces.models import Member, Permission, Workspace, id_field

KINDS = ("plain", "slack", "teams", "ntfy", "email")
OWN_EVENTS = ("waiting", "flagged", "expiring")  # of a reviewer's own email; that a second group hears is no choice
EVENTS = (*OWN_EVENTS, "escalated")
STATUSES = ("waiting", "delivered", "failed", "moot")


def new_salt() -> str:
    return get_random_string(32)


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def kept(self) -> WebhookQuerySet:
        return self.filter(ended_at=None)

    def shared(self) -> WebhookQuerySet:
        """Those of a workspace, not a reviewer's own email."""
        return self.filter(member=None)

    def in_force(self) -> WebhookQuerySet:
        """Whose owner is still there; and of own email, who still reviews."""
        reviews = Permission.objects.filter(member=OuterRef("member"), name=permissions.APPROVALS_REVIEW)
        there = self.kept().filter(enabled=True, owner__in=Member.objects.current())
        return there.filter(Q(member=None) | Exists(reviews))


class Webhook(models.Model):
    """Where a workspace has itself told; or, with `member`, a reviewer's own email: `events` are those that they chose,
    none when it is off, and beside them they hear as one of a second group or as a deputy. Ended, never deleted."""

    id = id_field("whk")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="webhooks")
    kind = models.CharField(max_length=10)
    target = models.CharField(max_length=500, blank=True)  # an https address or an email's; of own email it is theirs
    events = models.JSONField(default=list)
    owner = models.ForeignKey(Member, models.PROTECT, related_name="+")
    member = models.ForeignKey(Member, models.PROTECT, null=True, related_name="+")
    salt = models.CharField(max_length=32, default=new_salt)
    enabled = models.BooleanField(default=True)
    made_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=KINDS), name="webhook_kind_known"),
            models.CheckConstraint(
                condition=Q(member=None) | Q(kind="email", owner=F("member")), name="webhook_own_is_email"
            ),
            models.UniqueConstraint(
                fields=["member"], condition=Q(member__isnull=False, ended_at=None), name="webhook_own_email_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.shown}"

    @classmethod
    def own_of(cls, member: Member) -> Webhook:
        """An own email that nobody chose, not saved yet."""
        return cls(workspace_id=member.workspace_id, kind="email", owner=member, member=member)

    @property
    def secret(self) -> str:
        """What deliveries are signed with. Made with the server's key: no copy of the database can sign."""
        bound = salted_hmac("approvals.notices.webhook", f"{self.pk}:{self.salt}", algorithm="sha256")
        return f"whsec_{bound.hexdigest()}"

    @property
    def address(self) -> str:
        return self.member.user.email if self.member else self.target

    @property
    def shown(self) -> str:
        """Without what follows the host: in that, chats and push services keep their passwords."""
        return self.address if self.kind == "email" else (urlsplit(self.target).hostname or "")


class Delivery(models.Model):
    """That one webhook is to be told something. `id` goes along, so that what comes twice is known."""

    id = id_field("dlv")
    webhook = models.ForeignKey(Webhook, models.PROTECT, related_name="deliveries")
    event = models.CharField(max_length=10)  # the most urgent one in it, or `test`
    status = models.CharField(max_length=10, default="waiting")
    tries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    next_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(status__in=STATUSES), name="delivery_status_known"),
            models.CheckConstraint(condition=Q(event__in=[*EVENTS, "test"]), name="delivery_event_known"),
        ]
        indexes = [
            models.Index(fields=["next_at"], condition=Q(status="waiting"), name="delivery_due"),
            models.Index(fields=["webhook", "created_at"], name="delivery_of_webhook"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook_id}"


class Told(models.Model):
    """That an action is in a delivery. Once for each webhook and event: a second row cannot be written."""

    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="told")
    webhook = models.ForeignKey(Webhook, models.PROTECT, related_name="+")
    action = models.ForeignKey("approvals.Action", models.CASCADE, related_name="+")
    event = models.CharField(max_length=10)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["webhook", "action", "event"], name="told_once")]

    def __str__(self) -> str:
        return f"{self.event} of {self.action_id}"


class Attempt(models.Model):
    """One try to deliver, and how it went: never what was sent or answered."""

    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="attempts")
    at = models.DateTimeField(default=timezone.now)
    took_ms = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"{self.status or self.error} at {self.at}"
