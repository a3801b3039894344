"""Who owns an agent, and therefore does not approve what it proposes.

Owns the hand-over. Must never leave the owner unsaid when a member goes: each agent gets another one, or none.
"""

from collections.abc import Mapping

from django.db import transaction

from . import audit, permissions
from .errors import Conflict, Invalid
from .members import by_need
from .models import Agent, Member

Heirs = Mapping[str, Member | None]
"""By agent's id; None: nobody owns it from now on."""


def owned(member: Member) -> list[Agent]:
    return list(member.owned_agents.filter(archived_at=None).order_by("name"))


@transaction.atomic
def hand_over_all(member: Member, heirs: Heirs, *, by: Member) -> None:
    """Every agent of `member`, archived ones too. Raises Conflict for one that `heirs` does not name: whoever removes a
    member has seen all of them."""
    for agent in owned(member):
        if agent.pk not in heirs:
            raise Conflict(f"{member} owns {agent.name} as well. Say who takes it over, then remove them.")
        hand_over(agent, heirs[agent.pk], by=by)
    for agent in member.owned_agents.exclude(archived_at=None):
        hand_over(agent, None, by=by)


@transaction.atomic
def hand_over(agent: Agent, to: Member | None, *, by: Member) -> None:
    by_need(by, permissions.MEMBERS_MANAGE)
    if to is not None and (to.workspace_id != agent.workspace_id or not to.is_current or to.pk == agent.owner_id):
        raise Invalid(f"{to} cannot take {agent.name} over: choose another member of this workspace.", field="owner")
    before, agent.owner = agent.owner_id, to
    agent.save(update_fields=["owner"])
    audit.append(
        workspace_id=agent.workspace_id, actor=audit.Actor("member", by.pk), event="agent.owner_changed",
        subject_id=agent.pk, before=before or "", owner=to.pk if to else "",
    )  # fmt: skip
