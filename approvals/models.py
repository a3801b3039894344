"""Actions, the decisions on them, and the one execution each may have. Facts and questions; acts are in `gate.py` and
`decisions.py`, and only `states.advance()` writes a status."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from typing import Any

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Key, Member, Workspace, id_field

from . import states
from .notices.models import Webhook as Webhook
from .plans.models import Plan as Plan
from .rules.models import Grant as Grant
from .rules.models import Rule as Rule

JOIN_WITHIN = timedelta(minutes=15)
DIGEST_VERSION = 1
LEFT_AT = Coalesce("decided_at", "ended_at")


class ActionQuerySet(models.QuerySet["Action"]):
    def pending(self) -> ActionQuerySet:
        return self.filter(status="pending")

    def cards(self) -> ActionQuerySet:
        """Of identical pending ones, and of a plan's, only the first, which stands for all."""
        outer = {name: OuterRef(name) for name in ("agent", "sandbox_id", "digest")}
        same = Action.objects.pending().filter(pk__lt=OuterRef("pk"), plan=None, **outer)
        before = Action.objects.pending().filter(plan=OuterRef("plan"), plan_place__lt=OuterRef("plan_place"))
        return self.filter(~Exists(before) & (Q(plan__isnull=False) | ~Exists(same)))

    def lately(self) -> ActionQuerySet:
        """What people were asked about and waits no more, the newest first. Nobody decided what expired, or was
        superseded."""
        return self.filter(asked=True).exclude(status="pending").order_by(LEFT_AT.desc(), "-created_at")

    def open(self) -> ActionQuerySet:
        return self.filter(status__in=states.OPEN)

    def visible_to(self, who: Caller | Member) -> ActionQuerySet:
        """An agent's key sees its agent's; everybody else what their workspace has."""
        if isinstance(who, Caller) and who.is_agent:
            return self.filter(workspace_id=who.workspace_id, agent_id=who.agent_id)
        return self.filter(workspace_id=who.workspace_id)

    def joinable(self) -> ActionQuerySet:
        """What waits or waited for a person and whose outcome its agent has not been given yet."""
        fresh = Q(ended_at=None) | Q(ended_at__gt=timezone.now() - JOIN_WITHIN)
        return self.filter(fresh, asked=True, delivered_at=None, plan=None)  # an item runs in its plan's order


