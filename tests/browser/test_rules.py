"""The page Rules: what takes long comes after the page, and without scripts is a link away."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site

Window = Callable[..., Page]
RULES = """
from approvals.rules import acts
from console.workspaces.models import Workspace
from tests import people
home = Workspace.objects.get(pk="%s")
rhea = people.member(home, "rhea", "rules:manage")
for number in range(40):
    place = f"/work/kept-{number}"
    acts.make(by=rhea, effect="deny", tool="write", pattern=f"{place}/**", matches=[f"{place}/a"])
"""


@pytest.fixture(scope="module")
def rules(site: Site) -> None:
    site.shell(RULES % site.known["home"])


def test_a_rules_tests_are_run_where_they_are_looked_at(site: Site, window: Window, rules: None) -> None:
    page = window("rhea")
    page.goto(site.page("rules"))
    first, last = page.locator(".rule").first, page.locator(".rule").last
    expect(first.get_by_text("1 test, all pass")).to_be_visible()
    expect(page.get_by_text("They come from what reviewers approve")).to_be_visible()
    expect(last.get_by_role("link", name="1 test")).to_have_count(1)
    last.scroll_into_view_if_needed()
    expect(last.get_by_text("1 test, all pass")).to_have_count(1)
    expect(last.get_by_role("link", name="1 test")).to_have_count(0)


def test_without_scripts_they_are_a_link_away(site: Site, window: Window, rules: None) -> None:
    page = window("rhea", java_script_enabled=False)
    page.goto(site.page("rules"))
    page.get_by_role("link", name="Look for some").click()
    expect(page.get_by_text("They come from what reviewers approve")).to_be_visible()
    page.locator(".rule").first.get_by_role("link", name="1 test").click()
    expect(page.get_by_role("heading", name="Its tests")).to_be_visible()
    expect(page.get_by_label("passes")).to_have_count(1)
