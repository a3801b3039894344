"""The ground floor: users, workspaces, members, agents, keys, permissions, audit rows and changes.

Facts and constraints only; acts are in `members.py`, `agents.py`, `keys.py`, `audit.py`, `changes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.utils import timezone

from . import permissions
from .ids import new_id


def id_field(prefix: str) -> models.CharField[Any, Any]:
    return models.CharField(max_length=40, primary_key=True, default=partial(new_id, prefix), editable=False)


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=email.strip(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        return self.create_user(email, password, is_superuser=True, is_staff=True, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email__iexact=username or "")


class User(AbstractBaseUser):
    """A person who signs in. `is_superuser` and `is_staff` give nothing here: permissions are a member's, by name."""

    id = id_field("usr")
    email = models.EmailField(max_length=254)
    name = models.CharField(max_length=100)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    is_superuser = models.BooleanField(default=False)
    password_must_change = models.BooleanField(default=False)
    session_epoch = models.PositiveIntegerField(default=0)  # sessions of an earlier one are over
    created_at = models.DateTimeField(default=timezone.now)

    objects: ClassVar[UserManager] = UserManager()

    EMAIL_FIELD = USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["name"]

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_unique")]

    def __str__(self) -> str:
        return self.name or self.email

    def get_session_auth_hash(self) -> str:
        return self._of_epoch(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        return map(self._of_epoch, super().get_session_auth_fallback_hash())

    def _of_epoch(self, session_hash: str) -> str:
        return f"{session_hash}.{self.session_epoch}" if self.session_epoch else session_hash

    def has_perm(self, perm: str, obj: object = None) -> bool:
        return False

    def has_module_perms(self, app_label: str) -> bool:
        return False


class Workspace(models.Model):
    """Members, agents and everything of theirs; nothing crosses its border."""

    id = id_field("wsp")
    name = models.CharField(max_length=100)
    key_decisions = models.BooleanField(default=False)  # deciding by key, off until a member turns it on
    change_seq = models.BigIntegerField(default=0)
    audit_seq = models.BigIntegerField(default=0)
    audit_head = models.CharField(max_length=64, default="0" * 64)
    limits = models.JSONField(
        default=dict
    )  # {"memory_mb": {"default": 512, "most": 2048}}; what is left out is built in
    images = models.JSONField(default=list)  # names of images that may be used beside the default one
    pool_size = models.PositiveSmallIntegerField(default=1)
    escalate_after_min = models.PositiveSmallIntegerField(default=0)  # 0: never
    escalate_to = models.JSONField(default=list)  # ids of members who are told of what nobody has decided by then
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class MemberQuerySet(models.QuerySet["Member"]):
    def current(self) -> MemberQuerySet:
        return self.filter(removed_at=None, user__is_active=True)

    def of(self, user: User) -> MemberQuerySet:
        return self.current().filter(user=user)

    def with_permission(self, name: str) -> MemberQuerySet:
        return self.filter(permissions__name=name)


class Member(models.Model):
    """A user in a workspace, with the permissions given there one by one."""

    id = id_field("mem")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="members")
    user = models.ForeignKey(User, models.PROTECT, related_name="memberships")
    created_at = models.DateTimeField(default=timezone.now)
    removed_at = models.DateTimeField(null=True, blank=True)
    away_until = models.DateTimeField(null=True)
    deputy = models.ForeignKey("self", models.PROTECT, null=True, related_name="+")

    objects = MemberQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="member_once_per_workspace"),
            models.CheckConstraint(condition=~Q(deputy=F("id")), name="member_deputy_is_another"),
        ]

    def __str__(self) -> str:
        return str(self.user)

    @property
    def is_current(self) -> bool:
        return self.removed_at is None and self.user.is_active

    @property
    def is_away(self) -> bool:
        return self.away_until is not None and self.away_until > timezone.now()

    def may(self, permission: str) -> bool:
        return self.is_current and self.permissions.filter(name=permission).exists()


class Mode(models.TextChoices):
    """What an agent's calls of one kind need before they run."""

    ALWAYS = "always", "Always ask"
    RULES = "rules", "Ask unless a rule allows"
    NEVER = "never", "Never ask"