class Action(models.Model):
    """One call that an agent, or a member's key, proposed: exactly what would run, and what became of it."""

    id = id_field("act")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="actions")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="actions")
    key = models.ForeignKey(Key, models.PROTECT, null=True, related_name="+")
    conversation = models.CharField(max_length=200, blank=True)
    parent_action = models.CharField(max_length=40, blank=True)
    sandbox_id = models.CharField(max_length=40)
    plan = models.ForeignKey(Plan, models.PROTECT, null=True, related_name="items")
    plan_place = models.PositiveSmallIntegerField(null=True)  # from 1

    tool = models.CharField(max_length=40)
    tool_version = models.PositiveSmallIntegerField(default=1)
    arguments = models.JSONField(default=dict)  # validated, defaults filled in; contents over 4 KiB as {sha256, size}
    bases = models.JSONField(default=dict)  # path → SHA-256 of the file that the call would replace, null for none
    script = models.JSONField(null=True)  # {path, sha256, size} of the file that a command runs, as a person sees it
    profile = models.JSONField(default=dict)  # image id, network, user, environment, settings version
    digest = models.CharField(max_length=64)
    proposed_digest = models.CharField(max_length=64, default="")  # as its agent asked: joining goes by it
    diff_of_edit = models.TextField(blank=True, default="")  # from what was proposed to what would run
    digest_version = models.PositiveSmallIntegerField(default=DIGEST_VERSION)
    reason = models.TextField(blank=True)  # what the agent says; never in the digest
    why_asked = models.CharField(max_length=200, blank=True)
    flags = models.JSONField(default=list)
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)

    status = models.CharField(max_length=12, default="pending")
    asked = models.BooleanField(default=False)  # waits or waited for a person
    approvals_needed = models.PositiveSmallIntegerField(default=1)
    decided_by = models.CharField(max_length=10, blank=True)  # rule, grant, reviewer, agent, clock, system
    under = models.JSONField(default=list)  # [{rule, version} or {grant}]: what let it through, asked or denied it
    escalated_at = models.DateTimeField(null=True)  # nobody had decided by then, and a second group was told
    escalated_to = models.JSONField(default=list)  # ids of its members
    changes_unseen = models.BooleanField(default=False)  # it may have changed files, and no person saw it before
    end_reason = models.TextField(blank=True)
    result = models.JSONField(null=True)
    error = models.JSONField(null=True)

    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)
    start_by = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    retry_at = models.DateTimeField(null=True)  # of a denial: until then the same call is denied at once
    denied_before = models.CharField(max_length=40, blank=True)  # the action whose denial this comes after

    objects = ActionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(status__in=states.ALL), name="action_status_known"),
            models.CheckConstraint(
                condition=Q(status__in=states.OPEN, ended_at=None) | Q(status__in=states.ENDED, ended_at__isnull=False),
                name="action_ended_at_says_ended",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["running", "succeeded", "failed", "unknown"]) | Q(started_at__isnull=False),
                name="action_ran_says_when",
            ),
            models.CheckConstraint(condition=~Q(status="pending") | Q(asked=True), name="action_pending_was_asked"),
            models.UniqueConstraint(fields=["key", "idempotency_key"], name="action_idempotency_key_once"),
            models.UniqueConstraint(fields=["plan", "plan_place"], name="action_plan_place_once"),
        ]
        indexes = [
            models.Index(fields=["workspace", "status", "created_at"], name="action_queue"),
            models.Index(fields=["agent", "digest"], name="action_join"),
            models.Index(fields=["sandbox_id", "status"], name="action_of_sandbox"),
            models.Index(fields=["status"], condition=Q(status__in=states.OPEN), name="action_open"),
            models.Index(fields=["sandbox_id"], condition=Q(changes_unseen=True), name="action_unseen"),
            models.Index(
                "workspace", LEFT_AT.desc(), F("created_at").desc(), condition=Q(asked=True), name="action_lately"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.pk}"

    @property
    def is_open(self) -> bool:
        return self.status in states.OPEN

    @property
    def edited(self) -> bool:
        return bool(self.proposed_digest) and self.proposed_digest != self.digest

    @property
    def environment(self) -> dict[str, str]:
        """What a command is given: the sandbox's variables, and over them the call's own."""
        own = self.arguments.get("env", {})
        return {**self.profile.get("env", {}), **own} if self.tool == "run" else {}

    @property
    def executed(self) -> bool | None:
        """Whether it ran; None when that was lost. What the sandbox refused before it did anything has not."""
        if self.status == "unknown":
            return None
        return self.status in ("running", "succeeded", "failed") and (self.error or {}).get("executed", True)

    def outcome(self) -> dict[str, Any] | None:
        """What became of it, for its agent; None while it is open. Output is added by whoever holds it."""
        if self.is_open:
            return None
        return {
            "executed": self.executed,
            "decided_by": self.decided_by,
            "human_decided": self.decided_by == "reviewer",
            "reason": self.end_reason,
            "edited": self.edited,
            **({"diff_of_edit": self.diff_of_edit} if self.edited else {}),
            "result": self.result,
            "error": self.error and {name: self.error[name] for name in self.error if name != "executed"},
            "may_retry": self._may_retry,
            **self._retry_after(),
        }

    @property
    def _may_retry(self) -> bool:
        """Not what comes back by itself, nor what would be refused until a person changes something."""
        error = self.error or {}
        is_lasting = error.get("code") in states.LASTING
        return self.status in states.MAY_RETRY and "next_action" not in error and not is_lasting

    def _retry_after(self) -> dict[str, int]:
        """In how many seconds the same may be proposed again."""
        left = self.retry_at - timezone.now() if self.retry_at and self.status == "denied" else timedelta()
        return {"retry_after": ceil(left.total_seconds())} if left > timedelta() else {}


class Decision(models.Model):
    """What one reviewer said, about which digest, through which door."""

    action = models.ForeignKey(Action, models.PROTECT, related_name="decisions")
    by = models.ForeignKey(Member, models.PROTECT, related_name="decisions")
    verdict = models.CharField(max_length=10, choices=[("approve", "Approve"), ("deny", "Deny")])
    reason = models.TextField(blank=True)
    digest = models.CharField(max_length=64)
    via = models.CharField(max_length=10, default="page")  # page, api
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["action", "by", "digest"], name="decision_once_per_reviewer"),
            models.CheckConstraint(condition=Q(verdict__in=["approve", "deny"]), name="decision_verdict_known"),
            models.CheckConstraint(condition=Q(via__in=["page", "api"]), name="decision_via_known"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.by}"


