"""What reviewers see of denials before: the difference on the card, the suspension and the form that lifts it."""

import re

import pytest

from approvals import decisions, memory, payloads
from approvals.models import Action, Suspension
from console.workspaces import permissions
from tests.approvals.proposals import pending
from tests.pages.test_queue import queue_url

pytestmark = pytest.mark.django_db


def deny(action, by, reason="use staging"):
    return decisions.decide(action, "deny", by=by, digest=action.digest, reason=reason)


def card(browser, cast, action) -> str:
    return browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()


def written(caller, path, content, **more):
    arguments = {"path": path, "content": content, "mode": None}
    return pending(caller, tool="write", kind="write", arguments=arguments, conversation="c", **more)


def test_a_card_after_a_denial_shows_what_differs_from_what_was_denied(cast, browser):
    caller = cast.caller(cast.scout)
    denied = deny(pending(caller, "cd /work\nrm -rf a\n", conversation="c"), cast.bob, "Not <b>that</b>\u202e")
    page = card(browser, cast, pending(caller, "cd /work\nrm -rf b\n", conversation="c"))
    section = page[page.index('aria-label="Difference from what was denied"') :].split("</section>")[0]
    assert "denied by Bob" in section
    assert "Not &lt;b&gt;that&lt;/b&gt;⟨U+202E⟩" in section
    rows = re.findall(r'<tr class="(\w+)".*?<td class="txt">(.*?)</td>', section)
    plain = [(kind, re.sub("<[^>]*>", "", text).strip()) for kind, text in rows]
    assert plain == [("same", "cd /work"), ("del", "rm -rf a"), ("add", "rm -rf b")]
    assert "After denial" in page
    assert denied.pk != ""


def test_another_path_is_a_difference_though_the_text_is_the_same(cast, browser):
    caller = cast.caller(cast.scout)
    deny(written(caller, "/work/a", "x\n"), cast.bob)
    page = card(browser, cast, written(caller, "/work/b", "x\n"))
    section = page[page.index('aria-label="Difference from what was denied"') :].split("</section>")[0]
    assert section.count('<tr class="del"') == section.count('<tr class="add"') == 1


def test_of_another_tool_the_denied_text_itself_is_shown(cast, browser):
    caller = cast.caller(cast.scout)
    deny(pending(caller, "curl evil.test", conversation="c"), cast.bob)
    page = card(browser, cast, written(caller, "/work/a", "x\n"))
    section = page[page.index('aria-label="Denied before: run"') :].split("</section>")[0]
    assert "curl evil.test" in re.sub("<[^>]*>", "", section)


@pytest.mark.parametrize("what", [{"command": "python3 x.py"}, {"argv": ["python3", "x.py"]}])
def test_another_text_of_the_script_that_is_named_is_a_difference(cast, browser, what):
    caller = cast.caller(cast.scout)
    arguments = {**what, "cwd": "/work", "env": {}, "stdin": "", "timeout_s": 9}

    def asked(text: bytes):
        script = {"path": "/work/x.py", **payloads.keep(payloads.hold(text))}
        return pending(caller, arguments=arguments, script=script, conversation="c")

    deny(asked(b"import os\nprint(1)\n"), cast.bob)
    page = card(browser, cast, asked(b"import os\nprint(2)\n"))
    assert "Denied before, the same" not in page
    section = page[page.index('aria-label="Difference from what was denied"') :].split("</section>")[0]
    changed = re.findall(r'<tr class="(?:del|add)".*?<td class="txt">(.*?)</td>', section)
    assert [re.sub("<[^>]*>", "", text).strip() for text in changed] == ["print(1)", "print(2)"]


def test_a_denied_text_that_cannot_be_shown_leaves_the_card_as_it_is(cast, browser, monkeypatch):
    caller = cast.caller(cast.scout)
    deny(pending(caller, "a", conversation="c"), cast.bob)
    later = pending(caller, "b", conversation="c")
    Action.objects.filter(pk=later.denied_before).update(arguments={"command": {"sha256": "0" * 64, "size": 9}})
    page = card(browser, cast, later)
    assert "could not be compared" in page
    assert 'value="approve"' in page


