"""Editing on the page: a form with the text, a preview drawn as a card is, and what is put up is what it showed."""

import asyncio
import re

import pytest

from approvals import decisions, gate
from approvals.models import Action, Edit
from console.workspaces import db
from sandboxes import tool_acts
from tests.approvals.proposals import pending
from tests.pages.test_queue import queue_url
from tests.sandboxes.test_lifecycle import running


@pytest.fixture
def action(committed_cast):
    cast = committed_cast
    caller = cast.caller(cast.scout)
    sandbox = running(caller)
    return pending(caller, "echo <b>one</b>\n\necho two\n", sandbox_id=sandbox.pk)


def previewed(client, cast, action, text):
    url = queue_url(cast, action.pk, "edit")
    sent = {"text": text, "digest_before": Action.objects.get(pk=action.pk).digest}
    answer = client.post(url, {**sent, "step": "preview"})
    found = re.search(r'name="digest" value="([0-9a-f]{64})"', answer.content.decode())
    return answer, {**sent, "digest": found[1] if found else ""}


def test_the_form_holds_the_text_byte_for_byte(committed_cast, browser, action) -> None:
    page = browser(committed_cast.bob).get(queue_url(committed_cast, action.pk, "edit")).content.decode()
    assert ">\necho &lt;b&gt;one&lt;/b&gt;\n\necho two\n</textarea>" in page  # HTML drops the first line end


def test_who_edits_on_finds_what_they_typed(committed_cast, browser, action) -> None:
    cast, client = committed_cast, browser(committed_cast.bob)
    _, sent = previewed(client, cast, action, "echo three\n\n\n\n\n")
    page = client.post(queue_url(cast, action.pk, "edit"), {**sent, "step": "again"}).content.decode()
    assert ">\necho three\n\n\n\n\n</textarea>" in page
    assert 'rows="7"' in page
    assert Edit.objects.count() == 0


def test_a_preview_changes_nothing_and_putting_it_up_changes_the_text(committed_cast, browser, action) -> None:
    cast, client = committed_cast, browser(committed_cast.bob)
    answer, sent = previewed(client, cast, action, "echo <i>three</i>\r\necho four\r\n")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "&lt;i&gt;" in page
    assert "<i>three" not in page
    assert Action.objects.get().digest == action.digest
    assert Edit.objects.count() == 0
    done = client.post(queue_url(cast, action.pk, "edit"), {**sent, "step": "put"})
    assert done.status_code == 302
    found = Action.objects.get()
    assert found.arguments["command"] == "echo <i>three</i>\necho four\n"
    assert found.digest == sent["digest"]
    assert found.status == "pending"
    mine = client.get(queue_url(cast, action.pk)).content.decode()
    assert "Nobody approves what they have edited. Alice can." in mine
    assert "data-approve" not in mine
    theirs = browser(cast.alice).get(queue_url(cast, action.pk)).content.decode()
    assert "Edited by Bob" in theirs
    assert "data-approve" in theirs


def test_what_the_preview_did_not_show_is_not_put_up(committed_cast, browser, action) -> None:
    cast, client = committed_cast, browser(committed_cast.bob)
    _, sent = previewed(client, cast, action, "echo three")
    for wrong in ({"text": "echo other"}, {"digest": "0" * 64}, {"digest": ""}, {"digest_before": "1" * 64}):
        answer = client.post(queue_url(cast, action.pk, "edit"), {**sent, **wrong, "step": "put"})
        assert answer.status_code == 409
    assert Action.objects.get().digest == action.digest


def test_the_tool_validates_the_edited_call(committed_cast, browser, action) -> None:
    answer, _ = previewed(browser(committed_cast.bob), committed_cast, action, "   ")
    assert answer.status_code == 409
    assert "is empty" in answer.content.decode()


@pytest.mark.parametrize("command", ["echo a\u200bb", "echo a\rb"])
def test_a_text_that_a_form_would_hide_or_lose_is_not_edited_there(committed_cast, browser, action, command) -> None:
    cast = committed_cast
    other = pending(cast.caller(cast.scout), command, sandbox_id=action.sandbox_id)
    answer = browser(cast.bob).get(queue_url(cast, other.pk, "edit"))
    assert answer.status_code == 409
    assert "<textarea" not in answer.content.decode()


def test_a_card_offers_editing_to_who_may(committed_cast, browser, action) -> None:
    cast = committed_cast
    assert "/edit" in browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()
    url = queue_url(cast, action.pk, "edit")
    assert browser(cast.mallory).get(url).status_code == 404
    assert browser().get(url).status_code == 302
    assert browser(cast.bob).delete(url).status_code == 405
    assert browser(cast.bob).get(queue_url(cast, "act_no", "edit")).status_code == 404
    cast.bob.permissions.filter(name="approvals:review").delete()
    assert "/edit" not in browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()
    assert browser(cast.bob).get(url).status_code == 409


def test_its_outcome_is_told_where_nothing_may_wait_for_the_database(committed_cast, browser, action) -> None:
    cast, client = committed_cast, browser(committed_cast.bob)
    _, sent = previewed(client, cast, action, "echo three")
    client.post(queue_url(cast, action.pk, "edit"), {**sent, "step": "put"})
    found = Action.objects.get()
    decisions.decide(found, "approve", by=cast.alice, digest=found.digest)
    pass_ = gate.start(action.pk)
    assert pass_
    gate.finish(pass_, status="failed", error={"code": "x", "detail": "x"})
    told = asyncio.run(tool_acts.with_text(2, Action.objects.get()))
    db.close()
    assert told["edited"] is True
    assert "+echo three" in told["diff_of_edit"]
    assert "+echo three" in told["text"]
