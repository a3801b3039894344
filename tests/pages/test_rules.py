"""The page Rules: for who may, without a script, and nothing by GET."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone

from approvals import decisions, gate, shell
from approvals.models import Grant, Rule
from approvals.rules import acts, proving, suggesting, ticking
from console.workspaces.models import Member
from tests.approvals.proposals import pending, run

FORM = {
    "effect": "allow", "tool": "run", "pattern": "git status", "ends": "7", "agent": "", "conversation": "",
    "note": "", "must_match": "git status -s", "must_not_match": "git push\r\n",
}  # fmt: skip


def at(cast, name, *more):
    return reverse(name, args=[cast.workspace.pk, *more])


def rule(cast, **fields):
    return acts.make(by=cast.alice, **{"effect": "allow", "tool": "run", "pattern": "git status", **fields})


def test_a_rule_is_added_and_holds_and_is_on_the_list(cast, browser):
    client = browser(cast.alice)
    assert client.post(at(cast, "new-rule"), FORM).status_code == 302
    made = Rule.objects.get()
    assert (made.matches, made.does_not_match, made.owner) == (["git status -s"], ["git push"], cast.alice)
    assert timedelta(days=6) < made.expires_at - timezone.now() < timedelta(days=8)
    page = client.get(at(cast, "rules")).content.decode()
    assert "run: git status" in page
    assert "2 tests" in page
    assert isinstance(gate.submit(run(cast.caller(cast.scout), "git status")), gate.Pass)


def test_a_rule_whose_test_fails_comes_back_as_it_was_typed(cast, browser):
    answer = browser(cast.alice).post(at(cast, "new-rule"), FORM | {"must_match": "git push"})
    assert answer.status_code == 400
    page = answer.content.decode()
    assert "Its own tests fail" in page
    assert 'value="git status"' in page
    assert not Rule.objects.exists()


def test_trying_shows_tests_and_the_last_calls_and_saves_nothing(cast, browser):
    pending(cast.caller(cast.scout), "git status")
    pending(cast.caller(cast.scout), "git push")
    answer = browser(cast.alice).post(at(cast, "new-rule"), FORM | {"act": "try", "must_match": "git log"})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "Of the last 2, with it would have let through 1, denied 0, asked 1" in page
    assert "by this" in page
    assert 'aria-label="fails"' in page
    assert not Rule.objects.exists()


def test_a_change_keeps_what_is_left_and_two_do_not_both_win(cast, browser):
    made = rule(cast, note="kept", expires_at=timezone.now() + timedelta(days=3))
    client, form = browser(cast.alice), FORM | {"ends": "keep", "note": "mine", "version": "1"}
    assert client.post(at(cast, "rule", made.pk), form).status_code == 302
    after = Rule.objects.get(pk=made.pk)
    assert (after.version, after.note, after.expires_at) == (2, "mine", made.expires_at)
    late = client.post(at(cast, "rule", made.pk), form | {"note": "late"})
    assert late.status_code == 400
    assert "meanwhile" in late.content.decode()
    assert Rule.objects.get(pk=made.pk).note == "mine"


def test_the_dry_run_says_what_the_rules_of_now_would_do(cast, browser):
    for line in ("git status", "curl x", "git push"):
        pending(cast.caller(cast.scout), line)
    rule(cast)
    rule(cast, effect="deny", pattern="curl")
    page = browser(cast.alice).get(at(cast, "rules-dry-run")).content.decode()
    assert "Of the last 3, the rules of now would have let through 1, denied 1, asked 1" in page


def test_a_pack_is_turned_on_and_off(cast, browser):
    client = browser(cast.alice)
    assert "Pack “Search”" not in client.get(at(cast, "rules")).content.decode()
    client.post(at(cast, "rules-pack", "search"), {"on": "1"})
    assert "Pack “Search”" in client.get(at(cast, "rules")).content.decode()
    client.post(at(cast, "rules-pack", "search"), {"on": ""})
    assert not any(each.is_on for each in ticking.listed(cast.workspace))
    assert client.post(at(cast, "rules-pack", "made-up"), {"on": "1"}).status_code == 404


def test_a_rule_is_ended_and_a_suspended_one_adopted(cast, browser):
    made, client = rule(cast), browser(cast.alice)
    acts.suspend_of(cast.alice, by=None)
    assert "allows nothing until someone adopts it" in client.get(at(cast, "rules")).content.decode()
    client.post(at(cast, "adopt-rule", made.pk))
    assert "allows nothing" not in client.get(at(cast, "rules")).content.decode()
    client.post(at(cast, "end-rule", made.pk))
    assert client.get(at(cast, "rule", made.pk)).status_code == 404


def test_what_is_always_approved_is_suggested_and_what_was_denied_is_not(cast, browser):
    scout = cast.caller(cast.scout)
    for n in range(3):
        for line in (f"git status x{n}", f"cp a b{n}"):
            action = pending(scout, line)
            decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    action = pending(scout, "cp secret /tmp/x")
    decisions.decide(action, "deny", by=cast.bob, digest=action.digest, reason="no")
    client = browser(cast.alice)
    for query in ("?suggestions=1", "?part=suggestions"):
        page = client.get(at(cast, "rules") + query).content.decode()
        assert "run: git status" in page
        assert "3 approvals of scout in 30 days would have matched; 0 denials would." in page
        assert "run: cp" not in page
    rule(cast, agent=cast.scout)
    assert "3 approvals" not in client.get(at(cast, "rules") + "?part=suggestions").content.decode()


def test_names_and_tests_of_others_are_drawn_as_text(cast, browser):
    rule(cast, agent=cast.scout, conversation="<b>\u202ex", does_not_match=["<i>\u200b"])
    page = browser(cast.alice).get(at(cast, "rules")).content.decode()
    assert "<b>\u202e" not in page
    assert "\u202e" not in page
    assert "\u200b" not in page
    assert "⟨U+202E⟩" in page


def test_the_list_runs_no_tests_and_reads_no_lines(cast, browser, monkeypatch):
    """A workspace has up to 200 rules of up to 200 tests each, and hundreds of decisions to suggest from."""
    made = rule(cast, matches=["git status -s"], does_not_match=["git push"])
    for name in ("read", "read_argv"):
        monkeypatch.setattr(shell, name, lambda _: pytest.fail("a line was read"))
    monkeypatch.setattr(proving, "run", lambda _: pytest.fail("a test was run"))
    page = browser(cast.alice).get(at(cast, "rules")).content.decode()
    assert f'hx-get="{at(cast, "rule-tests", made.pk)}"' in page
    assert f'href="{at(cast, "rule", made.pk)}#tests">2 tests</a>' in page, "without scripts"
    assert 'href="?suggestions=1#suggestions"' in page


@pytest.mark.parametrize("name", ["rule-tests", "rule"])
def test_what_came_of_its_tests_is_on_a_rules_own_page_and_beside_it(cast, browser, name):
    made = rule(cast, matches=["git status -s"], does_not_match=["git push"])
    client = browser(cast.alice)
    page = client.get(at(cast, name, made.pk)).content.decode()
    assert (page.count('aria-label="passes"'), page.count('aria-label="fails"')) == (2, 0)
    assert "2 tests, all pass" in page or name == "rule"
    Rule.objects.update(does_not_match=["git status"])  # as if lines were read in another way than when it was made
    page = client.get(at(cast, name, made.pk)).content.decode()
    assert (page.count('aria-label="passes"'), page.count('aria-label="fails"')) == (1, 1)
    assert "<details open>" in page or name == "rule"


def test_lines_and_tests_are_read_once(cast, monkeypatch):
    made = rule(cast, matches=[f"git status x{n}" for n in range(5)])
    for n in range(4):
        action = pending(cast.caller(cast.scout), f"git log -{n}")
        decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    first, real = (proving.run(made), suggesting.suggest(cast.workspace)), shell.read
    read = []
    monkeypatch.setattr(shell, "read", lambda line: read.append(line) or real(line))
    assert (proving.run(made), suggesting.suggest(cast.workspace)) == first
    assert read == []
    assert first[1][0].approvals == 4


PAGES = ("rules", "rules-dry-run", "new-rule")


def everywhere(cast):
    made = rule(cast)
    action = pending(cast.caller(cast.scout))
    grant = Grant.objects.create(
        workspace=cast.workspace, agent=cast.scout, action=action, sandbox_id="sbx_1", tool="run",
        exactly=[["ls"]], given_by=cast.bob, expires_at=timezone.now() + timedelta(minutes=5),
    )  # fmt: skip
    gets = [at(cast, name) for name in PAGES] + [at(cast, name, made.pk) for name in ("rule", "rule-tests")]
    posts = [at(cast, "new-rule"), at(cast, "rules-pack", "search")]
    posts += [at(cast, name, made.pk) for name in ("rule", "end-rule", "adopt-rule")]
    return gets, posts, at(cast, "end-grant", grant.pk)


def test_others_see_no_rules_and_change_none(cast, browser):
    gets, posts, end_grant = everywhere(cast)
    before = list(Rule.objects.values())
    bob, mallory, nobody = browser(cast.bob), browser(cast.mallory), browser()
    for url in gets:
        assert [bob.get(url).status_code, mallory.get(url).status_code, nobody.get(url).status_code] == [403, 404, 302]
    for url in [*posts, end_grant]:
        assert [mallory.post(url, FORM).status_code, nobody.post(url, FORM).status_code] == [404, 302]
    assert {bob.post(url, FORM).status_code for url in posts} == {403}
    assert list(Rule.objects.values()) == before
    assert Grant.objects.in_force().exists()


def test_nothing_is_changed_by_get(cast, browser):
    gets, posts, end_grant = everywhere(cast)
    client = browser(cast.alice)
    for url in gets:
        assert client.get(url, FORM).status_code == 200
    for url in [*posts[1:2], *posts[3:], end_grant]:
        assert client.get(url).status_code == 405
    assert Rule.objects.count() == 1
    assert Rule.objects.get().version == 1


def test_a_reviewer_ends_a_grant(cast, browser):
    *_, end_grant = everywhere(cast)
    assert browser(cast.bob).post(end_grant).status_code == 302
    assert not Grant.objects.in_force().exists()


def test_a_rule_of_who_left_says_so(cast, browser):
    made = rule(cast)
    Member.objects.filter(pk=cast.bob.pk).update(removed_at=timezone.now())
    Rule.objects.filter(pk=made.pk).update(owner=cast.bob)
    page = browser(cast.alice).get(at(cast, "rules")).content.decode()
    assert "by Bob (left)" in page


@pytest.mark.parametrize(
    "sent", [{"agent": "agt_none"}, {"ends": "soon"}, {"effect": ""}, {"pattern": ""}, {"tool": "x"}]
)
def test_a_form_that_nobody_was_given_is_refused(cast, browser, sent):
    assert browser(cast.alice).post(at(cast, "new-rule"), FORM | sent).status_code == 400
    assert not Rule.objects.exists()


def test_a_tool_is_given_a_mode_of_its_own_in_agent_tools(cast, browser):
    client, url = browser(cast.alice), at(cast, "agent-tools", cast.scout.pk)
    assert 'name="mode_edit"' in client.get(url).content.decode()
    sent = {"sandbox_enabled": "on", "toolset": "2", "command_mode": "rules", "write_mode": "rules"}
    assert client.post(url, {**sent, "mode_edit": "always", "mode_install": "", "mode_stdin": ""}).status_code == 302
    cast.scout.refresh_from_db()
    assert cast.scout.tool_modes == {"edit": "always"}
    assert "edit always" in client.get(at(cast, "agents")).content.decode()
    assert client.post(url, {**sent, "mode_edit": "maybe"}).status_code == 400


def test_no_field_of_a_form_hides_a_function_that_scripts_call_on_forms():
    called = "matches|closest|contains|submit|getAttribute|hasAttribute|setAttribute|querySelector(?:All)?|children"
    for template in Path("templates").rglob("*.html"):
        assert not re.search(rf'name="(?:{called})"', template.read_text()), template
