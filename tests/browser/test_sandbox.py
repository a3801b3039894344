"""A sandbox in the browser: its page, and its end by hand."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site

Window = Callable[..., Page]


def test_a_member_who_may_run_sandboxes_ends_one(site: Site, window: Window, agent: AgentSide) -> None:
    site.shell(
        "from tests import people\nfrom console.workspaces.models import Agent\n"
        "people.member(Agent.objects.get(name='other').workspace, 'olga', 'sandboxes:read', 'sandboxes:run')"
    )
    page = window("olga")
    page.goto(site.page("sandboxes", agent.sandbox))
    page.get_by_text("Delete…").click()
    page.get_by_role("button", name="Delete now").click()
    expect(page.get_by_text(f"Sandbox {agent.sandbox} and its files are gone.")).to_be_visible()
    assert agent.api.get(f"/sandboxes/{agent.sandbox}").status_code == 404
