"""Rows of sandboxes: made, running, ended. Plain ORM code for `db.read` and `db.write`; the hub does what they say.

Whatever ends a sandbox ends it here: `ended_reason` is always set, and no action waits for a sandbox that is gone.
"""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from approvals import gate
from approvals.errors import NotEnabled, TooMany
from approvals.models import Action
from console.workspaces import audit, permissions
from console.workspaces.errors import NotFound
from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Workspace

from . import limits, profiles, states
from .errors import BoxGone
from .models import Command, Sandbox
from .profiles import NewSandbox
from .toolsets import arguments as check


def check_enabled(caller: Caller) -> None:
    """`sandboxes:run`, and for an agent also its own switch in Agent Tools."""
    caller.need(permissions.SANDBOXES_RUN)
    if caller.agent_id:
        agent = Agent.objects.get(pk=caller.agent_id)
        if not agent.sandbox_enabled:
            raise NotEnabled(agent.name)


@transaction.atomic
def make(caller: Caller, new: NewSandbox, *, image_id: str, can_network: bool) -> Sandbox:
    """The row of a sandbox that is starting; raises before anything runs when it may not."""
    check_enabled(caller)
    Workspace.objects.select_for_update().get(
        pk=caller.workspace_id
    )  # two creates at the limit: one counts after the other
    profile = profiles.resolve(caller, new, can_network=can_network)
    _check_quota(caller)
    sandbox = Sandbox.objects.create(
        workspace_id=caller.workspace_id,
        agent_id=caller.agent_id,
        key_id=caller.key_id,
        conversation=new.conversation,
        label=new.label,
        image_id=image_id,
        env=check.environment(new.env, by_agent=caller.is_agent),
        expires_at=timezone.now() + timedelta(seconds=profile.max_lifetime_s),
        **profile.row(),
    )
    states.announce(sandbox, status="starting", actor=caller.actor, image=profile.image, network=profile.network)
    return sandbox


def _check_quota(caller: Caller) -> None:
    live = Sandbox.objects.live().filter(workspace_id=caller.workspace_id)
    if caller.agent_id and live.filter(agent_id=caller.agent_id).count() >= limits.LIVE_PER_AGENT:
        raise TooMany(
            f"This agent has {limits.LIVE_PER_AGENT} live sandboxes, the most there may be. Delete one first.",
            retry_after=30,
        )
    if live.count() >= limits.LIVE_PER_WORKSPACE:
        raise TooMany(
            f"This workspace has {limits.LIVE_PER_WORKSPACE} live sandboxes, the most there may be. Delete one first.",
            retry_after=30,
        )


def started(sandbox: Sandbox, *, container_id: str, boot: str) -> bool:
    """False when it was deleted while it started: then the caller removes the container."""
    return states.advance(
        sandbox, old="starting", new="running", actor=audit.SYSTEM,
        container_id=container_id, boot=boot, last_activity_at=timezone.now(),
    )  # fmt: skip


@transaction.atomic
def end(
    sandbox: Sandbox, reason: str, *, actor: audit.Actor = audit.SYSTEM, deleted: bool = False, because: str = ""
) -> bool:
    """Ends the row and every action that has not started; True for the one caller that did. Running ones are ended by
    whoever follows them, who learns of it from the engine."""
    fields: dict[str, Any] = {"ended_reason": reason}
    if deleted:
        fields["deleted_at"] = timezone.now()
    current = Sandbox.objects.get(pk=sandbox.pk)
    if current.status == "ended":
        return _forget(current) if deleted else False
    if not states.advance(current, old=current.status, new="ended", actor=actor, **fields):
        return False
    for action in Action.objects.filter(sandbox_id=sandbox.pk, status__in=["pending", "approved"]):
        why = because or f"Sandbox {sandbox.pk} ended ({reason}) before this could start."
        gate.supersede(action, f"{why} It was not run.", code="sandbox_gone")
    return True


def _forget(sandbox: Sandbox) -> bool:
    return bool(Sandbox.objects.filter(pk=sandbox.pk, deleted_at=None).update(deleted_at=timezone.now()))


def find(caller: Caller, sandbox_id: str) -> Sandbox:
    sandbox = Sandbox.objects.visible_to(caller).filter(pk=sandbox_id).first()
    if sandbox is None:
        raise NotFound("sandbox", sandbox_id)
    return sandbox


def find_usable(caller: Caller, sandbox_id: str) -> Sandbox:
    """One that the caller may run things in, ended or not."""
    check_enabled(caller)
    return find(caller, sandbox_id)


def check_live(sandbox: Sandbox) -> None:
    if not sandbox.is_live:
        raise BoxGone(
            f"Sandbox {sandbox.pk} ended ({sandbox.ended_reason}). Create a new one.", reason=sandbox.ended_reason or ""
        )


def touch(sandbox_id: str) -> None:
    Sandbox.objects.filter(pk=sandbox_id).update(last_activity_at=timezone.now())


def overdue(*, divisor: float = 1) -> list[tuple[str, str]]:
    """(id, reason) of what is past its lifetime, or idle with nothing running and nobody being waited for."""
    now = timezone.now()
    busy = set(Action.objects.open().values_list("sandbox_id", flat=True))
    found = []
    for sandbox in Sandbox.objects.live().filter(status="running"):
        if sandbox.created_at + (sandbox.expires_at - sandbox.created_at) / divisor <= now:
            found.append((sandbox.pk, "max_lifetime"))
        elif (
            sandbox.pk not in busy
            and (now - sandbox.last_activity_at).total_seconds() * divisor > sandbox.idle_timeout_s
        ):
            found.append((sandbox.pk, "idle"))
    return found


def end_if_still_idle(sandbox_id: str, reason: str, *, divisor: float = 1) -> bool:
    """Looks again inside the transaction that ends it: activity a moment before the sweep keeps it alive."""
    with transaction.atomic():
        Workspace.objects.select_for_update().filter(sandboxes=sandbox_id).first()
        if (sandbox_id, reason) not in overdue(divisor=divisor):
            return False
        return end(Sandbox.objects.get(pk=sandbox_id), reason, actor=audit.CLOCK)
