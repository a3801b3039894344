"""The gate: the only way to a Pass, and without a Pass the engine runs nothing.

`submit` answers a proposal with a Wait or a Pass; `start` turns an approved action into a Pass, once; `finish` ends it.
It must never run anything itself, and never trust what a door says that it can read from its own tables.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from console.workspaces import agents, audit, halts, ledger, permissions, rows
from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Key

from . import halting, memory, policy, room, same, states, votes
from .errors import NotEnabled, Outdated, PassSpent
from .models import Action, Execution, PayloadUse
from .plans import order
from .proposal import Proposal as Proposal
from .rules import finding, trust

PENDING_FOR = timedelta(hours=24)
APPROVED_FOR = timedelta(minutes=10)
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Wait:
    """The action waits for a person, or somebody else's call already does what this one wants."""

    action_id: str
    joined: bool = False


_MINT = object()


class Pass:
    """The right to run one action once: bound to its sandbox, tool, arguments and digest. Made by this module alone."""

    def __init__(self, mint: object, action: Action) -> None:
        if mint is not _MINT:
            raise PassSpent("Only the gate makes a Pass.")
        self.action_id: str = action.pk
        self.workspace_id: str = action.workspace_id
        self.sandbox_id: str = action.sandbox_id
        self.digest: str = action.digest
        self.tool: str = action.tool
        self.tool_version: int = action.tool_version
        self.arguments: Mapping[str, Any] = action.arguments
        self.bases: Mapping[str, str | None] = action.bases
        self.script: Mapping[str, Any] | None = action.script
        self._action = action  # as it was when this was made, and once `finish` is committed as it ended
        self._spent = False

    def spend(self, sandbox_id: str, tool: str) -> None:
        """Called by the engine right before it acts; a second time, or for anything else, raises PassSpent."""
        if self._spent or (sandbox_id, tool) != (self.sandbox_id, self.tool):
            raise PassSpent(
                f"{self.action_id} allows one {self.tool} in {self.sandbox_id}, not {tool} in {sandbox_id}."
            )
        self._spent = True

    @property
    def ended(self) -> Action | None:
        return None if self._action.is_open else self._action


@transaction.atomic
def submit(proposal: Proposal) -> Wait | Pass:
    """One transaction: judged, recorded and, when nothing asks, started."""
    caller, key = proposal.caller, proposal.digest()
    if proposal.idempotency_key:
        Key.objects.select_for_update(no_key=True).get(pk=caller.key_id)  # two at once: the second finds the first
        if known := same.earlier(proposal):
            return Wait(known.pk)
        same.of_key(proposal).update(idempotency_key=None)  # what had it is too old to be found
    ledger.hold(caller.workspace_id)  # two at a limit: one counts after the other
    agent, verdict = _judged_as_bound(proposal)
    if verdict.effect == "ask" and not proposal.idempotency_key and (other := same.joinable(proposal)):
        return Wait(other.pk, joined=True)
    if refused := _refused(proposal, key, agent, verdict):
        return refused
    if agent is None or verdict.effect == "allow":
        return _start_at_once(proposal, key, verdict)
    room.check(agent, more_bytes=sum(proposal.payloads().values()))
    return Wait(ask(proposal, agent, why=verdict.why, under=list(verdict.under)).pk)


def refused(proposal: Proposal) -> Wait | None:
    """Recorded as denied, when a rule or a person a moment ago says no to it; else None, and nothing is recorded."""
    agent, verdict = _judged_as_bound(proposal)
    return _refused(proposal, proposal.digest(), agent, verdict)


def _refused(proposal: Proposal, key: str, agent: Agent | None, verdict: policy.Verdict) -> Wait | None:
    if verdict.effect == "deny":
        return _deny_at_once(proposal, key, verdict)
    if agent and proposal.kind != "read" and (denied := memory.cooling(proposal, key)):
        return _deny_again(proposal, key, denied)
    return None


