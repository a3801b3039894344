"""Rows of sandboxes: made, running, stopped, ended. Plain ORM code for `db.read` and `db.write`; the hub does what they
say.

Whatever ends a sandbox ends it here: `ended_reason` is always set, and no action waits for a sandbox that is gone.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from approvals import gate
from approvals.errors import NotEnabled
from approvals.models import Action
from console.workspaces import agents, audit, halts, ledger, permissions, rows
from console.workspaces.errors import NotFound
from console.workspaces.keys import Caller
from console.workspaces.models import Agent

from . import limits, pooled, profiles, states
from .errors import BoxGone, TooManySandboxes
from .models import Command, Sandbox
from .profiles import NewSandbox
from .toolsets import arguments as check

# Twice in each call: as text, because Django would write it anew each time, which takes longer than it does.
TOUCH = (
    f"UPDATE {Sandbox._meta.db_table} SET last_activity_at = %s, "
    "expires_at = CASE WHEN persistent THEN %s ELSE expires_at END WHERE id = %s"
)


def check_enabled(caller: Caller) -> Agent | None:
    """`sandboxes:run`, no halt, and for an agent also its own switch in Agent Tools. Answers that agent."""
    caller.need(permissions.SANDBOXES_RUN)
    halts.check(caller.workspace_id, caller.agent_id)
    agent = agents.of(caller)
    if agent and not agent.sandbox_enabled:
        raise NotEnabled(agent.name)
    return agent


@transaction.atomic
def make(caller: Caller, new: NewSandbox, *, image_id: str, can_network: bool) -> Sandbox:
    """The row of a sandbox that is starting; raises before anything runs when it may not. With `pooled`, it is that of
    a container which runs already, and which nobody else can claim any more."""
    ledger.hold(caller.workspace_id)  # two creates at the limit, or a halt: one looks after the other
    check_enabled(caller)
    profile = profiles.resolve(caller, new, can_network=can_network)
    _check_quota(caller)
    lives_for = limits.PERSISTENT_FOR if profile.persistent else timedelta(seconds=profile.max_lifetime_s)
    claimed = pooled.claim(profile, workspace_id=caller.workspace_id, image_id=image_id)
    sandbox = Sandbox.objects.create(
        **({"id": claimed.pk, "pooled": True} if claimed else {}),
        workspace_id=caller.workspace_id,
        agent_id=caller.agent_id,
        key_id=caller.key_id,
        conversation=new.conversation,
        label=new.label,
        image_id=image_id,
        env=check.environment(new.env, by_agent=caller.is_agent),
        expires_at=timezone.now() + lives_for,
        max_lifetime_s=profile.max_lifetime_s,
        **profile.row(),
    )
    states.announce(sandbox, status="starting", actor=caller.actor, image=profile.image, network=profile.network)
    return sandbox


def starts_cold(sandbox: Sandbox) -> None:
    """What was claimed does not answer: another container gets its id."""
    Sandbox.objects.filter(pk=sandbox.pk).update(pooled=False)


def _check_quota(caller: Caller) -> None:
    live = Sandbox.objects.live().filter(workspace_id=caller.workspace_id)
    if caller.agent_id and live.filter(agent_id=caller.agent_id).count() >= limits.LIVE_PER_AGENT:
        raise TooManySandboxes(
            f"This agent has {limits.LIVE_PER_AGENT} live sandboxes, the most there may be. Delete one first, or wait "
            "until one that nobody uses has ended.",
            retry_after=30,
        )
    if live.count() >= limits.LIVE_PER_WORKSPACE:
        raise TooManySandboxes(
            f"This workspace has {limits.LIVE_PER_WORKSPACE} live sandboxes, the most there may be. Delete one first, "
            "or wait until one that nobody uses has ended.",
            retry_after=30,
        )


@transaction.atomic
def started(sandbox: Sandbox, *, container_id: str, boot: str, address: str | None = None) -> bool:
    """From starting, or again from stopped. False when it was deleted meanwhile: then its container has to go."""
    if not states.advance(
        sandbox, old=sandbox.status, new="running", actor=audit.SYSTEM,
        container_id=container_id, boot=boot, address=address, started_at=timezone.now(),
    ):  # fmt: skip
        return False
    touch(sandbox.pk)
    return True


def stop(sandbox: Sandbox, reason: str, *, actor: audit.Actor = audit.SYSTEM) -> bool:
    """Its files are kept and what waits in it waits on; nothing of it runs. False when it was not running."""
    return states.advance(
        sandbox, old="running", new="stopped", actor=actor, reason=reason, container_id="", boot="", address=None
    )


@transaction.atomic
def image_replaced(sandbox: Sandbox, image_id: str) -> None:
    """It goes on with what its image is now. What waits in it was shown to a person as something else."""
    sandbox.image_id = image_id
    Sandbox.objects.filter(pk=sandbox.pk).update(image_id=image_id)
    _supersede(sandbox, f"The image of sandbox {sandbox.pk} was replaced while this waited.", code="settings_changed")


@transaction.atomic
def end(
    sandbox: Sandbox, reason: str, *, actor: audit.Actor = audit.SYSTEM, deleted: bool = False, because: str = ""
) -> bool:
    """Ends the row and every action that has not started; True for the one caller that did. Running ones are ended by
    whoever follows them, who learns of it from the engine."""
    fields: dict[str, Any] = {"deleted_at": timezone.now()} if deleted else {}
    current = Sandbox.objects.get(pk=sandbox.pk)
    if current.status == "ended":
        return _forget(current) if deleted else False
    if not states.advance(
        current, old=current.status, new="ended", actor=actor, reason=reason, because=because, **fields
    ):
        return False
    why = because or f"Sandbox {sandbox.pk} ended ({reason}) before this could start."
    _supersede(sandbox, why, code="sandbox_gone")
    return True


def _supersede(sandbox: Sandbox, why: str, *, code: str) -> None:
    for action in Action.objects.filter(sandbox_id=sandbox.pk, status__in=["pending", "approved"]):
        gate.supersede(action, f"{why} It was not run.", code=code)


def _forget(sandbox: Sandbox) -> bool:
    return bool(Sandbox.objects.filter(pk=sandbox.pk, deleted_at=None).update(deleted_at=timezone.now()))


def of_conversation(caller: Caller, conversation: str) -> Sandbox | None:
    """The live one of this agent, or of this member's keys, in that conversation."""
    return _own(caller).filter(conversation=conversation).order_by("created_at").first()


