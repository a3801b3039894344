"""A member who is removed while a page of theirs is open: the page is gone within seconds, by itself."""

import time
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.site import Site

WITHIN_S = 5.0
ADD = """
from console.workspaces.models import Workspace
from tests import people
people.member(Workspace.objects.exclude(name="Elsewhere").get(), "eve", "approvals:review", "sandboxes:read")
"""
REMOVE = """
import time
from approvals import leaving
from console.workspaces import members
from console.workspaces.models import Member
eve = Member.objects.get(user__name="Eve")
admin = Member.objects.filter(workspace=eve.workspace, permissions__name="members:manage").first()
leaving.remove(eve, by=admin, heirs={})
print(time.time())
"""


def test_an_open_page_of_a_removed_member_is_gone_within_seconds(site: Site, window: Callable[..., Page]) -> None:
    site.shell(ADD)
    eve = window("eve")
    eve.goto(site.page("queue"))
    expect(eve.locator("body[data-link=up]")).to_be_attached()
    closed: list[float] = []
    eve.on("framenavigated", lambda frame: closed.append(time.time()))
    removed_at = float(site.shell(REMOVE).split()[-1])
    eve.wait_for_url(lambda url: "/sign-in" in url, timeout=15_000)
    took_s = closed[0] - removed_at
    print(f"removed member's page left after {took_s:.2f} s")
    assert took_s <= WITHIN_S
    assert eve.request.get(site.page("queue"), max_redirects=0).status == 302
