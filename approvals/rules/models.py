"""Rules and grants as rows. Facts and questions; acts are in `acts.py` and `grants.py`.

Must never be deleted: the audit log names them by id and version.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.utils import timezone

from console.workspaces import permissions
from console.workspaces.models import Agent, Member, Workspace, id_field

EFFECTS = ("allow", "ask", "deny")
TOOLS = ("run", "write", "edit")
"""Those that rules can speak of; `run` by words of a command, the others by path."""


class RuleQuerySet(models.QuerySet["Rule"]):
    def kept(self) -> RuleQuerySet:
        """What the page lists: all that nobody has taken away."""
        return self.filter(disabled_at=None)

    def in_force(self) -> RuleQuerySet:
        """An allowing rule ends with its owner's membership; what tightens stays."""
        owned = Q(suspended_at=None, owner__in=Member.objects.current())
        now = timezone.now()
        return self.kept().filter(~Q(effect="allow") | owned).filter(Q(expires_at=None) | Q(expires_at__gt=now))

    def over(self, agent_id: str, conversation: str) -> RuleQuerySet:
        """Those whose scope a call of that agent in that conversation lies in."""
        theirs = Q(agent=None) | Q(agent_id=agent_id, conversation="")
        return self.filter(theirs | Q(agent_id=agent_id, conversation=conversation))


class Rule(models.Model):
    """What is so, until somebody changes it, for a workspace, an agent of it or one conversation of that agent."""

    id = id_field("rul")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="rules")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="rules")
    conversation = models.CharField(max_length=200, blank=True)
    tool = models.CharField(max_length=40)
    effect = models.CharField(max_length=5)
    pattern = models.TextField()  # words of a command as a shell would read them, or a path
    note = models.CharField(max_length=500, blank=True)  # of a deny, the agent is told it
    matches = models.JSONField(default=list)  # its own tests
    does_not_match = models.JSONField(default=list)
    owner = models.ForeignKey(Member, models.PROTECT, related_name="rules")
    pack = models.CharField(max_length=40, blank=True)
    pack_version = models.PositiveSmallIntegerField(null=True)
    version = models.PositiveIntegerField(default=1)
    use_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True)
    suspended_at = models.DateTimeField(null=True)  # its owner left; until somebody adopts it

    objects = RuleQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(effect__in=EFFECTS), name="rule_effect_known"),
            models.CheckConstraint(condition=Q(tool__in=TOOLS), name="rule_tool_known"),
            models.CheckConstraint(condition=Q(conversation="") | Q(agent__isnull=False), name="rule_conversation_of"),
        ]
        indexes = [models.Index(fields=["workspace", "tool"], condition=Q(disabled_at=None), name="rule_in_force")]

    def __str__(self) -> str:
        return f"{self.effect} {self.tool}: {self.pattern}"

    @property
    def scope(self) -> str:
        return "conversation" if self.conversation else "agent" if self.agent_id else "workspace"

    @property
    def is_suspended(self) -> bool:
        return self.suspended_at is not None or not self.owner.is_current

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()


class GrantQuerySet(models.QuerySet["Grant"]):
    def in_force(self) -> GrantQuerySet:
        """Until its time is over, somebody ends it, who gave it may review no more, or its agent's Agent Tools are
        others than those it was given under."""
        able = Member.objects.current().with_permission(permissions.APPROVALS_REVIEW)
        under = Cast(KeyTextTransform("settings_version", "action__profile"), models.IntegerField())
        found = self.filter(ended_at=None, expires_at__gt=timezone.now(), given_by__in=able)
        return found.alias(under=under).filter(under=F("agent__settings_version"))


class Grant(models.Model):
    """What a reviewer let one conversation do again for some minutes: exactly what its action was."""

    id = id_field("grt")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="grants")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="grants")
    conversation = models.CharField(max_length=200, blank=True)
    sandbox_id = models.CharField(max_length=40)
    action = models.ForeignKey("approvals.Action", models.PROTECT, related_name="grants")  # it was given on this card
    tool = models.CharField(max_length=40)
    exactly: models.JSONField[Any, Any] = models.JSONField()  # words of each command of the line, as shown; or [[path]]
    given_by = models.ForeignKey(Member, models.PROTECT, related_name="grants_given")
    use_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = GrantQuerySet.as_manager()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(tool__in=TOOLS), name="grant_tool_known")]
        indexes = [models.Index(fields=["agent", "expires_at"], condition=Q(ended_at=None), name="grant_in_force")]

    def __str__(self) -> str:
        return self.pk
