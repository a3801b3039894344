"""Where one stands on the page: focus after each step, without a jump, and the plain page that needs no script."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site
from tests.browser.test_card import cancel
from tests.browser.test_review import QUIET_MS, approve, open_row, shows, waits

Window = Callable[..., Page]


def joins(site: Site, name: str, permission: str) -> None:
    site.shell(
        "from tests import people\nfrom console.workspaces.models import Agent\n"
        f"people.member(Agent.objects.get(name='other').workspace, {name!r}, {permission!r})"
    )


def test_focus_goes_to_the_card_then_to_its_outcome(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.run("echo where-am-i")
    shows(page, "where-am-i")
    open_row(page, "where-am-i")
    expect(page.locator("#act-title")).to_be_focused()
    assert page.evaluate("scrollY") == 0
    approve(page)
    expect(page.locator("#outcome h2")).to_be_focused()
    expect(page.locator("#outcome .badge")).to_have_text("exit 0")
    row = page.locator(".row", has_text="where-am-i")
    expect(row.locator(".state")).to_contain_text("exit 0")
    expect(row.get_by_role("link")).to_have_attribute("aria-current", "true")
    answer.result(timeout=20)


def test_escape_closes_the_deny_form(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.run("echo not-yet")
    page.goto(site.page("queue", waits(agent, answer)))
    page.wait_for_timeout(QUIET_MS)
    page.get_by_role("button", name="Deny…").click()
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Reason")).to_be_hidden()
    expect(page.get_by_role("button", name="Deny…")).to_be_focused()
    cancel(agent)
    answer.result(timeout=20)


def test_a_phone_without_script_reads_first_and_decides_below(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob", java_script_enabled=False)
    page.set_viewport_size({"width": 375, "height": 812})
    answer = agent.run("\n".join(f"echo {n}" for n in range(200)))
    action = waits(agent, answer)
    page.goto(site.page("queue"))
    expect(page.get_by_text("New actions appear here by themselves.")).to_be_hidden()
    expect(page.get_by_role("link", name="Reload")).to_be_visible()
    page.goto(site.page("queue", action))
    expect(page.get_by_label("Reason")).not_to_be_in_viewport()
    expect(page.get_by_role("button", name="Read on")).to_be_hidden()
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("Say why, or choose a reason.")).to_be_in_viewport()
    expect(page.locator(".toast")).to_have_count(0)
    cancel(agent)
    answer.result(timeout=20)


def test_the_save_bar_of_a_phone_comes_with_a_change(site: Site, window: Window) -> None:
    joins(site, "carol", "agents:manage")
    page = window("carol")
    page.set_viewport_size({"width": 375, "height": 812})
    page.goto(site.page("agents"))
    page.get_by_role("link", name="other", exact=True).click()
    expect(page.get_by_role("button", name="Save settings")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.get_by_text("Always ask").first.click()
    expect(page.get_by_role("button", name="Save settings")).to_be_visible()
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("button", name="Save settings")).to_be_hidden()
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_new_key_is_copied_by_a_button_and_made_once(site: Site, window: Window) -> None:
    joins(site, "dora", "keys:manage")
    page = window("dora", permissions=["clipboard-read", "clipboard-write"])
    page.goto(site.page("keys"))
    page.get_by_label("Name").fill("copied")
    page.get_by_role("button", name="Make key").click()
    page.get_by_role("button", name="Copy key").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator(".secret").inner_text()
    page.reload()
    expect(page.locator(".secret")).to_have_count(0)
    expect(page.get_by_text("This form made its key already")).to_be_visible()
    expect(page.locator("tbody tr", has_text="copied")).to_have_count(1)
