"""Ticking a pack: its rules become the workspace's own, in the version that was ticked, and go when it is unticked.

Must never touch a rule that somebody has changed: that is no longer one of the pack.
"""

from dataclasses import dataclass

from django.db import transaction

from approvals import packs
from console.workspaces import permissions
from console.workspaces.members import by_need
from console.workspaces.models import Member, Workspace

from . import acts
from .models import Rule


@dataclass(frozen=True)
class Ticked:
    """A pack, and in which version a workspace has it; None: it is off."""

    pack: packs.Pack
    version: int | None

    @property
    def is_on(self) -> bool:
        return self.version is not None

    @property
    def is_older(self) -> bool:
        return self.version is not None and self.version < self.pack.version


def listed(workspace: Workspace) -> list[Ticked]:
    """In the order of their modules' names."""
    rows = Rule.objects.kept().filter(workspace=workspace).exclude(pack="")
    versions = dict(rows.order_by("pack_version").values_list("pack", "pack_version"))
    return [Ticked(pack, versions.get(name)) for name, pack in sorted(packs.packs().items())]


@transaction.atomic
def tick(name: str, *, by: Member) -> int:
    """How many rules were made; 0 when it is on in this version. An older version of it goes."""
    by_need(by, permissions.RULES_MANAGE)
    pack = packs.named(name)
    own = Rule.objects.kept().filter(workspace=by.workspace, pack=name)
    if own.filter(pack_version=pack.version, suspended_at=None, owner__in=Member.objects.current()).exists():
        return 0
    untick(name, by=by)
    for rule in pack.rules:
        acts.make(
            by=by, effect="allow", tool="run", pattern=rule.pattern, matches=list(rule.matches),
            does_not_match=list(rule.does_not_match), pack=name, pack_version=pack.version,
        )  # fmt: skip
    return len(pack.rules)


@transaction.atomic
def untick(name: str, *, by: Member) -> int:
    by_need(by, permissions.RULES_MANAGE)
    own = Rule.objects.kept().filter(workspace=by.workspace, pack=packs.named(name).name)
    return sum(acts.disable(rule, by=by) for rule in own)