def left(caller: Caller, is_left: Callable[[str], bool]) -> Sandbox | None:
    """The live one not used for longest of those whose conversation `is_left`, and in which nothing runs or waits."""
    for sandbox in _own(caller).filter(persistent=False).exclude(status="starting").order_by("last_activity_at"):
        if is_left(sandbox.conversation) and not _is_at_work(sandbox.pk):
            return sandbox
    return None


def _own(caller: Caller) -> QuerySet[Sandbox]:
    live = Sandbox.objects.live().filter(workspace_id=caller.workspace_id, agent_id=caller.agent_id)
    return live if caller.is_agent else live.filter(key__member_id=caller.member_id)


def _is_at_work(sandbox_id: str) -> bool:
    runs = Command.objects.filter(Q(status="running") | Q(left_running=True), sandbox_id=sandbox_id)
    return runs.exists() or Action.objects.open().filter(sandbox_id=sandbox_id).exists()


def lost_commands(sandbox_id: str) -> list[str]:
    """Their actions: commands whose end nobody will hear of any more."""
    return list(Command.objects.filter(sandbox_id=sandbox_id, status="lost").values_list("action_id", flat=True))


@rows.Question
def _visible(workspace_id: str, agent_id: str | None, sandbox_id: str) -> Any:
    who = Caller("", workspace_id, agent_id=agent_id, member_id=None, permissions=frozenset())
    return Sandbox.objects.visible_to(who).filter(pk=sandbox_id).values_list(*rows.columns(Sandbox))


def find(caller: Caller, sandbox_id: str) -> Sandbox:
    for found in _visible(caller.workspace_id, caller.agent_id, sandbox_id):
        return rows.whole(Sandbox, found)
    raise NotFound("sandbox", sandbox_id)


def find_usable(caller: Caller, sandbox_id: str) -> Sandbox:
    """One that the caller may run things in, ended or not."""
    check_enabled(caller)
    return find(caller, sandbox_id)


def check_live(sandbox: Sandbox) -> None:
    if not sandbox.is_live:
        raise BoxGone(
            f"Sandbox {sandbox.pk} ended ({sandbox.ended_reason}). Create a new one.", reason=sandbox.ended_reason or ""
        )


def ended_meanwhile(sandbox_id: str) -> BoxGone:
    """What its caller is told of one that was not `started` because its row had ended: as that row says."""
    reason = Sandbox.objects.get(pk=sandbox_id).ended_reason or "deleted"
    how = {"deleted": "was deleted", "halted": "was halted by a reviewer"}.get(reason, f"ended ({reason})")
    return BoxGone(f"Sandbox {sandbox_id} {how} while it started.", reason=reason)


def touch(sandbox_id: str) -> None:
    """A sign of life. What a persistent sandbox keeps is kept from now on."""
    now = timezone.now()
    times = map(connection.ops.adapt_datetimefield_value, (now, now + limits.PERSISTENT_FOR))
    rows.ask(TOUCH, [*times, sandbox_id])
