"""What the gate remembers of denials: a denied call cools down, later ones of its conversation say so, and three within
half an hour suspend what an agent was allowed without asking.

Owns those answers and the `Suspension` rows. Must never loosen anything: it denies, flags and suspends.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from console.workspaces import audit, permissions, reviewers, rows
from console.workspaces.errors import Conflict, Invalid, PermissionDenied
from console.workspaces.members import by_need
from console.workspaces.models import Agent, Member

from . import meaning
from .models import Action, Suspension

if TYPE_CHECKING:
    from .proposal import Proposal

AFTER_DENIAL = "after_denial"
DENIALS_THAT_SUSPEND = 3
SUSPEND_WITHIN = timedelta(minutes=30)
COOLING_WITHIN = timedelta(days=3)  # of its proposal: a day to wait for a person, a day at most to cool down
SOMETHING_COOLS = (
    f"SELECT 1 FROM {Action._meta.db_table} WHERE workspace_id = %s AND agent_id = %s AND tool = %s "
    "AND status = 'denied' AND decided_by = 'reviewer' AND created_at > %s AND retry_at > %s LIMIT 1"
)


def cooling(proposal: "Proposal", digest: str) -> Action | None:
    """The denial that still answers this call. A later approval of the same ends it: people change their minds, and the
    last word counts."""
    last = _last_decided(proposal, digest)
    if last is None or last.status != "denied" or last.retry_at is None or last.retry_at <= timezone.now():
        return None
    return last


def _last_decided(proposal: "Proposal", digest: str) -> Action | None:
    """What a person said last of the same call, as its agent asked for it or as somebody edited it."""
    own = Action.objects.filter(agent_id=proposal.caller.agent_id, decided_by="reviewer", tool=proposal.tool)
    own = own.order_by("-decided_at", "-pk")
    if proposal.tool != "run":
        return own.filter(Q(digest=digest) | Q(proposed_digest=digest)).first()
    now = timezone.now()
    if not _something_cools(proposal, now):
        return None
    recent = own.filter(workspace_id=proposal.caller.workspace_id, created_at__gt=now - COOLING_WITHIN)
    if not (cooling := list(recent.filter(status="denied", retry_at__gt=now))):
        return None
    asked = meaning.of(proposal.arguments, proposal.profile, proposal.script)
    denied = next((each for each in cooling if asked.is_denied_with(each)), None)
    if denied is None:
        return None
    later = recent.filter(decided_at__gt=denied.decided_at).exclude(status="denied")
    return next((each for each in later if asked.is_approved_with(each)), denied)


def _something_cools(proposal: "Proposal", now: datetime) -> bool:
    """As text: each call of an agent asks it, nearly always in vain, and Django would write it anew each time."""
    times = map(connection.ops.adapt_datetimefield_value, (now - COOLING_WITHIN, now))
    who = proposal.caller
    return rows.ask(SOMETHING_COOLS, [who.workspace_id, who.agent_id, proposal.tool, *times]).fetchone() is not None


def why_cooling(denied: Action) -> str:
    """For the agent: who said no, when, why, and from when on it may be asked again."""
    assert denied.retry_at
    assert denied.decided_at
    by = denied.decisions.filter(verdict="deny").select_related("by__user").first()
    minutes = int((timezone.now() - denied.decided_at) / timedelta(minutes=1))
    ago = f"{minutes} min ago" if minutes else "just now"
    who = str(by.by) if by else "a reviewer"
    return (
        f"The same was denied {ago} by {who} ({denied.pk}): {denied.end_reason.rstrip('.')}. "
        f"It may be proposed again after {denied.retry_at:%Y-%m-%d %H:%M:%S} UTC."
    )


def retry_at(action: Action) -> datetime | None:
    """Until when a denial decided now answers the same call."""
    return timezone.now() + timedelta(minutes=action.agent.cool_down_min) if action.agent else None


def denied_before(proposal: "Proposal") -> Action | None:
    """The last denial in this conversation, of the same tool where there is one."""
    own = Action.objects.filter(agent_id=proposal.caller.agent_id, status="denied", decided_by="reviewer")
    name, value = (
        ("conversation", proposal.conversation) if proposal.conversation else ("sandbox_id", proposal.sandbox_id)
    )
    last = own.filter(**{name: value}).order_by("-decided_at")
    return last.filter(tool=proposal.tool).first() or last.first()


def reminded(proposal: "Proposal") -> tuple["Proposal", str]:
    """The proposal with its flag, and the id of the denial that it comes after."""
    before = denied_before(proposal)
    if before is None:
        return proposal, ""
    return replace(proposal, flags=tuple(dict.fromkeys([*proposal.flags, AFTER_DENIAL]))), before.pk


def suspended(agent_id: str) -> bool:
    """Whether its allow rules and grants count for nothing now: everything they would allow asks."""
    return Suspension.objects.filter(agent_id=agent_id, lifted_at=None).exists()


def count_denial(action: Action) -> None:
    """In the transaction of a denial, which holds the workspace: the third within half an hour suspends. Of identical
    proposals that were one card, and of a plan, only one counts, and those before a lift never count again."""
    if action.agent_id is None:
        return
    since = timezone.now() - SUSPEND_WITHIN
    lifted_at = Suspension.objects.filter(agent_id=action.agent_id).order_by("-lifted_at").values_list("lifted_at")
    since = max([since, *(at for (at,) in lifted_at[:1] if at)])
    denied = Action.objects.filter(agent_id=action.agent_id, status="denied", decided_by="reviewer")
    each = denied.filter(decided_at__gt=since).values_list("plan_id", "digest", "decided_at")
    found = len({plan_id or (digest, at) for plan_id, digest, at in each})
    if found >= DENIALS_THAT_SUSPEND and not suspended(action.agent_id):
        _suspend(action, f"{found} denials within {SUSPEND_WITHIN // timedelta(minutes=1)} minutes.")


def _suspend(action: Action, why: str) -> None:
    made = Suspension.objects.create(agent_id=action.agent_id or "", why=why)
    audit.append(
        workspace_id=action.workspace_id, actor=audit.SYSTEM, event="agent.rules_suspended",
        subject_id=action.agent_id or "", why=why, since=made.suspended_at.isoformat(), action=action.pk,
    )  # fmt: skip


@transaction.atomic
def lift_suspension(agent: Agent, *, by: Member, reason: str) -> Suspension:
    """Its rules and grants allow again from now on; what was denied before does not count towards the next."""
    by_need(by, permissions.APPROVALS_REVIEW)
    if agent.workspace_id == by.workspace_id and not reviewers.may_approve(by, agent):
        raise PermissionDenied(f"Who does not approve for {agent.name} does not lift this either. Ask one who does.")
    reason = reason.strip()
    if not reason:
        raise Invalid("Say why its rules may allow again. The audit log keeps this.", field="reason")
    open_ = Suspension.objects.filter(agent=agent, agent__workspace_id=by.workspace_id, lifted_at=None)
    if not open_.update(lifted_at=timezone.now(), lifted_by=by, lift_reason=reason):
        raise Conflict(f"The rules of {agent.name} are not suspended; somebody may have lifted it a moment ago.")
    audit.append(
        workspace_id=by.workspace_id, actor=audit.Actor("member", by.pk), event="agent.suspension_lifted",
        subject_id=agent.pk, reason=reason,
    )  # fmt: skip
    return Suspension.objects.filter(agent=agent).latest("lifted_at")
