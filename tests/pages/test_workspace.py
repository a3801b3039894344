"""The workspace's settings, and what Agent Tools say about an agent's sandboxes."""

import re

import pytest

from console.workspaces import agents, permissions, settings
from console.workspaces.models import Agent, AuditEntry, Workspace
from sandboxes.models import NetworkException

pytestmark = pytest.mark.django_db
FORM = {
    "images": "team/tools:2\r\n\r\n other ",
    "pool_size": "2",
    "memory_mb.most": "2048",
    "idle_timeout_s.default": "7.5",
}
TOOLS = {"sandbox_enabled": "on", "toolset": "2", "command_mode": "rules", "write_mode": "rules"}
SANDBOX = {
    "network": "none", "persistent_allowed": "on", "images": "scouts/own", "memory_mb.default": "256",
    "max_lifetime_s.most": "2",
}  # fmt: skip


def at(cast, *parts: str) -> str:
    return "/".join([f"/w/{cast.workspace.pk}", *parts])


def field(page: str, name: str) -> dict[str, str]:
    found = re.search(rf'<input name="{re.escape(name)}"[^>]*>', page)
    assert found
    return dict(re.findall(r'([a-z-]+)="([^"]*)"', found[0]))


def test_what_is_saved_is_kept_audited_and_shown(cast, browser) -> None:
    client = browser(cast.alice)
    assert client.post(at(cast, "settings"), FORM).status_code == 302
    kept = Workspace.objects.get(pk=cast.workspace.pk)
    assert kept.limits == {"memory_mb": {"most": 2048}, "idle_timeout_s": {"default": 450}}
    assert (kept.images, kept.pool_size) == (["team/tools:2", "other"], 2)
    assert AuditEntry.objects.filter(event="workspace.settings_changed", actor_id=cast.alice.pk).exists()
    page = client.get(at(cast, "settings")).content.decode()
    assert field(page, "memory_mb.most")["value"] == "2048"
    assert field(page, "memory_mb.default") | {"value": "", "placeholder": "512"} == field(page, "memory_mb.default")
    assert field(page, "idle_timeout_s.default")["value"] == "7.5"
    assert "team/tools:2\nother</textarea>" in page


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("memory_mb.most", "9", "Memory, at most: at least 128 MB."),
        ("memory_mb.default", "lots", "Memory, default: a whole number."),
        ("cpus.most", "nan", "Processors, at most: a number."),
        ("cpus.most", "inf", "Processors, at most: at most 64."),
        ("idle_timeout_s.default", "1.001", "Idle time, default: a whole number of seconds."),
        ("max_lifetime_s.most", "0.001", "Lifetime, at most: at least 0.02 h."),
    ],
)
def test_a_limit_that_cannot_be_is_said_at_its_field_and_what_was_typed_stays(cast, browser, name, typed, says) -> None:
    answer = browser(cast.alice).post(at(cast, "settings"), {**FORM, name: typed})
    assert answer.status_code == 400
    page = answer.content.decode()
    wrong = field(page, name)
    assert (wrong["value"], wrong["aria-invalid"]) == (typed, "true")
    assert page.count('aria-invalid="true"') == 1
    assert says in page[page.index(f'id="{name}-e"') :]
    assert "team/tools:2" in page
    assert Workspace.objects.get(pk=cast.workspace.pk).limits == {}


@pytest.mark.parametrize(("name", "typed"), [("pool_size", "many"), ("pool_size", "99"), ("images", "a b")])
def test_a_bad_image_or_pool_is_said_too(cast, browser, name, typed) -> None:
    answer = browser(cast.alice).post(at(cast, "settings"), {**FORM, name: typed})
    assert answer.status_code == 400
    assert 'aria-invalid="true"' in answer.content.decode()
    assert Workspace.objects.get(pk=cast.workspace.pk).images == []