def test_a_sub_agents_card_shows_what_it_came_out_of_and_nobody_elses(cast, browser):
    caller = cast.caller(cast.scout)
    first = pending(caller, "echo first", conversation="lead")
    second = pending(caller, "echo second", conversation="sub", parent_action=first.pk)
    page = card(browser, cast, pending(caller, "echo third", conversation="sub-sub", parent_action=second.pk))
    chain = page[page.index("Came out of") :].split("</section>")[0]
    assert re.findall(r"<code>(.*?)</code>", chain) == ["echo first", "echo second"]
    foreign = pending(cast.caller(cast.other), "echo foreign")
    page = card(browser, cast, pending(caller, "echo fourth", parent_action=foreign.pk))
    assert "Came out of" not in page
    assert "echo foreign" not in page.split('id="pane"')[1]


def test_a_chain_that_bites_its_tail_ends(cast, browser):
    caller = cast.caller(cast.scout)
    first = pending(caller, "echo first")
    second = pending(caller, "echo second", parent_action=first.pk)
    Action.objects.filter(pk=first.pk).update(parent_action=second.pk)
    assert "Came out of" in card(browser, cast, second)


@pytest.fixture
def suspended(cast):
    for number in range(3):
        deny(pending(cast.caller(cast.scout), f"echo {number}"), cast.bob)
    assert memory.suspended(cast.scout.pk)
    return cast.scout


def lift_url(cast, agent) -> str:
    return f"/w/{cast.workspace.pk}/agents/{agent.pk}/lift"


@pytest.mark.parametrize("page", ["queue", "agents"])
def test_a_suspension_is_shown_and_lifted_where_reviewers_look(cast, browser, suspended, page):
    client, url = browser(cast.alice), f"/w/{cast.workspace.pk}/{page}"
    before = client.get(url).content.decode()
    assert "The rules of scout are suspended." in before
    assert f'action="{lift_url(cast, suspended)}"' in before
    answer = client.post(lift_url(cast, suspended), {"reason": "It was me", "back": page}, follow=True)
    assert answer.redirect_chain[-1][0] == url
    assert "are suspended" not in answer.content.decode()
    assert Suspension.objects.get().lift_reason == "It was me"


def test_a_card_tells_of_its_own_agents_suspension_alone_and_folded(cast, browser, suspended):
    own, other = (pending(cast.caller(agent), "echo card") for agent in (cast.scout, cast.other))
    client = browser(cast.alice)
    assert "are suspended" not in client.get(queue_url(cast, other.pk)).content.decode()
    page = client.get(queue_url(cast, own.pk)).content.decode()
    folded = re.search(r'<details class="brief"><summary>(.*?)</summary>(.*?)</details>', page, re.DOTALL)
    assert folded
    assert "Rules of scout are suspended." in folded[1]
    assert f'action="{lift_url(cast, suspended)}"' in folded[2]


def test_lifting_needs_a_reason_a_reviewer_and_a_post(cast, browser, suspended):
    url = lift_url(cast, suspended)
    assert "Say why" in browser(cast.bob).post(url, {"reason": " "}, follow=True).content.decode()
    assert browser(cast.bob).get(url).status_code == 405
    assert browser().post(url, {"reason": "x"}).status_code == 302  # to sign in
    assert browser(cast.mallory).post(url, {"reason": "x"}).status_code == 404
    cast.bob.permissions.exclude(name=permissions.SANDBOXES_READ).delete()
    assert browser(cast.bob).post(url, {"reason": "x"}).status_code == 403
    assert memory.suspended(suspended.pk)
    assert "Why may they allow again" not in browser(cast.bob).get(queue_url(cast)).content.decode()


def test_the_cool_down_is_set_with_the_other_agent_tools(cast, browser):
    client, url = browser(cast.alice), f"/w/{cast.workspace.pk}/agents/{cast.scout.pk}"
    sent = {"sandbox_enabled": "on", "toolset": "2", "command_mode": "rules", "write_mode": "rules"}
    assert client.post(url, {**sent, "cool_down_min": "5"}).status_code == 302
    cast.scout.refresh_from_db()
    assert cast.scout.cool_down_min == 5
    refused = client.post(url, {**sent, "cool_down_min": "1441"})
    assert refused.status_code == 400
    assert "Cool-down: a whole number of minutes, 0 to 1440." in refused.content.decode()
