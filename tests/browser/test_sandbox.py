"""A sandbox in the browser: its page, and its end by hand."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site
from tests.browser.test_review import approve, open_row, shows

Window = Callable[..., Page]


@pytest.fixture(scope="module", autouse=True)
def olga(site: Site) -> None:
    """She may run sandboxes, and so end them."""
    site.shell(
        "from tests import people\nfrom console.workspaces.models import Agent\n"
        "people.member(Agent.objects.get(name='other').workspace, 'olga', 'sandboxes:read', 'sandboxes:run')"
    )


def test_a_member_who_may_run_sandboxes_ends_one(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("olga")
    page.goto(site.page("sandboxes", agent.sandbox))
    before = page.get_by_text("Delete…").bounding_box()
    page.get_by_text("Delete…").click()
    expect(page.get_by_role("button", name="Delete now")).to_be_visible()
    assert page.get_by_text("Delete…").bounding_box() == before, "it stays under the pointer"
    page.get_by_role("button", name="Delete now").click()
    expect(page.get_by_text(f"Sandbox {agent.sandbox} and its files are gone.")).to_be_visible()
    assert agent.api.get(f"/sandboxes/{agent.sandbox}").status_code == 404


def test_a_command_in_the_background_is_stopped_from_its_sandboxs_page(
    site: Site, window: Window, agent: AgentSide
) -> None:
    with site.served.api("workspace") as api:
        body = {"command": "sleep 600", "background": True}
        command = api.post(f"/sandboxes/{agent.sandbox}/commands", json=body).raise_for_status().json()["id"]
        page = window("olga")
        page.goto(site.page("sandboxes", agent.sandbox))
        expect(page.get_by_role("row", name="sleep 600")).to_contain_text("in the background")
        expect(page.locator(".event").filter(has_text="sleep 600").locator(".state.live")).to_have_text("running")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text(f"{command} is stopped")).to_be_visible()
        expect(page.locator(".event").filter(has_text="sleep 600").locator(".state.stop")).to_contain_text("stopped")
        assert api.get(f"/sandboxes/{agent.sandbox}/commands/{command}").json()["status"] == "stopped"


def test_a_command_in_the_background_is_live_on_its_card_until_it_ends(
    site: Site, window: Window, agent: AgentSide
) -> None:
    page = window("bob")
    answer = agent.run("echo begun; read line; exit 3", background=True)
    shows(page, "echo begun")
    open_row(page, "echo begun")
    approve(page)
    expect(page.locator("#outcome .badge.live")).to_have_text("running")
    command = answer.result(timeout=30).json()["id"]
    expect(page.locator("#outcome .out")).to_contain_text("begun")
    row = page.locator(".row", has_text="echo begun")
    expect(row.locator(".state.live")).to_contain_text("running")
    with site.served.api("workspace") as api:
        sent = api.post(f"/sandboxes/{agent.sandbox}/commands/{command}/stdin", json={"data": "\n"})
        assert sent.is_success, sent.text
    expect(page.locator("#outcome .badge.stop")).to_have_text("exit 3")
    expect(row.locator(".state.stop")).to_contain_text("exit 3")


def test_what_runs_comes_and_goes_on_its_page_by_itself_and_not_under_the_pointer(
    site: Site, window: Window, agent: AgentSide
) -> None:
    with site.served.api("workspace") as api:
        page = window("olga")
        page.goto(site.page("sandboxes", agent.sandbox))
        expect(page.get_by_role("heading", name="What was asked of it")).to_be_visible()
        page.locator("h1").hover()

        def begin(seconds: int) -> str:
            body = {"command": f"sleep {seconds}", "background": True}
            found = api.post(f"/sandboxes/{agent.sandbox}/commands", json=body).raise_for_status().json()
            return str(found["id"])

        first = begin(601)
        expect(page.get_by_role("row", name="sleep 601")).to_be_visible(timeout=15_000)
        button = page.get_by_role("row", name="sleep 601").get_by_role("button", name="Stop")
        button.hover()
        before = button.bounding_box()
        begin(602)
        page.wait_for_timeout(8_000)
        assert button.bounding_box() == before
        expect(page.get_by_role("row", name="sleep 602")).to_have_count(0)
        page.locator("h1").hover()
        expect(page.get_by_role("row", name="sleep 602")).to_be_visible(timeout=15_000)
        api.delete(f"/sandboxes/{agent.sandbox}/commands/{first}").raise_for_status()
        expect(page.get_by_role("row", name="sleep 601")).to_have_count(0, timeout=15_000)
