"""A queue of a thousand: those that wait longest are listed, the others counted, and a page costs no more for them."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.models import Action
from console.pages import queue
from tests import people
from tests.approvals.plans import planned
from tests.approvals.proposals import pending
from tests.pages.test_queue import queue_url

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(queue, "MOST_ROWS", 3)


def asked(cast, *conversations: str) -> list[Action]:
    """The first one waits longest."""
    found = []
    for at, conversation in enumerate(conversations):
        action = pending(cast.caller(cast.scout), f"echo {at}", conversation=conversation)
        Action.objects.filter(pk=action.pk).update(created_at=timezone.now() - timedelta(minutes=60 - at))
        found.append(action)
    return found


def waiting_rows(page: str) -> list[str]:
    return re.findall(r'<li class="row[^"]*" data-id="([^"]+)" data-status="pending"', page)


def more(page: str) -> int:
    found = re.search(r"<span data-more>(\d+)</span>", page)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("query", ["", "?part=list"])
def test_conversations_that_wait_longest_are_listed_whole(cast, browser, query) -> None:
    actions = asked(cast, "a", "b", "a", "b", "c", "b", "d")
    page = browser(cast.bob).get(queue_url(cast) + query).content.decode()
    assert waiting_rows(page) == [actions[at].pk for at in (0, 2, 1, 3, 5)]
    assert more(page) == 2
    assert "Deny all 3…" in page
    assert 'href="?all=1"' in page


def test_all_are_listed_for_who_asks(cast, browser) -> None:
    actions = asked(cast, *"abcde")
    page = browser(cast.bob).get(queue_url(cast), {"all": "1"}).content.decode()
    assert waiting_rows(page) == [action.pk for action in actions]
    assert more(page) == 0
    assert "part=list&amp;open=&amp;all=1" in page, "what is loaded anew is all of it again"


def test_a_queue_that_is_not_long_says_nothing_of_more(cast, browser) -> None:
    asked(cast, *"abc")
    page = browser(cast.bob).get(queue_url(cast)).content.decode()
    assert len(waiting_rows(page)) == 3
    assert "data-more" not in page


def test_what_a_row_stands_for_is_not_more(cast, browser) -> None:
    asked(cast, "a", "b")
    planned(cast.caller(cast.other), "one", "two", "three")
    for conversation in "pq":
        pending(cast.caller(cast.other), "echo same", conversation=conversation, idempotency_key=conversation)
    pending(cast.caller(cast.scout), "echo last", conversation="last")
    page = browser(cast.bob).get(queue_url(cast)).content.decode()
    assert len(waiting_rows(page)) == 3, "the plan's row is the third"
    assert more(page) == 3


def test_a_card_of_the_unlisted_opens_beside_the_list(cast, browser) -> None:
    *_, last = asked(cast, *"abcde")
    page = browser(cast.bob).get(queue_url(cast, last.pk)).content.decode()
    assert f'data-id="{last.pk}" data-status="pending" data-card' in page
    assert last.pk not in waiting_rows(page)


def test_a_page_asks_the_same_for_few_and_for_many(cast, browser, monkeypatch) -> None:
    monkeypatch.setattr(queue, "MOST_ROWS", 50)
    client = browser(cast.bob)

    def queries(*more: str) -> int:
        with CaptureQueriesContext(connection) as found:
            client.get(queue_url(cast, *more))
        return len(found)

    first = pending(cast.caller(cast.scout), "echo first", conversation="first")
    queries(first.pk)  # which notes that it was shown
    few = queries(), queries(first.pk)
    for number in range(4):
        agent = people.agent(cast.workspace, f"agent{number}")
        for at in range(5):
            pending(cast.caller(agent), f"echo {at}", conversation=f"c{at}")
    assert (queries(), queries(first.pk)) == few


def test_what_was_decided_lately_is_found_without_reading_all_that_ever_was(cast) -> None:
    found = Action.objects.visible_to(cast.bob).select_related("agent", "plan").lately()[:20].explain()
    assert "USING INDEX action_lately" in found
    assert "TEMP B-TREE" not in found, "nothing is sorted"
