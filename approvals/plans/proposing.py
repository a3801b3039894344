"""Recording a plan: every item judged as it would be alone, then all of them asked about as one card, or none.

What a rule would allow waits too, because it runs in the plan's order; what is denied refuses the plan. Must never
start anything, and never record a part of a plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from approvals import gate, room, same
from approvals.digest import of_digests
from approvals.models import Action
from console.workspaces import ledger
from console.workspaces.errors import IdempotencyMismatch
from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Key
from console.workspaces.once import KEPT_FOR

from .models import Plan

ITEMS_MOST = 20
ALLOWED = "Alone nothing would ask about it. It waits because it is an item of a plan."


@dataclass(frozen=True)
class PlanProposal:
    items: Sequence[gate.Proposal]
    title: str = ""
    reason: str = ""
    idempotency_key: str | None = None  # as the door scopes it

    @property
    def caller(self) -> Caller:
        return self.items[0].caller

    def digest(self) -> str:
        return of_digests("sandgate-plan-v1", [item.digest() for item in self.items])


@dataclass(frozen=True)
class Recorded:
    plan_id: str
    joined: bool = False


@dataclass(frozen=True)
class Refused:
    """Item number `place` was denied, as the action that it was recorded as says; nothing else was recorded."""

    place: int
    action_id: str


@transaction.atomic
def submit(proposal: PlanProposal) -> Recorded | Refused:
    caller = proposal.caller
    if proposal.idempotency_key:
        Key.objects.select_for_update(no_key=True).get(pk=caller.key_id)  # two at once: the second finds the first
        if known := earlier(proposal):
            return Recorded(known.pk)
        _of_key(caller, proposal.idempotency_key).update(idempotency_key=None)  # too old to be found
    ledger.hold(caller.workspace_id)  # two at a limit: one counts after the other
    if not proposal.idempotency_key and (other := _joinable(proposal)):
        return Recorded(other.pk, joined=True)
    for place, item in enumerate(proposal.items, 1):
        if denied := gate.refused(item):
            return Refused(place, denied.action_id)
    agent = Agent.objects.get(pk=caller.agent_id)
    room.check(agent, more_bytes=_bytes(proposal), more=len(proposal.items))
    return Recorded(_record(proposal, agent).pk)


def check_room(proposal: PlanProposal) -> None:
    """What `submit` would refuse now, before contents go to disk. It looks again: this promises nothing."""
    for item in proposal.items:
        gate.judge(item)
    if not (proposal.idempotency_key or _joinable(proposal)):
        agent = Agent.objects.get(pk=proposal.caller.agent_id)
        room.check(agent, more_bytes=_bytes(proposal), more=len(proposal.items))


def earlier(proposal: PlanProposal) -> Plan | None:
    """The plan of an earlier call with this Idempotency-Key; another body under it is refused."""
    found = with_key(proposal.caller, proposal.idempotency_key or "")
    if found is None:
        return None
    items = list(found.in_order())
    is_same = (found.title, found.reason, len(items)) == (proposal.title, proposal.reason, len(proposal.items))
    if not is_same or not all(map(_is_call, items, proposal.items)):
        raise IdempotencyMismatch(
            f"This Idempotency-Key came with another body before, for {found.pk}. Send a new one with a new body."
        )
    return found


def with_key(caller: Caller, idempotency_key: str) -> Plan | None:
    return _of_key(caller, idempotency_key).filter(created_at__gt=timezone.now() - KEPT_FOR).first()


def _of_key(caller: Caller, idempotency_key: str) -> QuerySet[Plan]:
    return Plan.objects.filter(key_id=caller.key_id, idempotency_key=idempotency_key)


def _is_call(item: Action, proposal: gate.Proposal) -> bool:
    return item.conversation == proposal.conversation and same.is_call_of(item, replace(proposal, profile=item.profile))


def _joinable(proposal: PlanProposal) -> Plan | None:
    """The same calls in the same order, in a plan of which something is still to come."""
    own = Plan.objects.filter(agent_id=proposal.caller.agent_id, sandbox_id=proposal.items[0].sandbox_id)
    open_ = Action.objects.open().exclude(plan=None).values("plan_id")
    return own.filter(proposed_digest=proposal.digest(), pk__in=open_).order_by("-created_at").first()


def _bytes(proposal: PlanProposal) -> int:
    return sum(sum(item.payloads().values()) for item in proposal.items)


def _record(proposal: PlanProposal, agent: Agent) -> Plan:
    first, expires_at = proposal.items[0], timezone.now() + gate.PENDING_FOR
    plan = Plan.objects.create(
        workspace_id=agent.workspace_id, agent=agent, key_id=first.caller.key_id, conversation=first.conversation,
        sandbox_id=first.sandbox_id, title=proposal.title, reason=proposal.reason,
        proposed_digest=proposal.digest(), idempotency_key=proposal.idempotency_key, expires_at=expires_at,
    )  # fmt: skip
    waits = partial(gate.ask, agent=agent, plan=plan, expires_at=expires_at)
    for place, item in enumerate(proposal.items, 1):
        verdict = gate.judge(item)
        why = verdict.why if verdict.effect == "ask" else ALLOWED
        under = list(verdict.under) if verdict.effect == "ask" else []
        waits(item, why=why, under=under, plan_place=place, told={"plan": plan.pk, "item": place})
    return plan
