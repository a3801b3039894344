"""Agents, Agent Tools, members and keys: thin pages over acts that check by themselves."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import gate
from approvals.models import Action
from console.workspaces import agents, keys, permissions
from console.workspaces.models import Agent, AuditEntry, Key, Member, Permission
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db
PAGES = {
    "agents": permissions.AGENTS_MANAGE,
    "members": permissions.MEMBERS_MANAGE,
    "keys": permissions.KEYS_MANAGE,
    "settings": permissions.WORKSPACE_MANAGE,
}
TOOLS = {"sandbox_enabled": "on", "toolset": "2", "command_mode": "always", "write_mode": "never"}


def url(cast, *parts: str) -> str:
    return "/".join([f"/w/{cast.workspace.pk}", *parts])


@pytest.mark.parametrize("name", PAGES)
def test_each_page_needs_its_own_permission(cast, browser, name) -> None:
    assert browser(cast.alice).get(url(cast, name)).status_code == 200
    refused = browser(cast.bob).get(url(cast, name))
    assert refused.status_code == 403
    assert PAGES[name] in refused.content.decode()
    assert browser(cast.mallory).get(url(cast, name)).status_code == 404
    assert browser().get(url(cast, name)).status_code == 302
    assert browser(cast.alice).put(url(cast, name)).status_code == 405


def test_the_rail_shows_only_what_one_may_see(cast, browser) -> None:
    page = browser(cast.bob).get(url(cast, "queue")).content.decode()
    shown = re.findall(r'href="/w/[^/]+/(\w+)"', page)
    assert not {"agents", "members", "keys", "rules"} & set(shown)
    assert {"agents", "members", "keys"} <= set(
        re.findall(r'href="/w/[^/]+/(\w+)"', browser(cast.alice).get(url(cast, "queue")).content.decode())
    )


def test_an_agent_is_made_with_its_sandbox_off_and_everything_asking(cast, browser) -> None:
    browser(cast.alice).post(url(cast, "agents"), {"name": "ledger", "own": "on"})
    made = Agent.objects.get(name="ledger")
    assert (made.sandbox_enabled, made.command_mode, made.write_mode) == (False, "rules", "rules")
    assert made.owner == cast.alice


@pytest.mark.parametrize("name", ["scout", "", "x" * 61])
def test_a_bad_agent_name_is_said_beside_the_field(cast, browser, name) -> None:
    answer = browser(cast.alice).post(url(cast, "agents"), {"name": name, "own": "on"})
    assert answer.status_code == 400
    page = answer.content.decode()
    assert 'id="name-e"' in page
    assert f'value="{name}"' in page, "what was typed stays"
    assert 'name="own" checked' in page


def test_agent_tools_are_saved_and_audited(cast, browser) -> None:
    browser(cast.alice).post(url(cast, "agents", cast.scout.pk), TOOLS)
    cast.scout.refresh_from_db()
    assert (cast.scout.command_mode, cast.scout.write_mode, cast.scout.settings_version) == ("always", "never", 3)
    assert AuditEntry.objects.filter(event="agent.tools_changed", actor_id=cast.alice.pk).exists()


@pytest.mark.parametrize("bad", [{"toolset": "9"}, {"toolset": "x"}, {"command_mode": "perhaps"}, {"write_mode": ""}])
def test_bad_agent_tools_change_nothing(cast, browser, bad) -> None:
    answer = browser(cast.alice).post(url(cast, "agents", cast.scout.pk), {**TOOLS, **bad})
    assert answer.status_code == 400
    cast.scout.refresh_from_db()
    assert cast.scout.settings_version == 2


def test_agents_of_others_are_not_there(cast, browser) -> None:
    theirs = agents.make(cast.elsewhere, name="theirs", by=None)
    for data in ({}, TOOLS):
        assert browser(cast.alice).post(url(cast, "agents", theirs.pk), data).status_code == 404
    assert browser(cast.alice).get(url(cast, "agents", theirs.pk)).status_code == 404


def test_sandboxes_run_of_an_agent_is_given_and_taken_by_name(cast, browser) -> None:
    client = browser(cast.alice)
    client.post(url(cast, "agents", cast.scout.pk, "run"), {"give": ""})
    assert not cast.scout.may(permissions.SANDBOXES_RUN)
    client.post(url(cast, "agents", cast.scout.pk, "run"), {"give": "1"})
    assert cast.scout.may(permissions.SANDBOXES_RUN)
    cast.alice.permissions.filter(name=permissions.MEMBERS_MANAGE).delete()
    assert client.post(url(cast, "agents", cast.scout.pk, "run"), {"give": ""}).status_code == 403


def test_the_matrix_sets_sandboxes_run_apart(cast, browser) -> None:
    page = browser(cast.alice).get(url(cast, "members")).content.decode()
    assert re.findall(r'<th scope="col" class="apart"><code>(.*?)</code>', page) == ["sandboxes:<wbr>run"]
    assert page.count('class="apart"') == 3


def test_a_new_member_gets_a_first_password_that_is_shown_once(cast, browser) -> None:
    client = browser(cast.alice)
    page = client.post(url(cast, "members"), {"name": "Noor", "email": "noor@example.test"}).content.decode()
    password = re.search(r'<pre class="code secret">(\w+)</pre>', page)[1]
    made = Member.objects.get(user__email="noor@example.test")
    assert made.user.check_password(password)
    assert made.user.password_must_change
    assert not made.permissions.exists()
    assert password not in client.get(url(cast, "members")).content.decode()


def test_somebody_known_is_added_without_a_password(cast, browser) -> None:
    answer = browser(cast.alice).post(url(cast, "members"), {"name": "M", "email": cast.mallory.user.email})
    assert answer.status_code == 302
    assert Member.objects.filter(workspace=cast.workspace, user=cast.mallory.user).exists()


@pytest.mark.parametrize("data", [{"name": "", "email": "a@b.c"}, {"name": "X", "email": "x"}, {}])
def test_a_bad_member_is_not_added(cast, browser, data) -> None:
    assert browser(cast.alice).post(url(cast, "members"), data).status_code == 400


def test_permissions_are_saved_one_by_one(cast, browser) -> None:
    data = {"act": "save", "permission": [permissions.AUDIT_READ, permissions.RULES_MANAGE, "made:up"]}
    browser(cast.alice).post(url(cast, "members", cast.bob.pk), data)
    assert set(cast.bob.permissions.values_list("name", flat=True)) == {"audit:read", "rules:manage"}


def test_nobody_gives_sandboxes_run_to_themselves(cast, browser) -> None:
    cast.alice.permissions.filter(name=permissions.SANDBOXES_RUN).delete()
    answer = browser(cast.alice).post(
        url(cast, "members", cast.alice.pk), {"act": "save", "permission": list(permissions.ALL)}
    )
    assert "to themselves" in answer.content.decode()
    assert not cast.alice.may(permissions.SANDBOXES_RUN)


def test_a_refused_change_of_permissions_comes_back_as_it_was_sent_with_why_at_the_form(cast, browser) -> None:
    """Here: the last one who may manage members takes that from herself, and gives herself something."""
    Permission.objects.filter(member=cast.bob, name=permissions.MEMBERS_MANAGE).delete()
    had = set(cast.alice.permissions.values_list("name", flat=True))
    sent = [permissions.AUDIT_READ, permissions.RULES_MANAGE]
    answer = browser(cast.alice).post(
        url(cast, "members", cast.alice.pk), {"act": "save", "permission": sent}, follow=True
    )
    page = answer.content.decode()
    assert answer.status_code == 400
    assert set(re.findall(r'value="([a-z:]+)" checked', page)) == set(sent)
    assert "last member with" in page[page.index('id="refused"') :].partition("</p>")[0]
    assert 'class="toast' not in page.replace('class="toasts"', "")
    assert set(cast.alice.permissions.values_list("name", flat=True)) == had


def test_a_refused_removal_is_told_where_it_was_asked_for_and_unticks_nothing(cast, browser) -> None:
    had = set(cast.alice.permissions.values_list("name", flat=True)) - {permissions.SANDBOXES_RUN}
    answer = browser(cast.alice).post(url(cast, "members", cast.alice.pk), {"act": "remove"})
    page = answer.content.decode()
    assert had <= set(re.findall(r'value="([a-z:]+)" checked', page))
    assert answer.status_code == 400
    assert "cannot remove yourself" in page[page.index('id="refused"') :].partition("</p>")[0]


def test_a_refused_change_changes_nothing_of_the_form(cast, browser) -> None:
    """The last members:manage stays, and what else stood in the form is not half done."""
    browser(cast.alice).post(url(cast, "members", cast.alice.pk), {"act": "save", "permission": ["audit:read"]})
    assert cast.alice.may(permissions.MEMBERS_MANAGE)
    assert cast.alice.may(permissions.AGENTS_MANAGE)


def test_removing_a_member(cast, browser) -> None:
    bob = browser(cast.bob)
    browser(cast.alice).post(url(cast, "members", cast.bob.pk), {"act": "remove"})
    assert bob.get(url(cast, "queue")).status_code == 302


def test_members_of_others_are_not_there(cast, browser) -> None:
    assert browser(cast.alice).get(url(cast, "members", cast.mallory.pk)).status_code == 404


def secret_on(page: str) -> str:
    return re.search(r'<pre class="code secret">([^<]+)</pre>', page)[1]


def test_an_agent_key_is_shown_once_and_works(cast, browser) -> None:
    client = browser(cast.alice)
    page = client.post(url(cast, "keys"), {"name": "ci", "of": cast.scout.pk, "days": "30"}).content.decode()
    caller = keys.authenticate(secret_on(page))
    assert caller.agent_id == cast.scout.pk
    assert secret_on(page) not in client.get(url(cast, "keys")).content.decode()
    assert Key.objects.get(name="ci").created_by == cast.alice


def test_reloading_the_page_that_shows_a_key_makes_no_second_one(cast, browser) -> None:
    client = browser(cast.alice)
    once = re.search(r'name="once" value="(\w+)"', client.get(url(cast, "keys")).content.decode())[1]
    data = {"name": "ci", "of": cast.scout.pk, "days": "30", "once": once}
    made = client.post(url(cast, "keys"), data).content.decode()
    assert "data-copy-secret" in made
    again = client.post(url(cast, "keys"), data, follow=True).content.decode()
    assert "no second one" in again
    assert 'class="code secret"' not in again
    assert Key.objects.filter(name="ci").count() == 1
    other = re.search(r'name="once" value="(\w+)"', again)[1]
    client.post(url(cast, "keys"), {**data, "once": other})
    assert Key.objects.filter(name="ci").count() == 2


def test_a_workspace_key_is_ones_own_and_never_holds_both(cast, browser) -> None:
    client = browser(cast.alice)
    data = {"name": "mine", "of": "member", "days": "30", "may": ["sandboxes:run", "sandboxes:read"]}
    caller = keys.authenticate(secret_on(client.post(url(cast, "keys"), data).content.decode()))
    assert (caller.member_id, caller.permissions) == (cast.alice.pk, {"sandboxes:run", "sandboxes:read"})
    both = {**data, "name": "both", "may": ["sandboxes:run", "approvals:review"]}
    assert "never both" in client.post(url(cast, "keys"), both).content.decode()
    assert not Key.objects.filter(name="both").exists()


@pytest.mark.parametrize("bad", [{"name": ""}, {"days": "0"}, {"days": "9999"}, {"days": "x"}, {"days": "²"}])
def test_a_bad_key_is_not_made(cast, browser, bad) -> None:
    data = {"name": "ci", "of": cast.scout.pk, "days": "30", **bad}
    assert browser(cast.alice).post(url(cast, "keys"), data).status_code == 400
    assert not Key.objects.filter(agent=cast.scout).exists()


def test_no_key_for_an_agent_of_others(cast, browser) -> None:
    theirs = agents.make(cast.elsewhere, name="theirs", by=None)
    answer = browser(cast.alice).post(url(cast, "keys"), {"name": "x", "of": theirs.pk, "days": "30"})
    assert answer.status_code == 404
    assert not Key.objects.exists()


def test_a_revoked_key_is_refused(cast, browser) -> None:
    secret = cast.key_of(cast.scout)
    key = Key.objects.get()
    assert browser(cast.alice).get(url(cast, "keys", key.pk, "revoke")).status_code == 405
    browser(cast.alice).post(url(cast, "keys", key.pk, "revoke"))
    assert keys.authenticate(secret) is None


def test_names_of_people_and_agents_are_drawn(cast, browser) -> None:
    Agent.objects.filter(pk=cast.scout.pk).update(name="sc\u202eout<b>")
    type(cast.bob.user).objects.filter(pk=cast.bob.user_id).update(name="B\u202eob")
    for parts in (("agents",), ("agents", cast.scout.pk), ("keys",), ("members",), ("members", cast.bob.pk)):
        page = browser(cast.alice).get(url(cast, *parts)).content.decode()
        assert "\u202e" not in page
        assert "out<b>" not in page
        assert "⟨U+202E⟩" in page


def test_an_address_wraps_behind_its_at_and_dots_only(cast, browser) -> None:
    for parts in (("members",), ("members", cast.bob.pk)):
        page = browser(cast.alice).get(url(cast, *parts)).content.decode()
        assert "bob@<wbr>example.<wbr>test</span>" in page
    type(cast.bob.user).objects.filter(pk=cast.bob.user_id).update(email="b\u202e.<i>@example.test")
    page = browser(cast.alice).get(url(cast, "members")).content.decode()
    assert 'b<span class="esc">⟨U+202E⟩</span>.<wbr>&lt;i&gt;@<wbr>example' in page


def test_the_first_keys_are_warned_of_while_they_lie_there(cast, browser, settings, tmp_path) -> None:
    settings.VAR = tmp_path
    assert "first keys" not in browser(cast.alice).get(url(cast, "queue")).content.decode()
    (tmp_path / "first-run.json").write_text("{}")
    assert "first keys" in browser(cast.alice).get(url(cast, "queue")).content.decode()
    assert "first keys" not in browser(cast.bob).get(url(cast, "queue")).content.decode()


def test_protected_names_are_kept_and_a_pattern_that_means_everything_is_said(cast, browser) -> None:
    page = url(cast, "agents", cast.scout.pk)
    alice = browser(cast.alice)
    alice.post(page, TOOLS | {"protected_more": "*.crypt\r\n deploy/*.json \r\n"})
    cast.scout.refresh_from_db()
    assert cast.scout.protected_more == ["*.crypt", "deploy/*.json"]
    assert "*.crypt\ndeploy/*.json</textarea>" in alice.get(page).content.decode()
    answer = alice.post(page, TOOLS | {"protected_more": "**"})
    assert answer.status_code == 400
    assert 'id="protected-e"' in answer.content.decode()


def test_a_path_is_exempt_for_some_hours_and_ended(cast, browser) -> None:
    page, exempt = url(cast, "agents", cast.scout.pk), url(cast, "agents", cast.scout.pk, "exempt")
    alice = browser(cast.alice)
    alice.post(exempt, {"path": "/work/.env", "hours": "8", "reason": "to rotate it"})
    cast.scout.refresh_from_db()
    (kept,) = cast.scout.protected_exempt
    assert (kept["path"], kept["reason"], kept["by"]) == ("/work/.env", "to rotate it", cast.alice.pk)
    shown = alice.get(page).content.decode()
    assert "<code>/work/.env</code>" in shown
    assert "to rotate it" in shown
    row = AuditEntry.objects.filter(event="agent.tools_changed").latest("seq")
    assert row.data["after"]["protected_exempt"] == [kept]
    alice.post(exempt, {"end": "/work/.env"})
    cast.scout.refresh_from_db()
    assert cast.scout.protected_exempt == []


def test_what_a_change_of_settings_ends_is_said_before_after_and_in_the_queue(cast, browser) -> None:
    page, exempt = url(cast, "agents", cast.scout.pk), url(cast, "agents", cast.scout.pk, "exempt")
    waits, alice = pending(cast.caller(cast.scout)), browser(cast.alice)
    assert alice.get(page).content.decode().count("1 action that waits now will not run") == 2
    told = alice.post(exempt, {"path": "/work/.env", "hours": "8", "reason": "to rotate it"}, follow=True)
    assert "1 action that waited will not run" in told.content.decode()
    for old in range(20):  # decided before, they must not crowd it out
        Action.objects.filter(pk=pending(cast.caller(cast.scout), f"old {old}").pk).update(
            status="denied", decided_at=timezone.now() - timedelta(days=1), ended_at=timezone.now()
        )
    gate.supersede_outdated()
    lately = browser(cast.bob).get(url(cast, "queue")).content.decode().partition("Decided lately")[2]
    assert waits.pk in lately
    assert "superseded" in lately


def test_saving_what_was_set_before_ends_nothing_and_says_nothing_of_it(cast, browser) -> None:
    alice, page = browser(cast.alice), url(cast, "agents", cast.scout.pk)
    alice.post(page, TOOLS)
    pending(cast.caller(cast.scout))
    assert "will not run" not in alice.post(page, TOOLS, follow=True).content.decode().partition('id="toasts"')[2]
    changed = alice.post(page, TOOLS | {"command_mode": "never"}, follow=True).content.decode()
    assert "1 action that waited will not run" in changed


@pytest.mark.parametrize(
    ("sent", "said"),
    [({"reason": " "}, "Say why."), ({"path": "/work/notes.txt"}, "/work/notes.txt is not protected")],
)
def test_an_exemption_without_a_reason_or_of_what_needs_none_is_refused(cast, browser, sent, said) -> None:
    asked = {"path": "/work/.env", "hours": "8", "reason": "x"} | sent
    answer = browser(cast.alice).post(url(cast, "agents", cast.scout.pk, "exempt"), asked)
    assert (answer.status_code, said in answer.content.decode()) == (400, True)
    cast.scout.refresh_from_db()
    assert cast.scout.protected_exempt == []


@pytest.mark.parametrize(
    ("path", "hours"), [("work/.env", "8"), ("/work/.env", "0"), ("/work/.env", "721"), ("/", "x")]
)
def test_an_exemption_that_cannot_be_is_said_beside_its_form(cast, browser, path, hours) -> None:
    answer = browser(cast.alice).post(url(cast, "agents", cast.scout.pk, "exempt"), {"path": path, "hours": hours})
    assert answer.status_code == 400
    shown = answer.content.decode()
    assert 'id="exempt-e"' in shown
    assert f'value="{path}"' in shown, "what was typed stays"
    for person in (cast.bob, cast.mallory):
        refused = browser(person).post(url(cast, "agents", cast.scout.pk, "exempt"), {"path": path, "hours": "1"})
        assert refused.status_code in (403, 404)
