"""Colleagues on one console: ticks that stay while they come and go, and a reviewer who is away."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site
from tests.browser.test_card import cancel
from tests.browser.test_fatigue import Window, wait_together
from tests.browser.test_plans import SLOW_MS, propose
from tests.browser.test_reading import hold
from tests.browser.test_review import approve, waits


def box(page: Page, action: str):
    return page.locator(f'.row input[value="{action}"]')


def test_a_tick_stays_when_a_colleague_comes_and_goes_and_when_new_cards_are_shown(
    site: Site, window: Window, agent: AgentSide
) -> None:
    bob, ines = window("bob"), window("ines")
    agent.run("echo first")
    agent.run("echo second")
    waiting = wait_together(agent, 2)
    ticked, other = waiting
    bob.goto(site.page("queue"))
    box(bob, ticked).check()
    ines.goto(site.page("queue", ticked))
    expect(bob.locator(".row .looking")).to_contain_text("Ines is looking")
    expect(box(bob, ticked)).to_be_checked()
    expect(box(bob, other)).not_to_be_checked()
    expect(bob.get_by_role("button", name="Deny 1…")).to_be_visible()
    ines.goto(site.page("queue"))
    expect(bob.locator(".row .looking")).to_have_count(0)
    expect(box(bob, ticked)).to_be_checked()
    agent.run("echo third")
    bob.get_by_text("Show 1 new").click()
    expect(bob.locator('.row input[name="action"]')).to_have_count(3)
    expect(box(bob, ticked)).to_be_checked()
    expect(bob.get_by_role("button", name="Deny 1…")).to_be_visible()
    cancel(agent)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_reviewer_says_that_they_are_away_and_that_they_are_back(site: Site, window: Window, scripts: bool) -> None:
    page = window("bob", java_script_enabled=scripts)
    page.goto(site.page("notices"))
    until = datetime.now(UTC) + timedelta(days=2)
    page.get_by_label("Until, in UTC").fill(f"{until:%Y-%m-%dT%H:%M}")
    page.get_by_label("Deputy").select_option(label="Ines")
    page.get_by_role("button", name="I am away").click()
    expect(page.locator("#away")).to_contain_text(f"until {until:%-d %b %Y, %H:%M} UTC")
    expect(page.locator("#away")).to_contain_text("Ines is told in your place")
    page.get_by_role("button", name="I am back").click()
    expect(page.get_by_label("Until, in UTC")).to_be_visible()


@pytest.fixture
def by_two(site: Site) -> Iterator[None]:
    """Calls of the agent take two approvals."""
    change = """
from console.workspaces import agents
from console.workspaces.models import Agent
agents.change_tools(Agent.objects.get(workspace_id=%r, name="first-agent"), by=None, approvals_needed=%d)
"""
    site.shell(change % (site.known["home"], 2))
    yield
    site.shell(change % (site.known["home"], 1))


def test_after_the_last_approval_a_card_goes_on_to_its_outcome_and_offers_deny_no_more(
    site: Site, window: Window, agent: AgentSide, by_two: None
) -> None:
    bob, ines, answer = window("bob"), window("ines"), agent.run("echo by two")
    action = waits(agent, answer)
    for page in (bob, ines):
        page.goto(site.page("queue", action))
    approve(bob)
    expect(ines.locator("#votes")).to_contain_text("1 of 2 approved, by Bob")
    approve(ines)
    assert answer.result(timeout=30).json()["stdout"] == "by two\n"
    for page in (bob, ines):
        expect(page.locator("#outcome")).to_have_attribute("data-status", "succeeded")
        expect(page.locator("form.decide")).to_have_count(0)
        expect(page.locator("#outcome")).to_contain_text("by two")


def test_a_reason_that_is_being_written_stays_while_a_plan_is_approved_starts_and_goes_on(
    site: Site, window: Window, agent: AgentSide, by_two: None
) -> None:
    bob, ines = window("bob"), window("ines")
    plan = propose(agent, "sleep 4", "sleep 30", "echo never")
    for page in (bob, ines):
        page.goto(site.page("queue", plan["items"][0]["id"]))
        hold(page, "PageDown")
    approve(bob)
    expect(bob.locator("#votes")).to_contain_text("1 of 2 approved")
    expect(bob.locator("#card[data-quiet]")).to_have_count(0)
    bob.get_by_role("button", name="Deny…").click()
    bob.get_by_text("Too broad").click()
    reason, outcome = bob.locator("#reason"), bob.locator("#outcome")
    reason.fill("Stop after")
    approve(ines)
    expect(bob.locator("#seen")).to_contain_text("You can deny what of it has not started.")
    expect(reason).to_have_value("Too broad. Stop after")
    expect(reason).to_be_focused()
    reason.fill("Stop after the first")
    expect(outcome.locator("li").first).to_contain_text("exit 0", timeout=SLOW_MS)
    expect(reason).to_have_value("Stop after the first")
    expect(reason).to_be_focused()
    expect(bob.locator("#card[data-quiet]")).to_have_count(0)
    bob.get_by_role("button", name="Deny", exact=True).click()
    expect(outcome.locator("li").last).to_contain_text("Stop after the first", timeout=SLOW_MS)
    last = agent.api.get(f"/plans/{plan['id']}").json()["items"][-1]
    assert (last["status"], last["outcome"]["reason"]) == ("denied", "Stop after the first")
