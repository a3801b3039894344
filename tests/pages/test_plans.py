"""The card of a plan: all of it on one page, ticks, one act; and what became of each item."""

import re

import pytest

from approvals import gate
from approvals.models import Action
from console.workspaces import permissions
from tests.approvals.plans import items, planned, states
from tests.pages.test_queue import form_of, queue_url

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan(cast):
    commands = ("make build", "cat <<'E'\n<script>alert(1)</script>\nE\n", "rm -rf out")
    return planned(cast.caller(cast.scout), *commands, title="Release <b>", reason="It is *fine*")


def url(cast, plan, *more):
    return queue_url(cast, items(plan)[0].pk, *more)


def send(client, cast, plan, verdict, *ticked, **more):
    form = form_of(client.get(url(cast, plan)).content.decode())
    sent = {**form, "verdict": verdict, "item": [items(plan)[at].pk for at in ticked], **more}
    return client.post(url(cast, plan, "decide-plan"), sent)


def test_every_item_is_on_the_page_whole_before_the_form(cast, browser, plan):
    page = browser(cast.bob).get(url(cast, plan)).content.decode()
    assert '<b class="prog">make</b>' in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert '<b class="prog">rm</b>' in page
    assert "Release &lt;b&gt;" in page
    assert "<script>alert" not in page
    assert "<b>Release" not in page.replace("<b>Release &lt;", "")
    assert max(found.start() for found in re.finditer("End of command", page)) < page.index('<form class="decide"')
    assert len(re.findall(r'<input type="checkbox" name="item" value="act_\w+" form="decide-plan" checked', page)) == 3


def test_any_item_leads_to_the_card_of_the_whole(cast, browser, plan):
    page = browser(cast.bob).get(queue_url(cast, items(plan)[2].pk)).content.decode()
    assert "wants to do 3 things, in order" in page
    assert '<b class="prog">make</b>' in page


def test_the_queue_has_one_row_for_it(cast, browser, plan):
    page = browser(cast.bob).get(queue_url(cast)).content.decode()
    assert page.count("A plan of 3: Release &lt;b&gt;") == 1
    assert page.count('<li class="row') == 1
    assert f'data-items="{" ".join(item.pk for item in items(plan))}"' in page


def test_all_ticked_all_are_approved_without_script(cast, browser, plan):
    answer = send(browser(cast.bob), cast, plan, "approve", 0, 1, 2)
    assert answer.status_code == 302
    assert states(plan) == ["approved"] * 3
    assert {item.decisions.get().via for item in items(plan)} == {"page"}


def test_what_is_not_ticked_is_denied_with_the_reason_beside_it(cast, browser, plan):
    send(browser(cast.bob), cast, plan, "approve", 0, 1, left_out_reason="Keep out")
    assert states(plan) == ["approved", "approved", "denied"]
    assert items(plan)[2].end_reason == "Keep out"


def test_left_out_without_a_reason_decides_nothing_and_the_ticks_stay(cast, browser, plan):
    answer = send(browser(cast.bob), cast, plan, "approve", 0, 1)
    assert answer.status_code == 409
    assert "Say why items are left out" in answer.content.decode()
    assert answer.content.decode().count('form="decide-plan" checked') == 2
    assert states(plan) == ["pending"] * 3


def test_nothing_ticked_decides_nothing(cast, browser, plan):
    assert send(browser(cast.bob), cast, plan, "approve", left_out_reason="x").status_code == 409
    assert states(plan) == ["pending"] * 3


def test_denied_with_a_chip(cast, browser, plan):
    send(browser(cast.bob), cast, plan, "deny", 0, quick="Too broad")
    assert states(plan) == ["denied"] * 3
    assert {item.end_reason for item in items(plan)} == {"Too broad"}


@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"seen": ""}, {"seen": "x:y"}, {"verdict": "maybe"}])
def test_what_was_not_shown_cannot_be_approved(cast, browser, plan, change):
    client = browser(cast.bob)
    form = form_of(client.get(url(cast, plan)).content.decode())
    sent = {**form, "verdict": "approve", "item": [item.pk for item in items(plan)], **change}
    client.post(url(cast, plan, "decide-plan"), sent)
    assert states(plan) == ["pending"] * 3


def test_the_token_of_another_session_or_of_one_item_is_worth_nothing(cast, browser, plan):
    theirs = form_of(browser(cast.alice).get(url(cast, plan)).content.decode())
    ids = [item.pk for item in items(plan)]
    browser(cast.bob).post(url(cast, plan, "decide-plan"), {**theirs, "verdict": "approve", "item": ids})
    client = browser(cast.bob)
    form = form_of(client.get(url(cast, plan)).content.decode())
    client.post(url(cast, plan, "decide"), {**form, "verdict": "approve"})
    assert states(plan) == ["pending"] * 3


def test_an_item_that_cannot_be_drawn_leaves_only_denying(cast, browser, plan):
    Action.objects.filter(plan=plan, plan_place=2).update(
        arguments={"command": {"sha256": "0" * 64, "size": 9}, "cwd": "/work", "timeout_s": 1}
    )
    page = browser(cast.bob).get(url(cast, plan)).content.decode()
    assert "data-approve" not in page
    assert "the plan can only be denied" in page
    assert form_of(page)["seen"] == ""


def test_once_decided_the_card_says_what_became_of_each(cast, browser, plan):
    send(browser(cast.bob), cast, plan, "approve", 1, 2, left_out_reason="Keep out")
    pass_ = gate.start(items(plan)[1].pk)
    gate.finish(pass_, status="succeeded", result={"exit_code": 3})
    for part in ("", "?part=fate"):
        page = browser(cast.bob).get(url(cast, plan) + part).content.decode()
        assert "left out" in page
        assert "exit 3" in page
        assert "ended with exit code 3" in page
        assert 'name="verdict"' not in page


def test_who_may_only_look_has_no_ticks(cast, browser, plan):
    cast.alice.permissions.filter(name=permissions.APPROVALS_REVIEW).delete()
    page = browser(cast.alice).get(url(cast, plan)).content.decode()
    assert 'name="item"' not in page
    assert "Deciding needs" in page


def test_others_have_no_such_plan(cast, browser, plan):
    mallory = browser(cast.mallory)
    assert mallory.get(url(cast, plan)).status_code == 404
    own = f"/w/{cast.elsewhere.pk}/queue/{items(plan)[0].pk}/decide-plan"
    assert mallory.post(own, {"verdict": "deny", "reason": "x"}).status_code == 404
    assert browser(cast.bob).get(url(cast, plan, "decide-plan")).status_code == 405
    assert browser().post(url(cast, plan, "decide-plan"), {"verdict": "deny"}).status_code in (302, 403)
    assert states(plan) == ["pending"] * 3


def test_an_item_is_not_edited(cast, browser, plan):
    client = browser(cast.bob)
    assert "/edit" not in client.get(url(cast, plan)).content.decode()
    assert client.get(url(cast, plan, "edit")).status_code == 409


def test_deny_and_halt_denies_all_of_it(cast, browser, plan):
    sent = {"agent": cast.scout.pk, "action": items(plan)[0].pk, "reason": "Odd"}
    browser(cast.bob).post(f"/w/{cast.workspace.pk}/halt", sent)
    assert states(plan) == ["denied"] * 3
