"""An edit as its reviewer meets it: its change alone to read, and when its file changed elsewhere, again with both."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site
from tests.browser.test_reading import hold
from tests.browser.test_review import approve
from tests.gvisor.test_tools import Desk, anchors

Window = Callable[..., Page]


@pytest.fixture
def desk(site: Site) -> Iterator[Desk]:
    found = Desk(site.served)
    found.conversation = "browser-edits"
    found.call("processes")
    yield found
    found.agent.delete(f"/sandboxes/{found.sandbox}")


def test_a_change_is_read_and_approved_and_comes_back_with_both_when_its_file_changed_elsewhere(
    site: Site, window: Window, desk: Desk
) -> None:
    desk.run("seq -f 'line %g' 1 300 > long.txt")
    page = window("bob")
    read = desk.call("read", path="long.txt")
    edits = [{"do": "replace", "from": anchors(read)[150], "lines": ["changed line"]}]
    call, action = desk.proposed("edit", path="long.txt", version=read["version"], edits=edits)
    page.goto(site.page("queue", action["id"]))
    expect(page.locator("#card tr.add")).to_have_count(1)
    expect(page.locator("#card tr.add")).to_contain_text("changed line")
    hold(page, "PageDown")
    desk.run("sed -i 's/^line 20$/elsewhere/' long.txt")
    approve(page)
    ended = call.result(timeout=60).json()
    back = ended["outcome"]["error"]["next_action"]
    assert desk.run("grep -c changed long.txt || true") == "0\n"
    page.goto(site.page("queue", back))
    expect(page.locator("#card tr.add")).to_have_count(2)
    expect(page.get_by_text(f"/work/long.txt, as approved in {action['id']}", exact=True)).to_be_visible()
    hold(page, "PageDown")
    approve(page)
    done = desk.agent.get(f"/actions/{back}", params={"wait": 30}).json()
    assert done["status"] == "succeeded", done
    assert desk.run("sed -n '20p;150p' long.txt") == "elsewhere\nchanged line\n"
