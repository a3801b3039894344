"""What pages say in words of ours: whole, once, the same as the API, and never as if it were an agent's text."""

import re

import pytest

from approvals import decisions, told
from approvals.models import Action
from console import first_run
from console.pages import draw
from console.workspaces import members, permissions
from tests.approvals.proposals import pending
from tests.pages.test_queue import form_of, queue_url

pytestmark = pytest.mark.django_db


def card(cast, client, action: Action) -> str:
    return client.get(queue_url(cast, action.pk)).content.decode()


def written(cast, size: int) -> Action:
    arguments = {"path": "/work/a", "content": "x" * 4000}
    action = pending(cast.caller(cast.scout), tool="write", arguments=arguments)
    now = action.created_at
    done = {"status": "succeeded", "started_at": now, "ended_at": now, "decided_at": now, "result": {"size": size}}
    Action.objects.filter(pk=action.pk).update(**done)
    return action


def test_our_own_thin_gap_is_no_hidden_character(cast, browser) -> None:
    action = written(cast, 2586)
    pages = [card(cast, browser(cast.alice), action)]
    for name in ("queue", "sandboxes", "audit", "agents", "members", "keys"):
        pages.append(browser(cast.alice).get(f"/w/{cast.workspace.pk}/{name}").content.decode())
    assert "2\u2009586 bytes are in place." in pages[0]
    assert not [page for page in pages if "U+2009" in page]


def test_the_card_says_what_the_agent_was_told(cast, browser) -> None:
    action = pending(cast.caller(cast.scout))
    decisions.decide(action, "deny", by=cast.alice, digest=action.digest, reason="Use <staging>.")
    action.refresh_from_db()
    assert told.ended(action) == "A reviewer denied this. It was not run. Reason: Use <staging>."
    said = "The agent was told: “<span>A reviewer denied this. It was not run. Reason: Use &lt;staging&gt;.</span>”"
    assert said in card(cast, browser(cast.bob), action)


def test_a_missing_reason_is_said_beside_its_field_without_script(cast, browser) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(card(cast, client, action))
    answer = client.post(queue_url(cast, action.pk, "decide"), {**form, "verdict": "deny"})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert re.search(r'id="reason-e" data-reason-missing>.*Say why', page)
    assert 'aria-invalid="true" autofocus' in page
    assert 'class="toast ' not in page
    assert re.search(r'id="reason-e" data-reason-missing hidden>', card(cast, client, action))


def test_a_lost_race_is_said_on_the_card_without_script(cast, browser) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(card(cast, client, action))
    decisions.decide(action, "approve", by=cast.alice, digest=action.digest)
    sent = {**form, "verdict": "deny", "reason": "Too late"}
    page = client.post(queue_url(cast, action.pk, "decide"), sent).content.decode()
    assert re.search(r'class="banner stop refusal".*Alice approved this', page)
    assert "<blockquote>Too late</blockquote>" in page
    assert 'class="toast ' not in page


def test_backticks_of_a_message_are_code_and_its_text_is_escaped() -> None:
    assert draw.words("Needs `a:b` in <i>.") == "Needs <code>a:b</code> in &lt;i&gt;."
    assert draw.words("`<b>` and `\u202e`") == '<code>&lt;b&gt;</code> and `<span class="esc">⟨U+202E⟩</span>`'


def test_a_refusal_of_members_has_no_raw_backticks(cast, browser) -> None:
    data = {"act": "save", "permission": [permissions.AUDIT_READ]}
    page = browser(cast.alice).post(f"/w/{cast.workspace.pk}/members/{cast.alice.pk}", data).content.decode()
    assert "the last member with <code>members:manage</code>" in page


@pytest.mark.parametrize("others", [True, False])
def test_an_owner_is_told_who_else_can_give_and_gets_no_button(cast, browser, others) -> None:
    members.take(cast.scout, permissions.SANDBOXES_RUN, by=cast.alice)
    cast.scout.owner = cast.alice
    cast.scout.save()
    if others:
        members.give(cast.bob, permissions.MEMBERS_MANAGE, by=cast.alice)
    page = browser(cast.alice).get(f"/w/{cast.workspace.pk}/agents/{cast.scout.pk}").content.decode()
    assert 'name="give" value="1"' not in page
    who = "must give it: Bob." if others else "must give it: nobody else has <code>members:manage</code>."
    assert who in page


def test_ones_own_sandboxes_run_is_no_box_to_tick_unless_one_is_alone(cast, browser) -> None:
    members.take(cast.alice, permissions.SANDBOXES_RUN, by=cast.alice)
    members.give(cast.bob, permissions.MEMBERS_MANAGE, by=cast.alice)
    own = f"/w/{cast.workspace.pk}/members/{cast.alice.pk}"
    page = browser(cast.alice).get(own).content.decode()
    assert 'value="sandboxes:run"' not in page
    assert "somebody else must give it: Bob." in page
    members.remove(cast.bob, by=cast.alice)
    assert 'value="sandboxes:run"' in browser(cast.alice).get(own).content.decode()


def test_the_banner_names_the_whole_command(cast, browser, settings, tmp_path) -> None:
    settings.VAR = tmp_path / "my state"
    settings.VAR.mkdir()
    first_run.path().write_text("{}")
    page = browser(cast.alice).get(queue_url(cast)).content.decode()
    assert f"<code>SANDGATE_VAR=&#x27;{settings.VAR}&#x27; bin/up --forget-first-run</code>" in re.sub(
        "</?span.*?>", "", page
    )
    assert '<span class="keep">--forget-first-run</span>' in page


def test_the_default_directory_is_not_named(settings) -> None:
    settings.VAR = first_run.state.CHECKOUT / "var"
    assert first_run.forget_command() == "bin/up --forget-first-run"


def test_the_open_row_stays_marked_when_it_is_fetched_anew(cast, browser) -> None:
    action = pending(cast.caller(cast.scout))
    for open_id, marked in ((action.pk, True), ("", False)):
        row = browser(cast.bob).get(queue_url(cast, action.pk), {"part": "row", "open": open_id}).content.decode()
        assert ('aria-current="true"' in row) is marked


def test_an_empty_queue_promises_once(cast, browser) -> None:
    page = browser(cast.bob).get(queue_url(cast)).content.decode()
    assert page.count("New actions appear here by themselves.") == 1
    assert "<noscript>" in page
