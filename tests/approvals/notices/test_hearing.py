"""Who hears of what waits where several approve: not of what they have approved, at the cost of a few questions."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import decisions, edits
from approvals.models import Action
from approvals.notices import acts, planning
from approvals.notices.hearing import Hearing
from approvals.notices.models import Webhook
from console.workspaces import agents, permissions
from console.workspaces.models import Agent
from tests import people
from tests.approvals.proposals import pending, run


@pytest.fixture
def several(cast):
    cast.carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    cast.dan = people.member(cast.workspace, "dan", *permissions.PRESETS["reviewer"])
    for member in (cast.bob, cast.carol):
        acts.set_own_email(on=True, by=member)
    return cast


def asking(cast, number):
    """An agent that takes 3 approvals, and what it asks for."""
    agent = agents.change_tools(people.agent(cast.workspace, f"agent{number}"), by=None, approvals_needed=3)
    return pending(cast.caller(agent), f"echo {number}", profile={"settings_version": agent.settings_version})


def approve(action, *members):
    for member in members:
        found = Action.objects.get(pk=action.pk)
        decisions.decide(found, "approve", by=member, digest=found.digest)


def edit(cast, action, command, by):
    found = Action.objects.get(pk=action.pk)
    edited = run(cast.caller(found.agent), command, profile=found.profile)
    edits.put(found, edited, by=by, digest_before=found.digest)


def heard(cast, member):
    hearing = Hearing(cast.workspace.pk, planning.waiting([cast.workspace.pk])[cast.workspace.pk])
    return set(hearing.by(member, lambda _: frozenset({"waiting"})))


def test_each_hears_of_what_they_have_not_approved_as_it_is_now(several):
    one, two, three = (asking(several, number) for number in range(3))
    approve(one, several.bob, several.carol)
    approve(two, several.bob)
    assert heard(several, several.bob) == {three.pk}
    assert heard(several, several.carol) == {two.pk, three.pk}
    for command in ("echo other", "echo 0"):
        edit(several, one, command, several.dan)
    assert Action.objects.get(pk=one.pk).digest == one.digest
    assert heard(several, several.bob) == {one.pk, three.pk}, "what it was before it was edited counts no more"


def test_who_could_not_approve_now_what_they_approved_hears_of_it(several):
    """As they do of what they edited, which others approve."""
    action = asking(several, 1)
    edit(several, action, "echo other", several.bob)
    Agent.objects.update(self_approval=True)
    approve(action, several.bob)
    assert heard(several, several.bob) == set()
    Agent.objects.update(self_approval=False)
    assert heard(several, several.bob) == {action.pk}


def test_it_asks_the_same_for_one_vote_and_for_many(several):
    ids = [asking(several, 0).pk]

    def queries(ask) -> int:
        with CaptureQueriesContext(connection) as found:
            ask()
        return len(found)

    def all_of_them() -> list[int]:
        hook = Webhook.objects.get(member=several.bob)
        return [queries(planning.due), queries(lambda: planning.heard(hook, ids))]

    approve(Action.objects.get(), several.bob, several.carol)
    edit(several, Action.objects.get(), "echo edited", several.dan)
    approve(Action.objects.get(), several.bob, several.carol)
    few = all_of_them()
    for number in range(1, 6):
        action = asking(several, number)
        edit(several, action, f"echo edited {number}", several.dan)
        approve(action, several.bob, several.carol)
        ids.append(action.pk)
    assert all_of_them() == few
    approve(action, several.alice)
    assert all_of_them() == few, "and nothing of what is decided"
