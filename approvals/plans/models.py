"""Plans as rows. Facts and questions; what a plan is doing is read from its items, so that the two never differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils import timezone

from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Key, Member, Workspace, id_field

if TYPE_CHECKING:
    from approvals.models import Action


class PlanQuerySet(models.QuerySet["Plan"]):
    def visible_to(self, who: Caller | Member) -> PlanQuerySet:
        """As its actions are: an agent's key sees its agent's; everybody else what their workspace has."""
        if isinstance(who, Caller) and who.is_agent:
            return self.filter(workspace_id=who.workspace_id, agent_id=who.agent_id)
        return self.filter(workspace_id=who.workspace_id)


class Plan(models.Model):
    """What binds its items together: who proposed them, as what, and which of them ended it early."""

    id = id_field("pln")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="plans")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="plans")
    key = models.ForeignKey(Key, models.PROTECT, null=True, related_name="+")
    conversation = models.CharField(max_length=200)
    sandbox_id = models.CharField(max_length=40)
    title = models.CharField(max_length=200, blank=True)  # what the agent calls it; in no digest
    reason = models.TextField(blank=True)
    proposed_digest = models.CharField(max_length=64)  # over the digests of its items, in order, as proposed
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)
    stopped_by = models.CharField(max_length=40, blank=True)  # the item after whose end nothing more of it started
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    objects = PlanQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key", "idempotency_key"], name="plan_idempotency_key_once"),
        ]

    def __str__(self) -> str:
        return self.title or self.pk

    def in_order(self) -> models.QuerySet[Action]:
        found: models.QuerySet[Action] = self.items.order_by("plan_place")
        return found