def ask(proposal: Proposal, agent: Agent, *, why: str, told: Mapping[str, Any] = NOTHING, **fields: Any) -> Action:
    """Recorded, and a person's to decide. In the caller's transaction, which has judged it and looked for room."""
    proposal, denied_before = memory.reminded(proposal)
    unseen = trust.flags(proposal.tool, proposal.arguments, sandbox_id=proposal.sandbox_id)
    proposal = replace(proposal, flags=tuple(dict.fromkeys([*proposal.flags, *unseen])))
    fields = {"expires_at": timezone.now() + PENDING_FOR, **fields}
    action = _record(
        proposal, proposal.digest(), status="pending", asked=True, why_asked=why[:200],
        approvals_needed=agent.approvals_needed, denied_before=denied_before, **fields,
    )  # fmt: skip
    # Not the environment: it may hold secrets, and the digest binds it.
    about = {name: proposal.profile.get(name) for name in ("image", "network", "settings_version")}
    states.announce(action, status="pending", actor=proposal.caller.actor, profile=about, **told)
    return action


def looks_first(proposal: Proposal) -> bool:
    """Whether what it would change is looked at before it runs, as things are now: a person would see it, or a rule
    allows that very path and no other that it leads to."""
    verdict = _judged(proposal)[1]
    return verdict.effect == "ask" or bool(verdict.under)


def judge(proposal: Proposal) -> policy.Verdict:
    """As things are now. Nothing is recorded."""
    return _judged(proposal)[1]


def check_room(proposal: Proposal) -> None:
    """What `submit` would refuse now, before the contents go to disk. It looks again: this promises nothing."""
    agent, verdict = _judged(proposal)
    if agent is None or verdict.effect != "ask":
        return
    if not (same.earlier(proposal) if proposal.idempotency_key else same.joinable(proposal)):
        room.check(agent, more_bytes=sum(proposal.payloads().values()))


def _judged(proposal: Proposal) -> tuple[Agent | None, policy.Verdict]:
    """By the agent's settings as they are now; without an agent nobody is asked. While a halt is in force, Halted."""
    halts.check(proposal.caller.workspace_id, proposal.caller.agent_id)
    agent = agents.of(proposal.caller)
    if agent is not None and not agent.sandbox_enabled:
        raise NotEnabled(agent.name)
    verdict = policy.judge(
        kind=proposal.kind, tool=proposal.tool, gated=agent is not None, mode=_mode(agent, proposal),
        by_rules=lambda only_tighter: finding.judge(_asked(proposal), only_tighter=only_tighter),
    )  # fmt: skip
    assert agent is not None or verdict.effect == "allow"
    return agent, verdict


def _judged_as_bound(proposal: Proposal) -> tuple[Agent | None, policy.Verdict]:
    """Its profile was read before this transaction: judged by other Agent Tools than its digest names, it would run
    under settings that nobody sees on its card."""
    agent, verdict = _judged(proposal)
    if agent is not None and agent.settings_version != proposal.profile.get("settings_version"):
        raise Outdated(agent.name)
    return agent, verdict


def _asked(proposal: Proposal) -> finding.Asked:
    same = {name: getattr(proposal, name) for name in ("conversation", "sandbox_id", "tool", "arguments", "profile")}
    return finding.Asked(workspace_id=proposal.caller.workspace_id, agent_id=proposal.caller.agent_id or "", **same)


def _mode(agent: Agent | None, proposal: Proposal) -> str:
    return agent.mode_of(proposal.tool, is_write=proposal.kind == "write") if agent else "never"


def _record(proposal: Proposal, digest_: str, **fields: Any) -> Action:
    caller = proposal.caller
    action = Action(
        workspace_id=caller.workspace_id, agent_id=caller.agent_id, key_id=caller.key_id,
        sandbox_id=proposal.sandbox_id, conversation=proposal.conversation, parent_action=proposal.parent_action,
        reason=proposal.reason, tool=proposal.tool, tool_version=proposal.tool_version,
        arguments=dict(proposal.arguments), bases=dict(proposal.bases), script=proposal.script,
        profile=dict(proposal.profile), digest=digest_, proposed_digest=digest_, flags=list(proposal.flags),
        idempotency_key=proposal.idempotency_key, **fields,
    )  # fmt: skip
    rows.insert(action)
    uses = (PayloadUse(action=action, sha256=sha256, size=size) for sha256, size in proposal.payloads().items())
    PayloadUse.objects.bulk_create(uses)
    return action


