"""Who hears of what waits in a workspace: reviewers of what they may approve and have not yet; a second group of what
nobody decided in time; and in the place of who is away their deputy. Facts read once, for one round.

Must never widen who may do what: a deputy who may not approve hears, and can only deny.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from approvals import votes
from console.workspaces import away, reviewers
from console.workspaces.models import Agent, Member

from .deciding import Waiting

Chosen = Callable[[Member], frozenset[str]]
"""Under which reasons a member wants to be told of what they may approve."""


@dataclass(frozen=True)
class Heard:
    """Of one action, by one member: under which reasons, and in whose place."""

    reasons: frozenset[str] = frozenset()
    instead_of: tuple[Member, ...] = ()


class Hearing:
    def __init__(self, workspace_id: str, waiting: Iterable[Waiting]) -> None:
        self._waiting = list(waiting)
        self.reviewers = list(reviewers.in_workspace(workspace_id).select_related("user"))
        present = {member.pk for member in self.reviewers if not member.is_away}
        self._hearer = {member.pk: away.hearer(member, present) for member in self.reviewers}
        agents = Agent.objects.filter(pk__in={each.agent_id for each in self._waiting}, workspace_id=workspace_id)
        self._able = {agent.pk: reviewers.able_among(self.reviewers, agent) for agent in agents}

    def by(self, member: Member, chosen: Chosen) -> dict[str, Heard]:
        """What `member` hears of now, by action. In the place of others, also under the reasons that those chose."""
        found: dict[str, Heard] = {}
        for each in self._heard_through(member):
            for action_id, reasons in self._own(each, chosen(each) | chosen(member)).items():
                before = found.get(action_id, Heard())
                others = (*before.instead_of, each) if each.pk != member.pk else before.instead_of
                found[action_id] = Heard(before.reasons | reasons, others)
        return found

    @cached_property
    def _approved(self) -> dict[str, set[str]]:
        return votes.waiting_after(self.reviewers, [action.id for action in self._waiting])

    def _heard_through(self, member: Member) -> list[Member]:
        return [each for each in self.reviewers if self._hearer[each.pk] == member.pk]

    def _own(self, member: Member, chosen: frozenset[str]) -> dict[str, frozenset[str]]:
        """What is theirs to hear of, whoever hears it."""
        found = {action.id: self._reasons(member, chosen, action) for action in self._waiting}
        if any(found.values()):
            for action_id in self._approved.get(member.pk, ()):
                found.pop(action_id, None)
        return {action_id: reasons for action_id, reasons in found.items() if reasons}

    def _reasons(self, member: Member, chosen: frozenset[str], action: Waiting) -> frozenset[str]:
        may = chosen if member.pk in self._able.get(action.agent_id, ()) else frozenset()
        return may | {"escalated"} if member.pk in action.escalated_to else may
