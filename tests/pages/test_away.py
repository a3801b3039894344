"""Being away and escalation on pages: the forms on Notices, what the card and the browser's notices say of both."""

from datetime import UTC, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from approvals import decisions, escalating
from approvals.models import Action
from console.workspaces import agents, away, permissions, settings
from console.workspaces.models import Member, Workspace
from tests import people
from tests.approvals.plans import planned
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db


def at(cast, name, *rest):
    return reverse(name, args=[cast.workspace.pk, *rest])


def text(answer):
    return " ".join(answer.content.decode().replace("<wbr>", "").split())


def leaves(member, deputy=None):
    away.leave(until=timezone.now() + timedelta(days=2), deputy=deputy, by=member)


def until(member):
    return Member.objects.get(pk=member.pk).away_until


def typed(delta):
    return (timezone.now().astimezone(UTC) + delta).strftime("%Y-%m-%dT%H:%M")


def card(cast, browser, who, action):
    return text(browser(who).get(at(cast, "card", action.pk)))


def test_a_reviewer_says_until_when_they_are_away_and_who_hears_and_is_back(cast, browser):
    bob = browser(cast.bob)
    bob.post(at(cast, "away"), {"until": typed(timedelta(days=2)), "deputy": cast.alice.pk})
    found = Member.objects.get(pk=cast.bob.pk)
    assert (found.is_away, found.deputy) == (True, cast.alice)
    page = text(bob.get(at(cast, "notices")))
    assert f"until {found.away_until:%-d %b %Y, %H:%M} UTC" in page
    assert "Alice is told in your place" in page
    assert "in the place of <b>Bob</b>" in text(browser(cast.alice).get(at(cast, "notices")))
    bob.post(at(cast, "away"), {"back": "1"})
    assert not Member.objects.get(pk=cast.bob.pk).is_away


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"until": "", "deputy": ""}, "a day and a time, in UTC"),
        ({"until": "tomorrow", "deputy": ""}, "a day and a time, in UTC"),
        ({"until": "2020-01-01T10:00", "deputy": ""}, "in the next 180 days"),
        ({"until": "OK", "deputy": "mem_nobody"}, "another member here"),
    ],
)
def test_what_cannot_be_is_said_and_nobody_is_away(cast, browser, sent, said):
    sent = {name: typed(timedelta(days=1)) if value == "OK" else value for name, value in sent.items()}
    page = text(browser(cast.bob).post(at(cast, "away"), sent, follow=True))
    assert said in page
    assert not Member.objects.get(pk=cast.bob.pk).is_away


def test_get_changes_nothing_and_others_have_no_such_form(cast, browser):
    for name in ("away", "escalation"):
        assert browser(cast.alice).get(at(cast, name)).status_code == 405
        assert browser(cast.mallory).post(at(cast, name), {"back": "1"}).status_code == 404
        assert browser().post(at(cast, name)).status_code == 302
    assert browser(cast.bob).post(at(cast, "escalation"), {"after_min": "1"}).status_code == 403
    assert Workspace.objects.get(pk=cast.workspace.pk).escalate_after_min == 0


def test_the_members_page_says_who_is_away(cast, browser):
    assert "away until" not in text(browser(cast.alice).get(at(cast, "members")))
    leaves(cast.bob)
    said = f"away until {until(cast.bob):%-d %b %Y, %H:%M} UTC"
    assert text(browser(cast.alice).get(at(cast, "members"))).count(said) == 1


def test_a_deputy_who_is_away_too_is_said_to_hear_nothing(cast, browser):
    leaves(cast.bob, cast.alice)
    leaves(cast.alice)
    assert "Alice is away too or reviews no more, so notices still come to you." in text(
        browser(cast.bob).get(at(cast, "notices"))
    )


def test_who_manages_the_workspace_sets_when_and_whom(cast, browser):
    alice = browser(cast.alice)
    alice.post(at(cast, "escalation"), {"after_min": "30"})
    page = text(alice.get(at(cast, "notices")))
    assert "after 30 minutes" in page
    assert "Nobody is told. Tick somebody" in page
    alice.post(at(cast, "escalation"), {"after_min": "45", "to": [cast.bob.pk]})
    found = Workspace.objects.get(pk=cast.workspace.pk)
    assert (found.escalate_after_min, found.escalate_to) == (45, [cast.bob.pk])
    page = text(alice.get(at(cast, "notices")))
    assert f'value="{cast.bob.pk}" checked' in page
    assert "Nobody is told. Tick" not in page
    assert "0 (never) to 1440" in text(alice.post(at(cast, "escalation"), {"after_min": "x"}, follow=True))
    assert "When nobody decides" not in text(browser(cast.bob).get(at(cast, "notices")))


