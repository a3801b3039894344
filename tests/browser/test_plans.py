"""A plan in a real browser: read to the end, unticked, approved in one act, and followed to its end."""

import os
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site
from tests.browser.test_review import QUIET_MS
from tests.gvisor.served import until

SLOW_MS = 20_000  # reading goes by frames, and a busy machine draws few
Window = Callable[..., Page]
LONG = "".join(f"echo line {n}\n" for n in range(60))


def propose(agent: AgentSide, *commands: str) -> dict[str, Any]:
    calls = [{"tool": "run", "arguments": {"command": command}} for command in commands]
    sent = {"conversation": "plans", "title": "Build and test", "reason": "Release day.", "calls": calls}
    answer = agent.api.post("/plans", json=sent, headers={"Prefer": "wait=0"})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def shot(page: Page, name: str) -> None:
    if folder := os.environ.get("SANDGATE_SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_it_is_read_to_the_end_unticked_approved_and_followed(site: Site, window: Window, agent: AgentSide) -> None:
    plan = propose(agent, "echo one", LONG, "echo never")
    page = window("bob")
    page.goto(site.page("queue", plan["items"][0]["id"]))
    approve = page.locator("[data-approve]")
    expect(approve).to_contain_text("Approve 3")
    expect(page.locator("#card")).to_have_attribute("data-seen", "part")
    expect(page.locator("[data-left-out]")).to_be_hidden()
    for _ in range(12):
        page.keyboard.press("PageDown")
        page.wait_for_timeout(300)
    expect(page.locator("#card")).to_have_attribute("data-seen", "all", timeout=SLOW_MS)
    shot(page, "plan-1280-light")
    page.locator(".plan .item").nth(2).locator("[name=item]").uncheck()
    expect(approve).to_contain_text("Approve 2")
    page.wait_for_timeout(QUIET_MS)
    approve.click()  # asks why first
    expect(page.locator("[name=left_out_reason]")).to_be_focused()
    page.locator("[name=left_out_reason]").fill("Not needed")
    shot(page, "plan-unticked")
    page.wait_for_timeout(QUIET_MS)
    approve.click()
    expect(page.locator("#outcome")).to_have_attribute("data-status", "succeeded", timeout=SLOW_MS)
    expect(page.locator("#outcome")).to_contain_text("left out")
    shot(page, "plan-done")
    states = [item["status"] for item in agent.api.get(f"/plans/{plan['id']}").json()["items"]]
    assert states == ["succeeded", "succeeded", "denied"]


def test_on_a_phone_in_the_dark_nothing_scrolls_sideways_and_the_queue_has_one_row(
    site: Site, window: Window, agent: AgentSide
) -> None:
    plan = propose(agent, "echo phone", "echo $(date) " + "x" * 300)
    page = window("bob", color_scheme="dark")
    page.set_viewport_size({"width": 375, "height": 740})
    page.goto(site.page("queue"))
    expect(page.locator(".row", has_text="A plan of 2: Build and test")).to_have_count(1)
    page.goto(site.page("queue", plan["items"][1]["id"]))
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    shot(page, "plan-375-dark")
    page.wait_for_timeout(QUIET_MS)
    page.get_by_role("button", name="Deny…").click()
    expect(page.locator("#reason")).to_be_focused()
    page.locator("#reason").fill("Not on a phone")
    page.wait_for_timeout(QUIET_MS)
    page.get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator("#outcome")).to_have_attribute("data-status", "denied", timeout=SLOW_MS)
    told = agent.api.get(f"/plans/{plan['id']}").json()["items"]
    assert [item["outcome"]["reason"] for item in told] == ["Not on a phone"] * 2


def test_without_script_it_is_a_plain_form(site: Site, window: Window, agent: AgentSide) -> None:
    plan = propose(agent, "echo plain", "echo form")
    page = window("bob", java_script_enabled=False)
    page.goto(site.page("queue", plan["items"][0]["id"]))
    page.locator(".plan .item").nth(0).locator("[name=item]").uncheck()
    page.locator("[name=left_out_reason]").fill("Not needed")
    shot(page, "plan-no-script")
    page.get_by_role("button", name="Approve ticked").click()
    until(lambda: agent.api.get(f"/plans/{plan['id']}").json()["status"] == "succeeded")
    states = [item["status"] for item in agent.api.get(f"/plans/{plan['id']}").json()["items"]]
    assert states == ["denied", "succeeded"]
