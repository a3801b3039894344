"""Settings of sandboxes in a real browser: at every width, saved, refused at the field, and put back by Discard."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.site import Site
from tests.browser.test_standing import joins

Window = Callable[..., Page]


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_workspaces_limits_are_set_and_refused_at_their_field(site: Site, window: Window) -> None:
    joins(site, "wendy", "workspace:manage")
    page = window("wendy")
    page.get_by_role("link", name="Workspace", exact=True).click()
    expect(page.get_by_role("heading", name="Workspace", level=1)).to_be_visible()
    page.get_by_label("Memory, at most").fill("99999999")
    page.get_by_role("button", name="Save settings").click()
    wrong = page.get_by_label("Memory, at most")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(wrong).to_have_value("99999999")
    expect(wrong).to_have_accessible_description("limits.memory_mb.most is at most 65536, not 99999999.")
    wrong.fill("2048")
    page.get_by_label("Idle time, default").fill("5")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("Memory, at most")).to_have_value("2048")
    expect(page.get_by_label("Idle time, default")).to_have_value("5")
    for width in (375, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert fits(page), width
    page.locator(".toast").get_by_role("button").click()
    page.get_by_label("Memory, at most").fill("")
    page.get_by_label("Idle time, default").fill("")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_label("Memory, at most")).to_have_attribute("placeholder", "4096")


def test_agent_tools_show_what_its_sandboxes_may_be(site: Site, window: Window) -> None:
    joins(site, "walter", "agents:manage")
    page = window("walter")
    page.goto(site.page("agents"))
    page.get_by_role("link", name="other", exact=True).click()
    network = page.get_by_role("radiogroup", name="Network")
    expect(network.get_by_label("Public")).to_be_checked()
    network.get_by_text("None").click()
    page.get_by_label("May keep its files when idle").check()
    page.get_by_label("Processors, default").fill("0.5")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(network.get_by_label("None")).to_be_checked()
    expect(page.get_by_label("May keep its files when idle")).to_be_checked()
    expect(page.get_by_label("Processors, default")).to_have_value("0.5")
    for width in (375, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert fits(page), width


def test_a_private_destination_is_opened_and_closed_on_the_page(site: Site, window: Window) -> None:
    joins(site, "wanda", "agents:manage")
    page = window("wanda")
    page.goto(site.page("agents"))
    page.get_by_role("link", name="other", exact=True).click()
    page.get_by_label("Address").fill("10.20.4.15")
    page.get_by_label("Port").fill("5432")
    page.get_by_label("Why").fill("ledger")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("row", name="10.20.4.15:5432/tcp")).to_contain_text("ledger")
    for width in (375, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert fits(page), width
    page.locator(".toast").get_by_role("button").click()
    page.get_by_role("button", name="Close 10.20.4.15:5432/tcp").click()
    expect(page.get_by_text("No private address can be reached.")).to_be_visible()
