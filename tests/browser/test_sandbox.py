"""A sandbox in the browser: its page, and its end by hand."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site

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
    page.get_by_text("Delete…").click()
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
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text(f"{command} is stopped")).to_be_visible()
        assert api.get(f"/sandboxes/{agent.sandbox}/commands/{command}").json()["status"] == "stopped"
