"""Who may approve for an agent: asked of the database, or of members who are there already, by the same rule."""

from itertools import product

import pytest

from console.workspaces import members, permissions, reviewers
from console.workspaces.models import Agent
from tests import people

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("named", [(), ("bob",), ("alice", "ines"), ("alice", "mallory")])
@pytest.mark.parametrize(("owner", "own"), list(product((None, "alice", "bob"), (True, False))))
def test_of_those_who_review_here_the_able_are_the_same_without_asking(cast, named, owner, own) -> None:
    who = {name: getattr(cast, name) for name in ("alice", "bob", "mallory")}
    who |= {name: people.member(cast.workspace, name, permissions.APPROVALS_REVIEW) for name in ("ines", "gone")}
    agent = Agent.objects.create(
        workspace=cast.workspace, name="a", owner=who.get(owner), self_approval=own,
        reviewers=[who[name].pk for name in named],
    )  # fmt: skip
    members.remove(who["gone"], by=cast.alice)
    there = list(reviewers.in_workspace(cast.workspace.pk))
    able = {member.pk for member in reviewers.able(agent)}
    assert reviewers.able_among(there, agent) == able
    assert {member.pk for member in who.values() if reviewers.may_approve(member, agent)} == able
