"""Sandboxes and the commands that ran in them. Facts and questions; acts are in `acts.py` and `lifecycle.py`."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Key, Member, Workspace, id_field

from . import states


class SandboxQuerySet(models.QuerySet["Sandbox"]):
    def live(self) -> SandboxQuerySet:
        return self.filter(status__in=states.LIVE, deleted_at=None)

    def visible_to(self, who: Caller | Member) -> SandboxQuerySet:
        """Deleted ones are gone for everybody; an agent's key sees its agent's; others what their workspace has."""
        found = self.filter(workspace_id=who.workspace_id, deleted_at=None)
        return found.filter(agent_id=who.agent_id) if isinstance(who, Caller) and who.is_agent else found


class Sandbox(models.Model):
    """One isolated machine. Its container carries this id as a label; the row says what is true of it."""

    id = id_field("sbx")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="sandboxes")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="sandboxes")
    key = models.ForeignKey(Key, models.PROTECT, null=True, related_name="+")
    conversation = models.CharField(max_length=200, blank=True)
    label = models.CharField(max_length=200, null=True)
    status = models.CharField(max_length=10, default="starting")
    ended_reason = models.CharField(max_length=20, null=True)

    image = models.CharField(max_length=200)
    image_id = models.CharField(max_length=100, blank=True)
    network = models.CharField(max_length=10, default="none")
    persistent = models.BooleanField(default=False)
    cpus = models.FloatField()
    memory_mb = models.PositiveIntegerField()
    disk_mb = models.PositiveIntegerField()
    env = models.JSONField(default=dict)
    idle_timeout_s = models.PositiveIntegerField()

    container_id = models.CharField(max_length=80, blank=True)
    boot = models.CharField(max_length=64, blank=True)  # the runner's start: another one knows nothing of our commands
    created_at = models.DateTimeField(default=timezone.now)
    last_activity_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)

    objects = SandboxQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(status__in=states.ALL), name="sandbox_status_known"),
            models.CheckConstraint(
                condition=~Q(status="ended") | Q(ended_reason__in=states.ENDED_REASONS), name="sandbox_end_has_reason"
            ),
            models.CheckConstraint(condition=Q(network__in=["none", "public"]), name="sandbox_network_known"),
            models.UniqueConstraint(
                fields=["agent", "conversation"],
                condition=Q(status__in=states.LIVE) & ~Q(conversation=""),
                name="sandbox_once_per_conversation",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "status"], name="sandbox_of_workspace")]

    def __str__(self) -> str:
        return self.label or self.pk

    @property
    def is_live(self) -> bool:
        return self.status in states.LIVE and self.deleted_at is None


class Command(models.Model):
    """One command that an action ran. Output lies in files beside it; the row holds sizes."""

    id = id_field("cmd")
    sandbox = models.ForeignKey(Sandbox, models.PROTECT, related_name="commands")
    action_id = models.CharField(max_length=40, unique=True)
    status = models.CharField(max_length=10, default="running")  # running, exited, timed_out, lost
    exit_code = models.IntegerField(null=True)
    timed_out = models.BooleanField(default=False)
    stdout_bytes = models.BigIntegerField(default=0)
    stderr_bytes = models.BigIntegerField(default=0)
    duration_ms = models.PositiveIntegerField(null=True)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=["running", "exited", "timed_out", "lost"]), name="command_status_known"
            )
        ]

    def __str__(self) -> str:
        return self.pk
