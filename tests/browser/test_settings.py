"""Settings of sandboxes in a real browser: at every width, saved, refused at the field, and put back by Discard."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.site import Site
from tests.browser.test_standing import joins

Window = Callable[..., Page]


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def on_top(page: Page, selector: str) -> bool:
    """Nothing lies over its middle, and that is in view."""
    return bool(
        page.evaluate(
            """(selector) => {
                const found = document.querySelector(selector), box = found.getBoundingClientRect();
                const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
                return found.contains(at);
            }""",
            selector,
        )
    )


def test_a_workspaces_limits_are_set_and_refused_at_their_field(site: Site, window: Window) -> None:
    joins(site, "wendy", "workspace:manage")
    page = window("wendy")
    page.get_by_role("link", name="Workspace", exact=True).click()
    expect(page.get_by_role("heading", name="Workspace", level=1)).to_be_visible()
    wrong = page.get_by_label("Memory, at most")
    for width in (375, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        wrong.fill("99999999")
        page.get_by_role("button", name="Save settings").click()
        expect(wrong).to_have_attribute("aria-invalid", "true")
        expect(wrong).to_have_value("99999999")
        expect(wrong).to_be_focused()
        expect(page.get_by_role("button", name="Save settings")).to_be_visible()
        assert on_top(page, "[id='memory_mb.most-e']"), width
        page.goto(site.page("settings"))
    page.set_viewport_size({"width": 375, "height": 800})
    page.get_by_label("Processors, default").fill("0")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_label("Processors, default")).to_be_focused()
    assert on_top(page, "[id='cpus.default-e']"), "the bar is not over it"
    page.get_by_role("link", name="Discard").click()
    page.set_viewport_size({"width": 1280, "height": 800})
    wrong.fill("99999999")
    page.get_by_role("button", name="Save settings").click()
    expect(wrong).to_have_accessible_description("Memory, at most: at most 65536 MB.")
    wrong.fill("2048")
    page.get_by_label("Idle time, default").fill("5")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("Memory, at most")).to_have_value("2048")
    expect(page.get_by_label("Idle time, default")).to_have_value("5")
    for width in (375, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert fits(page), width
    page.get_by_label("Memory, at most").fill("")
    page.get_by_label("Idle time, default").fill("")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_label("Memory, at most")).to_have_attribute("placeholder", "4096")


def test_a_message_never_lies_over_save(site: Site, window: Window) -> None:
    joins(site, "wilma", "workspace:manage")
    page = window("wilma")
    page.goto(site.page("settings"))
    page.get_by_label("Further images").fill("nobody/made:this")
    page.get_by_label("How many").fill("0")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_text("Not in Docker on this host yet: nobody/made:this.")).to_be_visible()
    page.get_by_label("Further images").fill("")
    page.get_by_label("How many").fill("1")
    for width in (375, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        assert on_top(page, ".savebar .primary"), width
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Saved.")).to_be_visible()


def test_what_is_not_saved_is_not_dropped_by_opening_a_destination(site: Site, window: Window) -> None:
    joins(site, "wesley", "agents:manage")
    page = window("wesley")
    page.goto(site.page("agents"))
    page.get_by_role("link", name="other", exact=True).click()
    page.get_by_label("Memory, default").fill("300")
    page.get_by_label("Address").fill("10.20.4.16")
    page.get_by_label("Port").fill("5432")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text("Save or discard the changed settings above first")).to_be_visible()
    expect(page.get_by_label("Memory, default")).to_have_value("300")
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text("10.20.4.16:5432/tcp is open to other")).to_be_visible()
    page.get_by_role("button", name="Close 10.20.4.16:5432/tcp").click()
    expect(page.get_by_text("No private address can be reached.")).to_be_visible()


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
    page.locator("#s-exceptions").get_by_label("Why").fill("ledger")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("row", name="10.20.4.15:5432/tcp")).to_contain_text("ledger")
    for width in (375, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert fits(page), width
    page.get_by_role("button", name="Close 10.20.4.15:5432/tcp").click()
    expect(page.get_by_text("No private address can be reached.")).to_be_visible()