def _start_at_once(proposal: Proposal, digest_: str, verdict: policy.Verdict) -> Pass:
    now = timezone.now()
    action = _record(
        proposal, digest_, status="running", decided_by=verdict.by, approvals_needed=0, decided_at=now, started_at=now,
        under=list(verdict.under), changes_unseen=verdict.by in ("rule", "grant") and not verdict.is_quiet,
    )  # fmt: skip
    rows.insert(Execution(action_id=action.pk, nonce=secrets.token_hex(16)))
    under = {"under": list(verdict.under)} if verdict.under else {}
    states.announce(action, status="running", actor=proposal.caller.actor, why=verdict.why, **under)
    finding.used(verdict)
    return Pass(_MINT, action)


def _deny_again(proposal: Proposal, digest_: str, denied: Action) -> Wait:
    """What a person said no to a moment ago: nobody is asked again before its cool-down is over."""
    assert denied.agent
    room.check_pace(denied.agent)
    why, before = memory.why_cooling(denied), {"denied_before": denied.pk}
    return _denied(proposal, digest_, "system", why, audit.SYSTEM, before, retry_at=denied.retry_at, **before)


def _deny_at_once(proposal: Proposal, digest_: str, verdict: policy.Verdict) -> Wait:
    """By a rule."""
    under = {"under": list(verdict.under)}
    finding.used(verdict)
    return _denied(proposal, digest_, verdict.by, verdict.why, finding.actor(verdict), under, **under)


def _denied(
    proposal: Proposal, digest_: str, by: str, why: str, actor: audit.Actor, told: Mapping[str, Any], **fields: Any
) -> Wait:
    """Recorded as a denial is, and nobody was asked."""
    now = timezone.now()
    action = _record(
        proposal, digest_, status="denied", decided_by=by, approvals_needed=0, decided_at=now, ended_at=now,
        end_reason=why, **fields,
    )  # fmt: skip
    states.announce(action, status="denied", actor=actor, reason=why, **told)
    return Wait(action.pk)


@transaction.atomic
def start(action_id: str) -> Pass | None:
    """The Pass of an approved action, to whoever moves it to running first; None to everybody else, and when something
    it was approved under holds no longer (then it ends, and nothing runs)."""
    action = Action.objects.select_related("agent").get(pk=action_id)
    if action.status != "approved" or _stopped(action):
        return None
    in_time = Q(start_by__gt=Now()) & order.in_turn()
    if not states.advance(
        action, old="approved", new="running", actor=audit.SYSTEM, where=in_time, started_at=timezone.now()
    ):
        return None
    rows.insert(Execution(action_id=action.pk, nonce=secrets.token_hex(16)))
    return Pass(_MINT, action)


def _stopped(action: Action) -> bool:
    """Ends an approved action whose grounds have gone: it may tighten here, never loosen."""
    if halting.is_stopped(action):
        return True
    agent = action.agent
    if agent is not None:
        if not agent.sandbox_enabled or not agent.may(permissions.SANDBOXES_RUN):
            return cancel_approved(action, f"Agent {agent.name} may no longer use sandboxes, so this did not start.")
        if agent.settings_version != action.profile.get("settings_version"):
            return _settings_changed(action)
        if (verdict := _denied_since(action)).effect == "deny":
            why = f"It was approved; before it started, a rule denied it. {verdict.why}"
            return states.advance(
                action, old="approved", new="denied", actor=finding.actor(verdict), decided_by=verdict.by,
                end_reason=why, under=list(verdict.under),
            )  # fmt: skip
    why = votes.why_too_few(action)
    return bool(why) and cancel_approved(action, why)


