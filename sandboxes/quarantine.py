"""What a halt leaves of sandboxes: their rows end at once, their files are kept for a while, for admins to look at.

Owns which disks are kept, and until when. Plain ORM code for `db.read` and `db.write`. Must never let a disk that is
kept be started again, or be removed before its time by anybody.
"""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from approvals import halting
from console.workspaces import audit, permissions
from console.workspaces.errors import Halted, NotFound
from console.workspaces.members import by_need
from console.workspaces.models import Agent, Halt, Member, Workspace

from . import counters, lifecycle
from .models import Sandbox

KEPT_FOR = timedelta(days=7)


@transaction.atomic
def halt(workspace: Workspace, agent: Agent | None, *, by: Member, reason: str = "", via: str = "page") -> Halt:
    """In one transaction: from its commit on nothing of it waits, starts, or is made. What still runs is ended by the
    host's own loop, which these rows ring; a host that is away finds them when it is back."""
    found, is_new = halting.halt(workspace, agent, by=by, reason=reason, via=via)
    live = Sandbox.objects.live().filter(workspace=workspace)
    for sandbox in live.filter(agent=agent) if agent else live:
        _end(sandbox, by=by)
    if is_new:
        counters.halted("agent" if agent else "workspace")
    return found


def _end(sandbox: Sandbox, *, by: Member) -> None:
    """Its container's id stays in the row until the container is gone: that is how the host finds it."""
    if sandbox.status != "starting":  # which has no files yet
        Sandbox.objects.filter(pk=sandbox.pk).update(quarantined_until=timezone.now() + KEPT_FOR)
    if lifecycle.end(sandbox, "halted", actor=audit.Actor("member", by.pk)):
        counters.reaped("halted")


def running() -> dict[str, str]:
    """Those that a halt ended, with the containers that may still be there."""
    return dict(
        Sandbox.objects.filter(ended_reason="halted").exclude(container_id="").values_list("pk", "container_id")
    )


def down(sandbox_id: str, *, is_kept: bool) -> None:
    """Its container is gone. `is_kept`: its disk is there."""
    fields = {} if is_kept else {"quarantined_until": None}
    Sandbox.objects.filter(pk=sandbox_id).update(container_id="", boot="", address=None, **fields)


def kept() -> set[str]:
    return set(Sandbox.objects.exclude(quarantined_until=None).values_list("pk", flat=True))


def holds(sandbox_id: str) -> bool:
    return Sandbox.objects.filter(pk=sandbox_id).exclude(quarantined_until=None).exists()


def is_halted(sandbox_id: str) -> bool:
    return Sandbox.objects.filter(pk=sandbox_id, ended_reason="halted").exists()


def check_removable(sandbox: Sandbox) -> None:
    if sandbox.quarantined_until is not None:
        raise Halted(
            f"Sandbox {sandbox.pk} was halted, and its files are kept until {sandbox.quarantined_until:%Y-%m-%d %H:%M} "
            "UTC. Then they are removed by themselves."
        )


def due() -> list[str]:
    return list(Sandbox.objects.filter(quarantined_until__lte=timezone.now()).values_list("pk", flat=True))


@transaction.atomic
def end(sandbox_id: str) -> None:
    """It is kept no more from here on."""
    sandbox = Sandbox.objects.get(pk=sandbox_id)
    Sandbox.objects.filter(pk=sandbox_id).update(quarantined_until=None)
    audit.append(
        workspace_id=sandbox.workspace_id, actor=audit.CLOCK, event="sandbox.quarantine_over", subject_id=sandbox_id
    )


@transaction.atomic
def record_download(member: Member, sandbox_id: str) -> None:
    """By who manages agents; raises NotFound when nothing of it is kept."""
    by_need(member, permissions.AGENTS_MANAGE)
    if not Sandbox.objects.visible_to(member).filter(pk=sandbox_id).exclude(quarantined_until=None).exists():
        raise NotFound("sandbox in quarantine", sandbox_id)
    audit.append(
        workspace_id=member.workspace_id, actor=audit.Actor("member", member.pk),
        event="sandbox.quarantine_downloaded", subject_id=sandbox_id,
    )  # fmt: skip
