"""Where several approve, who comes after the last approval still finds Deny, until something has started."""

import pytest
from django.urls import reverse

from approvals import decisions, gate
from approvals.models import Action
from approvals.plans import deciding
from console.workspaces import agents, permissions
from tests import people
from tests.approvals.plans import approve, items, planned, states
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db


@pytest.fixture
def approved(cast):
    """By Alice and Bob; Carol comes late."""
    agents.change_tools(cast.scout, by=None, approvals_needed=2)
    cast.carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    action = pending(cast.caller(cast.scout))
    for each in (cast.alice, cast.bob):
        decisions.decide(action, "approve", by=each, digest=action.digest)
    return Action.objects.get()


def card(cast, browser, action, who=None, part=""):
    client = browser(who or cast.carol)
    return client, client.get(reverse("card", args=[cast.workspace.pk, action.pk]) + part).content.decode()


def fate(cast, browser, action):
    return card(cast, browser, action, part="?part=fate")[1]


def test_the_card_offers_deny_alone_and_it_counts(cast, browser, approved):
    client, page = card(cast, browser, approved)
    assert 'value="deny"' in page
    assert 'value="approve"' not in page
    assert "Until it does, you can deny it." in page
    sent = {"verdict": "deny", "digest": approved.digest, "reason": "wait"}
    assert client.post(reverse("decide", args=[cast.workspace.pk, approved.pk]), sent).status_code == 302
    assert Action.objects.get().status == "denied"
    assert 'value="deny"' not in card(cast, browser, approved)[1]


def test_what_has_started_offers_nothing(cast, browser, approved):
    assert gate.start(approved.pk)
    assert 'name="verdict"' not in card(cast, browser, approved)[1]


def test_what_a_page_fetches_as_it_goes_on_says_for_how_long_deny_counts(cast, browser, approved):
    assert "data-deniable" in fate(cast, browser, approved)
    assert gate.start(approved.pk)
    assert "data-deniable" not in fate(cast, browser, approved)


def test_of_a_plan_until_each_of_its_items_has_started(cast, browser):
    agents.change_tools(cast.scout, by=None, approvals_needed=2)
    cast.carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    plan = planned(cast.caller(cast.scout))
    first, *others = items(plan)
    approve(plan, cast.alice)
    assert "data-deniable" not in fate(cast, browser, first), "it waits, and all of its card is fetched"
    approve(plan, cast.bob)
    assert gate.finish(gate.start(first.pk), status="succeeded", result={"exit_code": 0})
    assert "data-deniable" in fate(cast, browser, first)
    for each in others:
        assert gate.finish(gate.start(each.pk), status="succeeded", result={"exit_code": 0})
    assert "data-deniable" not in fate(cast, browser, first)


def test_one_approval_that_was_enough_is_not_undone(cast, browser):
    action = pending(cast.caller(cast.scout))
    decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    assert 'name="verdict"' not in card(cast, browser, action, cast.alice)[1]


def test_who_may_only_look_is_offered_nothing(cast, browser, approved):
    cast.carol.permissions.filter(name="approvals:review").delete()
    assert 'name="verdict"' not in card(cast, browser, approved)[1]


def test_a_plan_offers_deny_alone_for_what_has_not_started(cast, browser):
    agents.change_tools(cast.scout, by=None, approvals_needed=2)
    cast.carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    plan = planned(cast.caller(cast.scout))
    for each in (cast.alice, cast.bob):
        approve(plan, each)
    first, *others = items(plan)
    assert gate.start(first.pk)
    client, page = card(cast, browser, first)
    assert 'value="deny"' in page
    assert 'value="approve"' not in page
    assert "You can deny what of it has not started." in page
    sent = {"verdict": "deny", "digest": deciding.digest_of(plan), "reason": "wait"}
    assert client.post(reverse("decide-plan", args=[cast.workspace.pk, first.pk]), sent).status_code == 302
    assert states(plan) == ["running", *["denied"] * len(others)]
    assert 'name="verdict"' not in card(cast, browser, first)[1]
