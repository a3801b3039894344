"""Notices of the browser itself: asked for by a click, told once over all tabs, and never what would run."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site

# Chromium without a desktop shows none: what would be shown is kept, and the answer to being asked is yes.
DESKTOP = """
window.shown = []; window.asked = 0;
window.Notification = class {
  constructor(title, options) { window.shown.push(`${title}\\n${options.body}`); window.last = this; }
  static get permission() { return localStorage.getItem("test.leave") || "default"; }
  static async requestPermission() {
    window.asked += 1;
    localStorage.setItem("test.leave", "granted");
    return "granted";
  }
};
"""
QUIET_MS = 4_000


def test_a_reviewer_is_told_once_by_agent_and_tool_and_a_click_opens_it(
    site: Site, window: Callable[..., Page], agent: AgentSide
) -> None:
    bob = window("bob")
    bob.context.add_init_script(DESKTOP)
    bob.goto(site.page("notices"))
    assert bob.evaluate("asked") == 0, "nobody is asked before they click"
    bob.get_by_role("button", name="Turn on here").click()
    expect(bob.get_by_role("button", name="Turn off here")).to_be_visible()
    tab = bob.context.new_page()
    tab.goto(site.page("sandboxes"))
    expect(tab.locator("body[data-link=up]")).to_be_attached()
    agent.run("echo TOP-SECRET")
    for _ in range(100):
        told = [page for page in (bob, tab) if page.evaluate("shown.length")]
        if told:
            break
        bob.wait_for_timeout(100)
    (first,) = told
    (text,) = first.evaluate("shown")
    assert "run" in text
    assert "for approval" in text
    assert "TOP-SECRET" not in text
    agent.run("echo TOP-SECRET again")
    bob.wait_for_timeout(QUIET_MS)
    assert sum(len(page.evaluate("shown")) for page in (bob, tab)) == 1
    first.evaluate("last.onclick()")
    first.wait_for_url("**/queue**")


def test_the_page_fits_a_phone(site: Site, window: Callable[..., Page]) -> None:
    bob = window("bob")
    bob.set_viewport_size({"width": 375, "height": 700})
    bob.goto(site.page("notices"))
    expect(bob.get_by_role("heading", name="Notices")).to_be_visible()
    assert bob.evaluate("document.documentElement.scrollWidth <= innerWidth")