def test_a_card_says_that_it_was_escalated_and_to_whom(cast, browser):
    settings.change_workspace(by=cast.alice, escalate_after_min=30, escalate_to=[cast.bob.pk])
    for action in (pending(cast.caller(cast.scout)), planned(cast.caller(cast.scout)).in_order()[0]):
        assert "Nobody had decided" not in card(cast, browser, cast.alice, action)
        Action.objects.update(created_at=timezone.now() - timedelta(hours=1))
        assert escalating.escalate(action.pk)
        assert "Nobody had decided in time, so it was escalated to Bob, <" in card(cast, browser, cast.alice, action)
        assert "so it was escalated to you, <time" in card(cast, browser, cast.bob, action)


def test_a_card_says_who_of_those_it_was_escalated_to_is_away_and_who_is_told_instead(cast, browser):
    cast.carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    settings.change_workspace(by=cast.alice, escalate_after_min=30, escalate_to=[cast.bob.pk, cast.alice.pk])
    action = pending(cast.caller(cast.scout))
    Action.objects.update(created_at=timezone.now() - timedelta(hours=1))
    assert escalating.escalate(action.pk)
    leaves(cast.bob)
    assert "escalated to Alice and Bob (away), <time" in card(cast, browser, cast.carol, action)
    leaves(cast.bob, cast.carol)
    assert "escalated to you and Bob (away, deputy: Carol), <time" in card(cast, browser, cast.alice, action)
    assert "escalated to Alice and Bob (away, deputy: you), <time" in card(cast, browser, cast.carol, action)
    leaves(cast.carol)
    assert "escalated to Alice and Bob (away), <time" in card(cast, browser, cast.carol, action), "none is told instead"


def test_a_card_says_that_all_who_can_are_away_and_who_looks_still_can(cast, browser):
    action = pending(cast.caller(cast.scout))
    leaves(cast.bob)
    assert "are away" not in card(cast, browser, cast.bob, action)
    leaves(cast.alice)
    page = card(cast, browser, cast.bob, action)
    moment = f"{until(cast.alice):%-d %b %Y, %H:%M} UTC"
    assert "All who can approve this are away." in page
    assert f"Alice is away until {moment}." in page
    assert "You are away until" in page
    assert 'value="approve"' in page
    away.come_back(by=cast.bob)
    assert "All who can" not in card(cast, browser, cast.bob, action)


def test_where_several_approve_those_who_are_away_are_not_counted_on(cast, browser):
    cast.carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    agents.change_tools(cast.scout, by=None, approvals_needed=2)
    action = pending(cast.caller(cast.scout))
    leaves(cast.bob)
    assert "of those who can" not in card(cast, browser, cast.alice, action), "two are there"
    decisions.decide(action, "approve", by=cast.alice, digest=action.digest)
    leaves(cast.carol)
    page = card(cast, browser, cast.alice, action)
    assert "1 of 2 approved, by you" in page
    assert "All who can approve this are away. Bob is away until" in page
    away.come_back(by=cast.bob)
    Action.objects.get().decisions.all().delete()
    leaves(cast.alice)
    page = card(cast, browser, cast.bob, action)
    assert "It needs 2 more, and of those who can only you are here." in page


def test_who_owns_the_agent_reads_who_can_and_who_is_away(cast, browser):
    cast.carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    type(cast.scout).objects.filter(pk=cast.scout.pk).update(owner=cast.alice)
    leaves(cast.bob)
    page = card(cast, browser, cast.alice, pending(cast.caller(cast.scout)))
    assert "Carol can. Bob is away until" in page


def test_away_is_no_lack_of_reviewers(cast):
    """That nobody can review is about rights: who is away may come back, and what asks waits for them."""
    for member in (cast.alice, cast.bob):
        leaves(member)
    assert pending(cast.caller(cast.scout)).status == "pending"


def test_a_browser_hears_in_the_place_of_who_is_away_and_their_own_is_quiet(cast, browser):
    agents.change_tools(cast.scout, by=None, reviewers=[cast.bob.pk])
    action = pending(cast.caller(cast.scout))

    def heard(member):
        return browser(member).get(at(cast, "notices-waiting")).json()["items"]

    assert [item["id"] for item in heard(cast.bob)] == [action.pk]
    assert heard(cast.alice) == []
    leaves(cast.bob, cast.alice)
    assert heard(cast.bob) == []
    assert [(item["id"], item["instead_of"]) for item in heard(cast.alice)] == [(action.pk, ["Bob"])]