class AgentQuerySet(models.QuerySet["Agent"]):
    def current(self) -> AgentQuerySet:
        return self.filter(archived_at=None)


class Agent(models.Model):
    """What proposes. Its Agent Tools settings say whether it may, with which tools, and what needs approval."""

    id = id_field("agt")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="agents")
    name = models.CharField(max_length=60)
    owner = models.ForeignKey(Member, models.PROTECT, null=True, blank=True, related_name="owned_agents")
    sandbox_enabled = models.BooleanField(default=False)
    toolset = models.PositiveSmallIntegerField(default=2)
    command_mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.RULES)
    write_mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.RULES)
    tool_modes = models.JSONField(default=dict)  # {tool: mode} of those that differ from their kind
    self_approval = models.BooleanField(default=False)
    cool_down_min = models.PositiveSmallIntegerField(default=30)  # so long a denied call is denied at once
    approvals_needed = models.PositiveSmallIntegerField(default=1)  # each by another reviewer
    reviewers = models.JSONField(default=list)  # ids of the members who alone approve; none: all who may review
    network = models.CharField(max_length=10, default="public")  # the most it may have
    persistent_allowed = models.BooleanField(default=False)
    writable_root_allowed = models.BooleanField(default=False)
    images = models.JSONField(default=list)  # beside those of the workspace
    limits = models.JSONField(default=dict)  # as the workspace's, and before them
    protected_more = models.JSONField(default=list)  # patterns, beside the built-in ones
    protected_exempt = models.JSONField(default=list)  # [{path, expires_at, reason, by}]
    settings_version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("name"), F("workspace"), name="agent_name_once_per_workspace"),
            models.CheckConstraint(condition=Q(toolset__in=[1, 2]), name="agent_toolset_known"),
            models.CheckConstraint(condition=Q(command_mode__in=Mode.values), name="agent_command_mode_known"),
            models.CheckConstraint(condition=Q(write_mode__in=Mode.values), name="agent_write_mode_known"),
            models.CheckConstraint(condition=Q(network__in=["none", "public"]), name="agent_network_known"),
            models.CheckConstraint(
                condition=Q(approvals_needed__gte=1, approvals_needed__lte=5), name="agent_approvals_needed_1_to_5"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def mode_of(self, tool: str, *, is_write: bool) -> str:
        """What a call of `tool` needs: its own mode, or that of its kind."""
        return str(self.tool_modes.get(tool) or (self.write_mode if is_write else self.command_mode))

    def may(self, permission: str) -> bool:
        return self.archived_at is None and self.permissions.filter(name=permission).exists()


class HaltQuerySet(models.QuerySet["Halt"]):
    def current(self) -> HaltQuerySet:
        return self.filter(lifted_at=None)


class Halt(models.Model):
    """Nothing of one agent, or of a whole workspace, runs from `halted_at` until somebody lifts it. Lifted, never
    deleted: the row is the record."""

    id = id_field("hlt")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="halts")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="halts")  # none: all of the workspace
    reason = models.TextField()
    halted_by = models.ForeignKey(Member, models.PROTECT, related_name="+")
    via = models.CharField(max_length=10, default="page")  # page, api
    halted_at = models.DateTimeField(default=timezone.now)
    cancelled = models.PositiveIntegerField(default=0)  # actions that had not started
    lifted_by = models.ForeignKey(Member, models.PROTECT, null=True, related_name="+")
    lifted_at = models.DateTimeField(null=True)
    lift_reason = models.TextField(blank=True)

    objects = HaltQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(via__in=["page", "api"]), name="halt_via_known"),
            models.UniqueConstraint(
                fields=["workspace"], condition=Q(lifted_at=None, agent=None), name="halt_once_per_workspace"
            ),
            models.UniqueConstraint(
                fields=["agent"], condition=Q(lifted_at=None, agent__isnull=False), name="halt_once_per_agent"
            ),
        ]

    def __str__(self) -> str:
        return f"halt of {self.agent or self.workspace}"