class View(models.Model):
    """That the whole text of one digest was shown to a member, in one session: what approving on a page takes."""

    action = models.ForeignKey(Action, models.CASCADE, related_name="views")
    member = models.ForeignKey(Member, models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    session = models.CharField(max_length=64)  # SHA-256 of its key
    shown_at = models.DateTimeField(default=timezone.now)
    read_at = models.DateTimeField(null=True)  # its end was on screen

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["action", "member", "session", "digest"], name="view_once_per_session")
        ]

    def __str__(self) -> str:
        return f"{self.action_id} shown to {self.member_id}"


class Edit(models.Model):
    """What a reviewer made of a waiting call, and what it was before. Both texts stay."""

    action = models.ForeignKey(Action, models.PROTECT, related_name="edits")
    by = models.ForeignKey(Member, models.PROTECT, related_name="+")
    digest_before = models.CharField(max_length=64)
    arguments_before = models.JSONField()
    bases_before = models.JSONField(null=True)  # null: of before this was kept
    script_before = models.JSONField(null=True)
    digest = models.CharField(max_length=64)
    arguments = models.JSONField()
    bases = models.JSONField(null=True)
    script = models.JSONField(null=True)
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.action_id} edited by {self.by_id}"


class Execution(models.Model):
    """The one start of an action. Its primary key is the action: a second row cannot be written."""

    action = models.OneToOneField(Action, models.PROTECT, primary_key=True, related_name="execution")
    nonce = models.CharField(max_length=32, unique=True)
    started_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.action_id


class SuspensionQuerySet(models.QuerySet["Suspension"]):
    def open_in(self, workspace: Workspace) -> SuspensionQuerySet:
        """Of agents that are still there, the oldest first."""
        open_ = self.filter(agent__workspace=workspace, agent__archived_at=None, lifted_at=None)
        return open_.select_related("agent").order_by("suspended_at")


class Suspension(models.Model):
    """From here until it is lifted an agent's rules and grants allow nothing: what they would allow asks."""

    agent = models.ForeignKey(Agent, models.PROTECT, related_name="suspensions")
    why = models.CharField(max_length=200)
    suspended_at = models.DateTimeField(default=timezone.now)
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.ForeignKey(Member, models.PROTECT, null=True, related_name="+")
    lift_reason = models.TextField(blank=True)

    objects = SuspensionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent"], condition=Q(lifted_at=None), name="suspension_open_once"),
            models.CheckConstraint(
                condition=Q(lifted_at=None, lifted_by=None) | Q(lifted_at__isnull=False, lifted_by__isnull=False),
                name="suspension_lifted_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent}: {self.why}"


class PayloadUse(models.Model):
    """A kept content that an action names, in its arguments or as what it would replace. What no row here names is
    garbage."""

    action = models.ForeignKey(Action, models.PROTECT, related_name="payload_uses")
    sha256 = models.CharField(max_length=64, db_index=True)
    size = models.PositiveBigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["action", "sha256"], name="payload_use_once")]

    def __str__(self) -> str:
        return f"{self.sha256} of {self.action_id}"
