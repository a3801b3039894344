"""Several decisions with one press: approving takes what was read, denying takes any, each has its own end."""

import pytest

from approvals.models import Action, View
from console.workspaces import permissions
from tests.approvals.proposals import pending
from tests.pages.test_queue import form_of, queue_url


def url(cast) -> str:
    return f"/w/{cast.workspace.pk}/queue/decide"


def three(cast) -> list[Action]:
    caller = cast.caller(cast.scout)
    return [pending(caller, f"echo {number}", conversation="march") for number in range(3)]


def read(client, cast, action) -> None:
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    assert client.post(queue_url(cast, action.pk, "read"), {"seen": form["seen"]}).status_code == 302


def states(actions) -> list[str]:
    return [Action.objects.get(pk=action.pk).status for action in actions]


def ids(actions) -> list[str]:
    return [action.pk for action in actions]


def test_only_what_was_read_is_approved_and_the_others_are_listed(cast, browser) -> None:
    actions, client = three(cast), browser(cast.bob)
    read(client, cast, actions[1])
    page = client.post(url(cast), {"action": ids(actions), "verdict": "approve"}).content.decode()
    assert states(actions) == ["pending", "approved", "pending"]
    assert "1 of 3 approved" in page
    assert page.count("Not read yet") == 2


def test_opening_a_card_is_not_reading_it(cast, browser) -> None:
    actions, client = three(cast), browser(cast.bob)
    client.get(queue_url(cast, actions[0].pk))
    client.post(url(cast), {"action": ids(actions), "verdict": "approve"})
    assert states(actions) == ["pending"] * 3


def test_what_a_colleague_or_another_session_read_does_not_count(cast, browser) -> None:
    actions = three(cast)
    read(browser(cast.alice), cast, actions[0])
    read(browser(cast.bob), cast, actions[1])
    browser(cast.bob).post(url(cast), {"action": ids(actions), "verdict": "approve"})
    assert states(actions) == ["pending"] * 3


def test_a_text_that_changed_after_it_was_read_is_not_approved(cast, browser) -> None:
    actions, client = three(cast), browser(cast.bob)
    read(client, cast, actions[0])
    Action.objects.filter(pk=actions[0].pk).update(digest="1" * 64)
    client.post(url(cast), {"action": ids(actions), "verdict": "approve"})
    assert states(actions) == ["pending"] * 3


def test_denying_several_asks_why_first_and_then_denies_each(cast, browser) -> None:
    actions, client = three(cast), browser(cast.bob)
    asked = client.post(url(cast), {"action": ids(actions[:2]), "verdict": "deny"})
    assert asked.status_code == 200
    assert "Why not?" in asked.content.decode()
    assert states(actions) == ["pending"] * 3
    again = client.post(url(cast), {"action": ids(actions[:2]), "verdict": "deny", "reason": " "})
    assert (again.status_code, states(actions)) == (400, ["pending"] * 3)
    client.post(url(cast), {"action": ids(actions[:2]), "verdict": "deny", "quick": "Not needed", "reason": ""})
    assert states(actions) == ["denied", "denied", "pending"]
    assert {action.end_reason for action in Action.objects.filter(status="denied")} == {"Not needed"}
    assert {action.decisions.get().via for action in Action.objects.filter(status="denied")} == {"page"}


def test_all_of_a_conversation_are_denied_with_one_press_and_no_other(cast, browser) -> None:
    actions, client = three(cast), browser(cast.bob)
    elsewhere = pending(cast.caller(cast.scout), "echo other", conversation="april")
    others = pending(cast.caller(cast.other), "echo other", conversation="march")
    page = client.get(queue_url(cast)).content.decode()
    assert "Deny all 3…" in page
    asked = client.post(url(cast), {"of": actions[0].pk}).content.decode()
    assert f'name="of" value="{actions[0].pk}"' in asked
    client.post(url(cast), {"of": actions[0].pk, "verdict": "approve", "reason": "Stop it"})
    assert states(actions) == ["denied"] * 3  # a conversation is only ever denied
    assert states([elsewhere, others]) == ["pending"] * 2


def test_one_that_cannot_be_decided_stops_no_other(cast, browser) -> None:
    actions, client = three(cast), browser(cast.bob)
    for action in actions:
        read(client, cast, action)
    cast.scout.owner = cast.bob
    cast.scout.save()
    third = pending(cast.caller(cast.other), "echo theirs")
    read(client, cast, third)
    page = client.post(url(cast), {"action": [*ids(actions), third.pk], "verdict": "approve"}).content.decode()
    assert states([*actions, third]) == ["pending"] * 3 + ["approved"]
    assert "1 of 4 approved" in page
    assert "agent they own" in page


@pytest.mark.parametrize(
    "sent", [{}, {"verdict": "approve"}, {"action": "act_no", "verdict": "deny"}, {"verdict": "x"}]
)
def test_nothing_ticked_or_nothing_said_decides_nothing(cast, browser, sent) -> None:
    actions = three(cast)
    assert browser(cast.bob).post(url(cast), sent).status_code == 302
    assert states(actions) == ["pending"] * 3


def test_nobody_else_decides_here(cast, browser) -> None:
    actions = three(cast)
    sent = {"action": ids(actions), "verdict": "deny", "reason": "no"}
    assert browser(cast.mallory).post(url(cast), sent).status_code == 404
    assert browser().post(url(cast), sent).status_code == 302
    assert browser(cast.bob).get(url(cast)).status_code == 405
    cast.bob.permissions.filter(name=permissions.APPROVALS_REVIEW).delete()
    assert browser(cast.bob).post(url(cast), sent).status_code in (200, 403)
    there = f"/w/{cast.elsewhere.pk}/queue/decide"
    browser(cast.mallory).post(there, sent)
    assert browser(cast.mallory).post(there, {**sent, "of": actions[0].pk}).status_code == 404
    assert states(actions) == ["pending"] * 3


@pytest.mark.parametrize("seen", ["", "0" * 64])
def test_reading_takes_the_token_that_came_with_the_text(cast, browser, seen) -> None:
    action, client = three(cast)[0], browser(cast.bob)
    client.get(queue_url(cast, action.pk))
    answer = client.post(queue_url(cast, action.pk, "read"), {"seen": seen}, headers={"HX-Request": "true"})
    assert answer.status_code == 409
    assert View.objects.get().read_at is None
    assert client.get(queue_url(cast, action.pk, "read")).status_code == 405
    assert browser(cast.mallory).post(queue_url(cast, action.pk, "read"), {"seen": seen}).status_code == 404