def _denied_since(action: Action) -> policy.Verdict:
    """By the rules of now. What one allows or asks for changes nothing: a person has approved it."""
    same = {name: getattr(action, name) for name in finding.Asked.__dataclass_fields__}
    return finding.judge(finding.Asked(**same), only_tighter=True)


def outdated() -> list[str]:
    """Proposals made under Agent Tools that have changed since."""
    versions = Action.objects.filter(status="pending", agent__isnull=False).values_list(
        "pk", "profile__settings_version", "agent__settings_version"
    )
    return [action_id for action_id, then, now in versions if then != now]


def supersede_outdated() -> int:
    # Pending once more: somebody may have ended one between the two questions.
    found = Action.objects.pending().filter(pk__in=outdated()).select_related("agent")
    return sum(_settings_changed(action) for action in found)


def _settings_changed(action: Action) -> bool:
    assert action.agent
    return supersede(action, f"The Agent Tools of {action.agent.name} changed after this was proposed. It was not run.")


def cancel_approved(action: Action, why: str) -> bool:
    return states.advance(
        action, old="approved", new="cancelled", actor=audit.SYSTEM, decided_by="system", end_reason=why
    )


def supersede(action: Action, why: str, *, code: str = "superseded", **more: Any) -> bool:
    """Something that the digest binds has changed: nothing runs. `more`: what its agent is told besides."""
    return states.advance(
        action, old=action.status, new="superseded", actor=audit.SYSTEM, decided_by="system", end_reason=why,
        error={**more, "code": code, "detail": why},
    )  # fmt: skip


def again(action_id: str) -> Pass | None:
    """For an action that was running when the server died: the Pass to ask its runner about it, under the same id.
    The runner runs an id once, so this can never become a second execution."""
    action = Action.objects.filter(pk=action_id, status="running", execution__isnull=False).first()
    return Pass(_MINT, action) if action else None


@transaction.atomic(savepoint=False)
def finish(
    pass_: Pass, *, status: str, result: Mapping[str, Any] | None = None, error: Mapping[str, Any] | None = None
) -> bool:
    """running → succeeded, failed or unknown, once."""
    fields: dict[str, Any] = {"result": result, "error": error, "ended_at": timezone.now()}
    if error:
        fields["end_reason"] = str(error["detail"])
    # Before what `advance` rings with: whoever hears it finds this. In one step: another thread looks.
    transaction.on_commit(lambda: vars(pass_._action).update(fields, status=status) if won else None)
    won = states.advance(pass_._action, old="running", new=status, actor=audit.SYSTEM, **fields)
    return won


@transaction.atomic
def cancel(action: Action, *, by: Caller) -> bool:
    """Its agent takes back what has not started; False when it started or ended before. Nobody has to tell it so: the
    same call proposes anew."""
    for old in ("pending", "approved"):
        if states.advance(
            action, old=old, new="cancelled", actor=by.actor, decided_by="agent", delivered_at=timezone.now(),
            end_reason="Its agent took this back before it started.",
        ):  # fmt: skip
            return True
    return False


def expire() -> int:
    """Ends what waited too long, by the database's clock. Silence is not a denial."""
    ended = 0
    for action in Action.objects.filter(status="pending", expires_at__lte=Now()):
        why = "Nobody decided in time. It was not run: silence is not consent, and this is not a denial."
        ended += _expire(action, "pending", Q(expires_at__lte=Now()), why)
    for action in Action.objects.filter(status="approved", start_by__lte=Now()):
        why = "It was approved but could not start in time. It was not run."
        ended += _expire(action, "approved", Q(start_by__lte=Now()), why)
    return ended


def _expire(action: Action, old: str, due: Q, why: str) -> bool:
    return states.advance(
        action, old=old, new="expired", actor=audit.CLOCK, where=due, decided_by="clock", end_reason=why
    )


def delivered(action_id: str) -> None:
    """Its agent has been given the outcome: the same call proposes anew from here on."""
    Action.objects.filter(pk=action_id, delivered_at=None).exclude(ended_at=None).update(delivered_at=timezone.now())
