"""A write whose content came while it was written: nobody had to look at it, and no page fails of it."""

import pytest

from approvals.models import Action
from console.pages import cards, rows
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[None, 5_000_000], ids=["chunked", "with a length"])
def action(cast, request) -> Action:
    arguments = {"path": "/work/a", "mode": None, "content": {"streamed": True, "size": request.param}}
    return pending(cast.caller(cast.scout), tool="write", kind="write", arguments=arguments)


def test_its_row_says_what_is_known(action):
    size = action.arguments["content"]["size"]
    assert rows.of([action])[0].size == ("streamed" if size is None else "5\u2009000\u2009000 bytes")


def test_its_card_says_that_it_was_not_kept(action):
    found = cards.matter(action)
    assert found.undrawable == ""
    assert "streamed, so it was not kept; the result has its size and hash" in found.sheets[0].about
