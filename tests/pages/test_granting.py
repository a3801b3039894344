"""Approve and grant, on the card, without a script."""

import re

from django.urls import reverse

from approvals.models import Action, Grant
from console.workspaces import agents
from tests.approvals.proposals import pending


def at(cast, name, *more):
    return reverse(name, args=[cast.workspace.pk, *more])


def fields(page: str) -> dict[str, str]:
    return {name: re.search(rf'name="{name}" value="([^"]*)"', page)[1] for name in ("digest", "seen")}


def test_a_card_offers_all_that_would_be_granted_and_gives_it(cast, browser):
    action = pending(cast.caller(cast.scout), "cat notes.txt && wc -l 'a b'")
    client = browser(cast.bob)
    page = client.get(at(cast, "card", action.pk)).content.decode()
    assert "run: cat notes.txt" in page
    assert "run: wc -l &#x27;a b&#x27;" in page
    sent = {"verdict": "grant", "minutes": "30", **fields(page)}
    assert client.post(at(cast, "decide", action.pk), sent).status_code == 302
    grant = Grant.objects.get()
    assert grant.exactly == [["cat", "notes.txt"], ["wc", "-l", "a b"]]
    assert Action.objects.get(pk=action.pk).status == "approved"
    queue = client.get(at(cast, "queue")).content.decode()
    assert "Grants now" in queue
    assert "End now" in queue
    client.post(at(cast, "end-grant", grant.pk))
    assert "Grants now" not in client.get(at(cast, "queue")).content.decode()


def test_what_cannot_be_remembered_is_not_offered(cast, browser):
    action = pending(cast.caller(cast.scout), "cat $HOME")
    assert "Approve and grant" not in browser(cast.bob).get(at(cast, "card", action.pk)).content.decode()


def test_a_grant_takes_the_token_of_the_whole_text_as_an_approval_does(cast, browser):
    action, client = pending(cast.caller(cast.scout), "cat notes.txt"), browser(cast.bob)
    page = client.get(at(cast, "card", action.pk)).content.decode()
    for wrong in ({"seen": "made up"}, {"minutes": "61"}, {"minutes": "x"}, {"digest": "0" * 64}):
        sent = {"verdict": "grant", "minutes": "15", **fields(page), **wrong}
        assert client.post(at(cast, "decide", action.pk), sent).status_code == 409, wrong
    assert Action.objects.get(pk=action.pk).status == "pending"
    assert not Grant.objects.exists()


def test_who_owns_the_agent_is_offered_no_grant(cast, browser):
    cast.scout.owner = cast.bob
    cast.scout.save()
    agents.change_tools(cast.scout, by=cast.alice, toolset=1)
    from console.workspaces import members

    members.give(cast.alice, "approvals:review", by=None)
    action = pending(cast.caller(cast.scout), "cat notes.txt")
    assert "Approve and grant" not in browser(cast.bob).get(at(cast, "card", action.pk)).content.decode()
