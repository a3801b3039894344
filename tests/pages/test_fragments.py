"""What a page fetches when something changed: it asks for what it shows and no more, and is no reading of the text."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import gate
from approvals.models import Action, View
from console.pages import cards, looking
from console.workspaces import agents
from tests.approvals.plans import approve, planned
from tests.approvals.proposals import pending
from tests.pages.test_queue import queue_url

pytestmark = pytest.mark.django_db

PARTS = ("row", "votes", "looking", "fate")
WHO_ASKS = 5  # session, user, member, permissions, the action
MOST = {"row": 3, "votes": 7, "looking": 1, "fate": 2}
"""Queries of a part beside those, however much waits."""


def one(cast) -> Action:
    return pending(cast.caller(cast.scout), "echo one\necho two")


def of_plan(cast) -> Action:
    return planned(cast.caller(cast.scout), *(f"echo {number}" for number in range(20))).in_order()[3]


def asked(client, cast, action: Action, part: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(queue_url(cast, action.pk), {"part": part}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert action.pk in answer.content.decode()
    return len(queries)


@pytest.mark.parametrize("made", [one, of_plan])
@pytest.mark.parametrize("part", PARTS)
def test_a_fragment_is_no_reading(cast, browser, part, made) -> None:
    action, client = made(cast), browser(cast.bob)
    asked(client, cast, action, part)
    assert not View.objects.exists()
    asked(client, cast, action, "card")
    assert View.objects.get().member == cast.bob


@pytest.mark.parametrize("made", [one, of_plan])
@pytest.mark.parametrize("query", ["", "?part=card"])
def test_a_head_alone_is_no_reading(cast, browser, made, query) -> None:
    """Its answer has no body."""
    action = made(cast)
    assert browser(cast.bob).head(queue_url(cast, action.pk) + query).status_code == 200
    assert not View.objects.exists()


@pytest.mark.parametrize("made", [one, of_plan])
def test_a_card_that_breaks_off_is_no_reading(cast, browser, made, monkeypatch) -> None:
    action, client = made(cast), browser(cast.bob)
    client.raise_request_exception = False
    monkeypatch.setattr(looking, "names", lambda _: {action.pk: Broken()})
    assert client.get(queue_url(cast, action.pk), {"part": "card"}).status_code == 500
    assert not View.objects.exists()


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("this cannot be drawn")


@pytest.mark.parametrize("made", [one, of_plan])
@pytest.mark.parametrize("part", PARTS)
def test_a_fragment_draws_no_text(cast, browser, part, made, monkeypatch) -> None:
    action, client = made(cast), browser(cast.bob)
    monkeypatch.setattr(cards, "matter", lambda *_: pytest.fail("the whole text was drawn"))
    asked(client, cast, action, part)


@pytest.mark.parametrize("made", [one, of_plan])
@pytest.mark.parametrize("part", PARTS)
def test_a_fragment_asks_the_database_little(cast, browser, part, made) -> None:
    agents.change_tools(cast.scout, by=None, approvals_needed=2)
    action, client = made(cast), browser(cast.bob)
    with looking.at(cast.workspace.pk, cast.alice.pk, action.pk):
        few = asked(client, cast, action, part)
        for number in range(20):
            pending(cast.caller(cast.other), f"echo {number}", conversation=f"c{number}")
        assert asked(client, cast, action, part) == few
    assert few <= WHO_ASKS + MOST[part]


def test_what_became_of_a_plan_costs_the_same_for_two_items_and_for_twenty(cast, browser) -> None:
    client, queries = browser(cast.bob), []
    for length in (2, 20):
        plan = planned(cast.caller(cast.scout), *(f"echo {length} {number}" for number in range(length)))
        approve(plan, cast.bob)
        for item in plan.in_order():
            gate.finish(gate.start(item.pk), status="succeeded", result={"exit_code": 0, "background": True})
        queries.append(asked(client, cast, plan.in_order()[0], "fate"))
    assert queries[0] == queries[1]
