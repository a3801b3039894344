"""Rows of the warm pool: which workspaces have one, what is in it, who takes something out of it. Plain ORM code.

A pooled sandbox belongs to nobody yet: it counts towards no quota and no door shows it. It is claimed by deleting its
row in the transaction that makes the Sandbox of the same id, so that it cannot be had twice.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Max, Q
from django.utils import timezone

from console.workspaces import permissions
from console.workspaces.models import Agent, Halt, Permission, Workspace

from . import profiles
from .models import PooledSandbox
from .profiles import Profile

USED_WITHIN = timedelta(days=7)
KEPT_FOR = timedelta(hours=1)
"""What it was started with (resolvers, our own runner) may have changed since; nothing in it did."""


@dataclass(frozen=True)
class Wish:
    """What the pool of one workspace should hold."""

    workspace_id: str
    profile: Profile
    size: int


def claim(profile: Profile, *, workspace_id: str, image_id: str) -> PooledSandbox | None:
    """Out of the pool, for the caller's transaction: the oldest that is exactly this."""
    if profile.writable_root:
        return None
    fitting = PooledSandbox.objects.filter(
        workspace_id=workspace_id, image_id=image_id, ready_at__isnull=False, **made_of(profile)
    )
    for found in fitting.order_by("created_at"):
        if forget(found.pk):
            return found
    return None


def made_of(profile: Profile) -> dict[str, Any]:
    return {name: value for name, value in profile.made_of().items() if name != "writable_root"}


def wishes(*, can_network: bool) -> list[Wish]:
    """Of the workspaces that used a sandbox lately and have somebody who may, the latest first: an idle sandbox costs a
    few percent of a core."""
    since = timezone.now() - USED_WITHIN
    used = Workspace.objects.annotate(used_at=Max("sandboxes__created_at")).filter(used_at__gt=since, pool_size__gt=0)
    used = used.exclude(pk__in=Halt.objects.current().filter(agent=None).values("workspace"))
    return [
        Wish(workspace.pk, profiles.pool_profile(workspace, can_network=can_network), workspace.pool_size)
        for workspace in used.order_by("-used_at")
        if _somebody_may(workspace)
    ]


def _somebody_may(workspace: Workspace) -> bool:
    agents = Agent.objects.current().filter(workspace=workspace, sandbox_enabled=True)
    if agents.filter(permissions__name=permissions.SANDBOXES_RUN).exists():
        return True
    current = Q(key__revoked_at=None, key__expires_at__gt=timezone.now(), key__member__removed_at=None)
    keys = Permission.objects.filter(current, workspace=workspace, key__isnull=False)
    return keys.filter(name=permissions.SANDBOXES_RUN).exists()


def fits(row: PooledSandbox, wish: Wish, image_id: str) -> bool:
    """Whether it is what the workspace wants today."""
    same = all(getattr(row, name) == value for name, value in made_of(wish.profile).items())
    return same and row.image_id == image_id and row.created_at > timezone.now() - KEPT_FOR


def every() -> list[PooledSandbox]:
    return list(PooledSandbox.objects.order_by("created_at"))


def begin(wish: Wish, *, image_id: str) -> PooledSandbox:
    """Before its container is made: what has no row is a stray."""
    return PooledSandbox.objects.create(
        workspace_id=wish.workspace_id, image_id=image_id, output_mb=wish.profile.output_mb, **made_of(wish.profile)
    )


def ready(pooled_id: str, **fields: Any) -> bool:
    """From here on it can be claimed. False when it was given up meanwhile."""
    return bool(PooledSandbox.objects.filter(pk=pooled_id).update(ready_at=timezone.now(), **fields))


def forget(pooled_id: str) -> bool:
    """True for the one caller that took it out."""
    return bool(PooledSandbox.objects.filter(pk=pooled_id).delete()[0])