def test_every_wrong_field_is_named_at_once_in_its_labels_words(cast, browser) -> None:
    wrong = {
        "cpus.default": "0",
        "memory_mb.most": "x",
        "memory_mb.default": "9000",
        "pool_size": "99",
        "images": "a b",
    }
    page = browser(cast.alice).post(at(cast, "settings"), FORM | wrong).content.decode()
    for words in ("Processors, default: at least 0.1.", "Memory, at most: a whole number.", "How many: 0 to 8."):
        assert words in page
    assert "<code>a b</code> is no name of an image" in page
    assert "Nothing was changed: 4 fields are not right." in page
    assert "aria-invalid" not in field(page, "memory_mb.default"), "what it is held against was wrong, not it"
    assert "limits." not in page


def test_a_default_above_the_most_is_said_of_the_default(cast, browser) -> None:
    sent = FORM | {"memory_mb.default": "3000"}
    page = browser(cast.alice).post(at(cast, "settings"), sent).content.decode()
    assert "Memory, default: no more than 2048 MB, which is the most there may be." in page
    assert "aria-invalid" not in field(page, "memory_mb.most")


def checked(page: str) -> set[str]:
    """Every control of Agent Tools that is on: `name` or `name=value`."""
    form = page[page.index('id="s-sandbox"') : page.index('class="savebar"')]
    inputs = [dict(re.findall(r'(\w+)="([^"]*)"', found)) for found in re.findall(r"<input [^>]* checked>", form)]
    chosen = re.findall(r'<option value="(\d+)" selected>', form)
    return {"=".join(filter(None, (i["name"], i.get("value")))) for i in inputs} | {f"toolset={n}" for n in chosen}


def test_after_a_refusal_every_control_shows_what_was_sent(cast, browser) -> None:
    client, here = browser(cast.alice), at(cast, "agents", cast.scout.pk)
    before = checked(client.get(here).content.decode())
    sent = {
        "writable_root_allowed": "on", "toolset": "1", "command_mode": "never", "write_mode": "always",
        "network": "public" if "network=none" in before else "none", "images": "one/more", "cpus.most": "0",
    }  # fmt: skip
    page = client.post(here, sent).content.decode()
    expected = {"writable_root_allowed", "toolset=1", "command_mode=never", "write_mode=always"}
    assert checked(page) == expected | {f"network={sent['network']}"}
    assert not checked(page) & before, "nothing that was kept shines through"
    assert client.post(here, sent | {"cpus.most": "2"}).status_code == 302
    scout = Agent.objects.get(pk=cast.scout.pk)
    assert (scout.sandbox_enabled, scout.command_mode, scout.toolset) == (False, "never", 1)


def test_a_refusal_leaves_save_in_sight_and_discard_leads_to_what_is_kept(cast, browser) -> None:
    client = browser(cast.alice)
    for here in (at(cast, "settings"), at(cast, "agents", cast.scout.pk)):
        assert "data-refused" not in client.get(here).content.decode()
        page = client.post(here, TOOLS | SANDBOX | FORM | {"cpus.most": "0"}).content.decode()
        assert 'class="savebar" data-refused' in page
        assert f'href="{here}">Discard</a>' in page
        assert 'class="toast' not in page, "nothing floats over Save"


def test_agent_tools_set_what_its_sandboxes_may_be(cast, browser) -> None:
    client = browser(cast.alice)
    assert client.post(at(cast, "agents", cast.scout.pk), TOOLS | SANDBOX).status_code == 302
    scout = Agent.objects.get(pk=cast.scout.pk)
    assert (scout.network, scout.persistent_allowed, scout.writable_root_allowed) == ("none", True, False)
    assert (scout.images, scout.settings_version) == (["scouts/own"], 3)
    assert scout.limits == {"memory_mb": {"default": 256}, "max_lifetime_s": {"most": 7200}}
    page = client.get(at(cast, "agents", cast.scout.pk)).content.decode()
    assert field(page, "memory_mb.default")["value"] == "256"
    assert 'name="network" value="none" checked' in page
    assert 'name="persistent_allowed" checked' in page
    assert "scouts/own</textarea>" in page


