"""Being away and escalation by key: the acts of the page Notices, with its permissions."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import escalating
from approvals.models import Action
from console.workspaces import db, permissions
from console.workspaces.models import Member, Workspace
from tests.approvals.proposals import pending

pytestmark = pytest.mark.anyio


@pytest.fixture
def bobs(place):
    return place.workspace_key(place.bob, permissions.APPROVALS_REVIEW)


@pytest.fixture
def managers(place):
    return place.workspace_key(place.alice, permissions.WORKSPACE_MANAGE, permissions.MEMBERS_MANAGE)


def soon():
    return (timezone.now() + timedelta(days=1)).isoformat()


async def test_a_reviewer_is_away_and_back(ask, place, bobs, managers):
    said = await ask("PUT", "/members/me/away", key=bobs, json={"until": soon(), "deputy": place.alice.pk})
    assert said.status_code == 200, said.text
    assert said.json()["deputy"] == place.alice.pk
    listed = {row["id"]: row for row in (await ask.get("/members", key=managers)).json()["items"]}
    assert listed[place.bob.pk]["away_until"] == said.json()["away_until"]
    assert listed[place.alice.pk]["away_until"] is None
    for _ in range(2):
        assert (await ask("DELETE", "/members/me/away", key=bobs)).json() == {"success": True}
    assert (await db.read(Member.objects.get, pk=place.bob.pk)).away_until is None


async def test_one_whose_time_is_over_is_listed_as_there(ask, place, bobs, managers):
    await ask("PUT", "/members/me/away", key=bobs, json={"until": soon(), "deputy": place.alice.pk})
    over = timezone.now() - timedelta(seconds=1)
    await db.write(Member.objects.filter(pk=place.bob.pk).update, away_until=over)
    listed = {row["id"]: row for row in (await ask.get("/members", key=managers)).json()["items"]}
    assert (listed[place.bob.pk]["away_until"], listed[place.bob.pk]["deputy"]) == (None, None)


@pytest.mark.parametrize("body", [{}, {"until": "tomorrow"}, {"until": "2020-01-01T00:00:00Z"}])
async def test_a_time_that_cannot_be_is_named(ask, place, bobs, body):
    answer = await ask("PUT", "/members/me/away", key=bobs, json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "until")


async def test_a_deputy_of_elsewhere_is_nobody(ask, place, bobs):
    answer = await ask("PUT", "/members/me/away", key=bobs, json={"until": soon(), "deputy": place.mallory.pk})
    assert answer.status_code == 404
    assert (await db.read(Member.objects.get, pk=place.bob.pk)).away_until is None


async def test_only_who_reviews_is_away_and_no_agent(ask, place, managers):
    for key in (managers, place.scouts):
        assert (await ask("PUT", "/members/me/away", key=key, json={"until": soon()})).status_code == 403
        assert (await ask("DELETE", "/members/me/away", key=key)).status_code == 403


async def test_escalation_is_a_setting_of_the_workspace_and_shows_on_the_action(ask, place, managers):
    wanted = {"escalate_after_min": 30, "escalate_to": [place.bob.pk]}
    said = await ask("PUT", "/workspace", key=managers, json=wanted)
    assert said.status_code == 200, said.text
    assert {name: said.json()[name] for name in wanted} == wanted
    wrong = await ask("PUT", "/workspace", key=managers, json={"escalate_to": [place.mallory.pk]})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "escalate_to")
    assert (await db.read(Workspace.objects.get, pk=place.workspace.pk)).escalate_to == [place.bob.pk]
    action = await db.write(lambda: pending(place.caller(place.scout)))
    assert (await ask.get(f"/actions/{action.pk}", key=place.scouts)).json()["escalated_at"] is None
    await db.write(Action.objects.update, created_at=timezone.now() - timedelta(minutes=31))
    assert await db.write(escalating.escalate, action.pk)
    found = (await ask.get(f"/actions/{action.pk}", key=place.scouts)).json()
    assert found["status"] == "pending"
    assert found["escalated_at"]
