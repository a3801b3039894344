"""More than a page of the queue lists: the rest is counted live, nothing moves, and what was decided makes room."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site
from tests.browser.test_plans import SLOW_MS

Window = Callable[..., Page]
# As seven agents would have it: an agent has at most 20 waiting.
MANY = """
from console.workspaces import keys
from console.workspaces.models import Agent, Workspace
from tests import people
from tests.approvals.proposals import pending
home, known = Workspace.objects.get(pk="%s"), Agent.objects.count()
for number in range(known, known + 7):
    agent = people.agent(home, f"many{number}")
    caller = keys.authenticate(keys.make_agent_key(agent, name="many", by=None)[1])
    for at in range(20):
        pending(caller, f"echo {at}", conversation="march", sandbox_id=f"sbx_{number}")
"""
GONE = """
from django.utils import timezone
from approvals.models import Action
from console.workspaces import changes, ledger
for action in Action.objects.pending().filter(agent__name__startswith="many")%s:
    Action.objects.filter(pk=action.pk).update(status="cancelled", decided_by="agent", ended_at=timezone.now())
    with ledger.opened(action.workspace_id) as workspace:
        changes.record(workspace, subject="action", subject_id=action.pk, agent_id=action.agent_id, status="cancelled")
"""


@pytest.fixture
def many(site: Site) -> Iterator[None]:
    site.shell(MANY % site.known["home"])
    yield
    site.shell(GONE % "")


def test_a_long_queue_counts_live_what_it_does_not_list(
    site: Site, window: Window, agent: AgentSide, many: None
) -> None:
    page = window("bob")
    page.goto(site.page("queue"))
    rows, more = page.locator('.row[data-status="pending"]'), page.locator("[data-more]")
    expect(rows).to_have_count(100)
    expect(more).to_have_text("40")
    answer = agent.run("echo one more")
    expect(more).to_have_text("41")
    expect(page.locator("[data-news]")).to_be_hidden()
    expect(rows).to_have_count(100)
    site.shell(GONE % ".order_by('created_at')[:100]")
    page.get_by_role("link", name="Show the next").click()
    expect(rows).to_have_count(41, timeout=SLOW_MS)  # each of the hundred is fetched once more, too
    expect(more).to_have_count(0)
    agent.api.post(f"/actions/{rows.last.get_attribute('data-id')}/cancel")
    answer.result(timeout=20)


def test_all_of_a_long_queue_can_be_listed(site: Site, window: Window, agent: AgentSide, many: None) -> None:
    page = window("bob")
    page.goto(site.page("queue"))
    page.get_by_role("link", name="Show all").click()
    expect(page.locator('.row[data-status="pending"]')).to_have_count(140)
    answer = agent.run("echo one more")
    page.get_by_role("link", name="Show 1 new").click()
    expect(page.locator('.row[data-status="pending"]')).to_have_count(141)
    last = page.locator('.row[data-status="pending"]').last.get_attribute("data-id")
    agent.api.post(f"/actions/{last}/cancel")
    answer.result(timeout=20)