class Key(models.Model):
    """A secret for machines, of one agent or one member. Only its hash is kept."""

    id = id_field("key")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="keys")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, blank=True, related_name="keys")
    member = models.ForeignKey(Member, models.PROTECT, null=True, blank=True, related_name="keys")
    name = models.CharField(max_length=60)
    hint = models.CharField(max_length=16)  # how it begins, so that people can tell keys apart
    secret_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(Member, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(agent=None, member__isnull=False) | Q(agent__isnull=False, member=None),
                name="key_of_one_agent_or_member",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_current(self) -> bool:
        return self.revoked_at is None and timezone.now() < self.expires_at


class Permission(models.Model):
    """One permission, given by name to one member, agent or key. Nothing else gives any."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="permissions")
    member = models.ForeignKey(Member, models.CASCADE, null=True, blank=True, related_name="permissions")
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, blank=True, related_name="permissions")
    key = models.ForeignKey(Key, models.CASCADE, null=True, blank=True, related_name="permissions")
    name = models.CharField(max_length=40)
    given_by = models.ForeignKey(Member, models.PROTECT, null=True, related_name="+")
    given_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(member__isnull=False, agent=None, key=None)
                | Q(member=None, agent__isnull=False, key=None)
                | Q(member=None, agent=None, key__isnull=False),
                name="permission_has_one_holder",
            ),
            models.CheckConstraint(condition=Q(name__in=permissions.ALL), name="permission_known"),
            models.UniqueConstraint(
                fields=["member", "name"], condition=Q(member__isnull=False), name="permission_once_per_member"
            ),
            models.UniqueConstraint(
                fields=["agent", "name"], condition=Q(agent__isnull=False), name="permission_once_per_agent"
            ),
            models.UniqueConstraint(
                fields=["key", "name"], condition=Q(key__isnull=False), name="permission_once_per_key"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AuditEntry(models.Model):
    """One link of a workspace's chain: `hash` covers this row and the hash before it. Never changed; what `audit_prune`
    has exported is the only thing that is ever deleted."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="audit")
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    actor = models.CharField(max_length=20)  # member, agent, key, rule, clock, system
    actor_id = models.CharField(max_length=40, blank=True)
    event = models.CharField(max_length=60)
    subject_id = models.CharField(max_length=40, blank=True)
    data = models.JSONField(default=dict)
    prev_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "seq"], name="audit_seq_once"),
            models.CheckConstraint(condition=Q(seq__gte=1), name="audit_seq_from_1"),
        ]
        indexes = [
            models.Index(fields=["workspace", "subject_id"], name="audit_subject"),
            models.Index(fields=["workspace", "actor_id", "seq"], name="audit_actor"),
            models.Index(fields=["workspace", "event", "seq"], name="audit_event"),
            models.Index(fields=["workspace", "at"], name="audit_at"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.event}"


class HeadPlace(models.Model):
    """A place outside that heads of the chains are sent to: what it has, and how the last try went."""

    place = models.CharField(max_length=10, primary_key=True)  # file, syslog, mail, webhook
    sent = models.JSONField(default=dict)  # workspace → number of the last head that arrived
    sent_at = models.DateTimeField(null=True)
    tried_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=500, blank=True)  # of the last try; empty when it went well

    def __str__(self) -> str:
        return self.place


class Change(models.Model):
    """A row changed. Sockets, long-polls and event streams read these, by number, without gaps within a workspace."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="changes")
    seq = models.BigIntegerField()
    subject = models.CharField(max_length=20)  # action, sandbox
    subject_id = models.CharField(max_length=40)
    agent_id = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=20)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "seq"], name="change_seq_once")]
        indexes = [models.Index(fields=["subject_id", "seq"], name="change_subject")]

    def __str__(self) -> str:
        return f"{self.seq} {self.subject} {self.status}"


class KeptAnswer(models.Model):
    """What a POST with an Idempotency-Key was answered. Without `status` it began, and its end is not known."""

    key = models.ForeignKey(Key, models.CASCADE, related_name="+")
    scope = models.CharField(max_length=64)  # hash of method, path and Idempotency-Key
    body = models.CharField(max_length=64)  # hash of what was asked
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(null=True)  # without what is shown once
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "scope"], name="kept_answer_once")]

    def __str__(self) -> str:
        return f"{self.status} to {self.key_id}"
