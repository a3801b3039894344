"""Sandboxes and the commands that ran in them. Facts and questions; acts are in `acts.py` and `lifecycle.py`."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Key, Member, Workspace, id_field

from . import states

COMMAND_STATUSES = ("running", "exited", "signalled", "timed_out", "stopped", "lost")


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
    writable_root = models.BooleanField(default=False)
    cpus = models.FloatField()
    memory_mb = models.PositiveIntegerField()
    disk_mb = models.PositiveIntegerField()
    processes = models.PositiveIntegerField(default=200)
    open_files = models.PositiveIntegerField(default=4096)
    output_mb = models.PositiveIntegerField(default=10)  # kept of each stream of a command
    env = models.JSONField(default=dict)
    idle_timeout_s = models.PositiveIntegerField()
    max_lifetime_s = models.PositiveIntegerField(default=8 * 3600)

    pooled = models.BooleanField(default=False)  # it had been started before anybody asked
    address = models.GenericIPAddressField(null=True)  # in the sandbox network; its own until the container is gone
    container_id = models.CharField(max_length=80, blank=True)
    boot = models.CharField(max_length=64, blank=True)  # the runner's start: another one knows nothing of our commands
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)  # the last time; a persistent one is started many times
    last_activity_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()  # its end, however busy it is; a persistent one's moves with its use
    ended_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    quarantined_until = models.DateTimeField(null=True)  # a halt ended it, and its disk is kept so long

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
        indexes = [
            models.Index(fields=["workspace", "status"], name="sandbox_of_workspace"),
            models.Index(fields=["id"], condition=Q(ended_reason="halted"), name="sandbox_halted"),
        ]

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
    status = models.CharField(max_length=10, default="running")
    background = models.BooleanField(default=False)
    exit_code = models.IntegerField(null=True)
    timed_out = models.BooleanField(default=False)
    left_running = models.BooleanField(default=False)  # it ended, and processes that it started have not
    reason = models.CharField(max_length=20, null=True)  # oom: it was killed for memory
    stdout_bytes = models.BigIntegerField(default=0)
    stderr_bytes = models.BigIntegerField(default=0)
    duration_ms = models.PositiveIntegerField(null=True)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(status__in=COMMAND_STATUSES), name="command_status_known")]

    def __str__(self) -> str:
        return self.pk


class PooledSandbox(models.Model):
    """A sandbox that was started before anybody asked. Who claims it deletes this row and makes a `Sandbox` of the same
    id in one transaction, so that nobody else gets it; its container carries that id since it was made."""

    id = id_field("sbx")
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="pool")
    image = models.CharField(max_length=200)
    image_id = models.CharField(max_length=100)
    network = models.CharField(max_length=10)
    cpus = models.FloatField()
    memory_mb = models.PositiveIntegerField()
    disk_mb = models.PositiveIntegerField()
    processes = models.PositiveIntegerField()
    open_files = models.PositiveIntegerField()
    output_mb = models.PositiveIntegerField()
    address = models.GenericIPAddressField(null=True)
    container_id = models.CharField(max_length=80, blank=True)
    boot = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    ready_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.pk


class NetworkException(models.Model):
    """One private destination that one agent's sandboxes may reach. Ended, never deleted: the row is the record."""

    id = id_field("nex")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="network_exceptions")
    address = models.GenericIPAddressField(protocol="IPv4")
    protocol = models.CharField(max_length=4)
    port = models.PositiveIntegerField()
    reason = models.CharField(max_length=200, blank=True)
    made_by = models.ForeignKey(Member, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(protocol__in=["tcp", "udp"]), name="exception_protocol_known"),
            models.CheckConstraint(condition=Q(port__gte=1, port__lte=65535), name="exception_port_in_range"),
            models.UniqueConstraint(
                fields=["agent", "address", "protocol", "port"],
                condition=Q(ended_at=None),
                name="exception_once_per_destination",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.address}:{self.port}/{self.protocol}"


class ArtifactQuerySet(models.QuerySet["Artifact"]):
    def visible_to(self, who: Caller | Member) -> ArtifactQuerySet:
        found = self.filter(workspace_id=who.workspace_id, expires_at__gt=timezone.now())
        return found.filter(agent_id=who.agent_id) if isinstance(who, Caller) and who.is_agent else found


class Artifact(models.Model):
    """A copy of one file that outlives its sandbox. The bytes lie in the storage `artifacts` under its id."""

    id = id_field("art")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="artifacts")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="artifacts")
    sandbox = models.ForeignKey(Sandbox, models.PROTECT, related_name="artifacts")
    path = models.CharField(max_length=4096)
    title = models.CharField(max_length=200, blank=True)
    size = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    action_ids = models.JSONField(default=list)  # the actions that made the file, oldest first
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    objects = ArtifactQuerySet.as_manager()

    def __str__(self) -> str:
        return self.title or self.path
