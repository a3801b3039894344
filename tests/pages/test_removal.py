"""A member is removed on their page, which first shows what they own; what they had open ends."""

import pytest

from approvals import decisions
from console.workspaces import members
from console.workspaces.models import Agent, Member
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db


def url(cast, *rest):
    return "/".join(["", "w", cast.workspace.pk, *rest])


def remove(cast, browser, member, **heirs):
    return browser(cast.alice).post(url(cast, "members", member.pk), {"act": "remove", **heirs}, follow=True)


@pytest.fixture
def owned(cast):
    Agent.objects.filter(pk=cast.scout.pk).update(owner=cast.bob)
    return cast.scout


def test_the_page_shows_each_agent_and_who_could_take_it_over(cast, browser, owned) -> None:
    page = browser(cast.alice).get(url(cast, "members", cast.bob.pk)).content.decode()
    select = page[page.index(f'name="owner-{owned.pk}"') :].partition("</select>")[0]
    assert "scout is owned from now on by" in page
    assert f'value="{cast.alice.pk}"' in select
    assert f'value="{cast.bob.pk}"' not in select
    assert f'name="owner-{cast.other.pk}"' not in page


def test_an_agent_is_handed_over_or_left_to_nobody(cast, browser, owned) -> None:
    remove(cast, browser, cast.bob, **{f"owner-{owned.pk}": cast.alice.pk})
    owned.refresh_from_db()
    assert owned.owner == cast.alice


def test_one_that_the_form_did_not_show_stops_the_removal(cast, browser, owned) -> None:
    answer = remove(cast, browser, cast.bob)
    assert (answer.status_code, "owns scout as well" in answer.content.decode()) == (400, True)
    assert Member.objects.current().filter(pk=cast.bob.pk).exists()


def test_an_heir_from_elsewhere_is_not_there(cast, browser, owned) -> None:
    assert remove(cast, browser, cast.bob, **{f"owner-{owned.pk}": cast.mallory.pk}).status_code == 404
    assert Member.objects.current().filter(pk=cast.bob.pk).exists()


def test_what_they_approved_is_said_to_be_cancelled(cast, browser) -> None:
    action = pending(cast.caller(cast.scout))
    decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    assert "1 action that they approved did not start" in remove(cast, browser, cast.bob).content.decode()


def test_a_session_of_theirs_is_over_at_the_next_request(cast, browser) -> None:
    bob = browser(cast.bob)
    remove(cast, browser, cast.bob)
    assert bob.get(url(cast, "queue")).status_code == 302
    assert bob.get("/").status_code == 302
    assert "_auth_user_id" not in bob.session


def test_who_is_a_member_elsewhere_stays_signed_in_there_and_sees_nothing_here(cast, browser) -> None:
    members.add(cast.elsewhere, cast.bob.user, by=None)
    bob = browser(cast.bob)
    remove(cast, browser, cast.bob)
    assert bob.get(url(cast, "queue")).status_code == 404
    assert bob.get("/").status_code == 302
    assert "_auth_user_id" in bob.session