def test_an_agents_limits_stay_below_the_workspaces(cast, browser) -> None:
    settings.change_workspace(by=cast.alice, limits={"memory_mb": {"most": 1000}})
    answer = browser(cast.alice).post(at(cast, "agents", cast.scout.pk), TOOLS | SANDBOX | {"memory_mb.most": "1001"})
    assert answer.status_code == 400
    page = answer.content.decode()
    assert field(page, "memory_mb.most")["aria-invalid"] == "true"
    assert "Memory, at most: at most 1000 MB in this workspace." in page
    assert field(page, "memory_mb.most")["placeholder"] == "1000"
    assert Agent.objects.get(pk=cast.scout.pk).settings_version == 2


def test_a_saved_page_without_the_sandboxs_fields_leaves_them(cast, browser) -> None:
    client = browser(cast.alice)
    client.post(at(cast, "agents", cast.scout.pk), TOOLS | SANDBOX)
    client.post(at(cast, "agents", cast.scout.pk), TOOLS | {"command_mode": "never", "persistent_allowed": "on"})
    scout = Agent.objects.get(pk=cast.scout.pk)
    assert (scout.command_mode, scout.network, scout.images) == ("never", "none", ["scouts/own"])


def test_only_who_manages_the_workspace_saves(cast, browser) -> None:
    cast.alice.permissions.filter(name=permissions.WORKSPACE_MANAGE).delete()
    for member, status in ((cast.alice, 403), (cast.bob, 403), (cast.mallory, 404)):
        assert browser(member).post(at(cast, "settings"), FORM).status_code == status
    assert Workspace.objects.get(pk=cast.workspace.pk).pool_size == 1


def test_a_private_destination_is_opened_and_closed_by_who_manages_agents(cast, browser) -> None:
    client, page = browser(cast.alice), at(cast, "agents", cast.scout.pk)
    form = {"address": "10.20.4.15", "port": "5432", "protocol": "tcp", "reason": "ledger"}
    assert client.post(f"{page}/network", form).status_code == 302
    made = NetworkException.objects.get(agent=cast.scout, ended_at=None)
    assert (str(made), made.reason, made.made_by) == ("10.20.4.15:5432/tcp", "ledger", cast.alice)
    assert "10.20.4.15:5432/tcp" in client.get(page).content.decode()
    assert client.post(f"{page}/network", {"end": made.pk}).status_code == 302
    assert not NetworkException.objects.filter(ended_at=None).exists()
    assert "No private address can be reached" in client.get(page).content.decode()


@pytest.mark.parametrize("bad", [{"address": "10.0.0.0/8"}, {"port": "x"}, {"port": "70000"}, {"protocol": "icmp"}])
def test_what_is_no_destination_opens_nothing_and_is_said(cast, browser, bad) -> None:
    client, page = browser(cast.alice), at(cast, "agents", cast.scout.pk)
    form = {"address": "10.20.4.15", "port": "5432", "protocol": "tcp"} | bad
    shown = client.post(f"{page}/network", form, follow=True).content.decode()
    assert 'id="exc-e"' in shown
    for name in set(form) - {"protocol"}:
        assert f'value="{form[name]}"' in shown, "what was typed stays"
    assert "`" not in shown[shown.index('id="exc-e"') :].partition("</p>")[0]
    assert not NetworkException.objects.exists()


def test_why_a_destination_may_not_be_opened_is_said_at_the_form(cast, browser) -> None:
    client, page = browser(cast.alice), at(cast, "agents", cast.scout.pk)
    for address, says in (("169.254.169.254", "metadata services"), ("93.184.215.14", "it is public")):
        form = {"address": address, "port": "80", "protocol": "tcp"}
        shown = client.post(f"{page}/network", form).content.decode()
        assert says in shown[shown.index('id="exc-e"') :].partition("</p>")[0]


def test_nobody_else_opens_one(cast, browser) -> None:
    theirs = agents.make(cast.elsewhere, name="theirs", by=None)
    form = {"address": "10.20.4.15", "port": "5432", "protocol": "tcp"}
    for member, agent, status in (
        (cast.bob, cast.scout, 403),
        (cast.mallory, cast.scout, 404),
        (cast.alice, theirs, 404),
    ):
        assert browser(member).post(f"{at(cast, 'agents', agent.pk)}/network", form).status_code == status
    assert not NetworkException.objects.exists()
