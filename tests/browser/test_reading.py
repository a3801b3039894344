"""What must have been on screen before Approve opens: every line of a text, every changed line of a difference."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site
from tests.browser.test_card import cancel
from tests.browser.test_review import QUIET_MS, approve, waits

Window = Callable[..., Page]
LINES = "".join(f"line {n}\n" for n in range(1, 402))


def opened(page: Page, site: Site, action: str) -> None:
    page.goto(site.page("queue", action))
    expect(page.locator("#card")).to_have_attribute("data-seen", "part")
    page.wait_for_timeout(QUIET_MS)


def put(agent: AgentSide, page: Page, site: Site, path: str, content: str) -> None:
    """The file, as an agent writes it and a person lets it."""
    answer = agent.write(path, content)
    page.goto(site.page("queue", waits(agent, answer)))
    hold(page, "PageDown")
    approve(page)
    assert answer.result(timeout=20).status_code == 200


def hold(page: Page, key: str, *, most: int = 1500) -> None:
    """Down until all is seen, repeating as a keyboard does, thirty times a second."""
    for _ in range(most):
        page.keyboard.down(key)
        if page.locator("#card[data-seen=all]").count():
            break
        page.wait_for_timeout(33)
    page.keyboard.up(key)
    expect(page.locator("#card")).to_have_attribute("data-seen", "all")


def status(agent: AgentSide, action: str) -> str:
    return agent.api.get(f"/actions/{action}").json()["status"]


def test_approve_is_locked_until_every_line_was_on_screen(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.run("ls" + "\n" * 201 + "touch /work/hidden-tail\n")
    action = waits(agent, answer)
    opened(page, site, action)
    approve_button = page.get_by_role("button", name="Approve")
    expect(approve_button).to_have_attribute("aria-disabled", "true")
    expect(page.locator(".note")).to_have_text("200 blank lines follow")
    bottom = approve_button.bounding_box()
    assert bottom
    assert bottom["y"] < 800, "the buttons stay in view"
    approve_button.click(force=True)
    page.wait_for_timeout(300)
    assert status(agent, action) == "pending"
    hold(page, "PageDown")
    expect(page.locator("#seen")).to_contain_text("Seen to the end")
    approve(page)
    expect(page.locator("#outcome .badge")).to_have_text("exit 0")
    answer.result(timeout=20)


def test_jumping_to_the_end_marks_only_what_was_on_screen(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.write("/work/long.txt", LINES)
    action = waits(agent, answer)
    opened(page, site, action)
    page.keyboard.press("End")
    expect(page.locator(".ln").last).to_have_class("ln seen")
    page.wait_for_timeout(1000)
    seen = page.locator(".ln.seen").count()
    assert 40 < seen < 100, "the first page and the last"
    expect(page.locator("#seen")).to_contain_text(f"{seen} of 401 lines seen, read on")
    expect(page.locator("#card")).to_have_attribute("data-seen", "part")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")  # as a drag of the scroll bar does
    page.wait_for_timeout(30)
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(500)
    assert page.locator(".ln.seen").count() == seen, "what only flashed by was not read"
    page.get_by_role("button", name="Read on").click()
    page.wait_for_timeout(300)
    assert page.locator(".ln.seen").count() > seen, "it leads to what was jumped over"
    cancel(agent)
    answer.result(timeout=20)


def test_one_changed_line_among_many_is_what_must_be_seen(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    put(agent, page, site, "/work/conf.txt", LINES)
    changed = re.sub(r"line (3|201|399)\n", r"LINE \1\n", LINES)
    answer = agent.write("/work/conf.txt", changed)
    action = waits(agent, answer)
    page.goto(site.page("queue", action))
    expect(page.locator(".fold button")).to_have_text(["Show 191 unchanged lines", "Show 191 unchanged lines"])
    expect(page.locator("#seen")).to_contain_text(re.compile("Every change seen|of 3 changes seen"))
    page.get_by_role("button", name="191").first.click()
    expect(page.locator(".fold")).to_have_count(1)
    page.set_viewport_size({"width": 1280, "height": 420})
    page.reload()
    page.get_by_role("link", name="Next change").click()  # how much of the card fits depends on the machine's fonts
    expect(page.locator("#seen")).to_contain_text("1 of 3 changes seen, read on")
    page.get_by_role("button", name="191").first.click()
    page.keyboard.press("End")
    expect(page.locator("#seen")).to_contain_text("2 of 3 changes seen, read on")
    page.wait_for_timeout(QUIET_MS)
    page.get_by_role("button", name="Approve").click(force=True)
    page.wait_for_timeout(300)
    assert status(agent, action) == "pending"
    page.evaluate("scrollTo(0, 0)")
    for _ in range(2):
        page.get_by_role("link", name="Next change").click()
        page.wait_for_timeout(200)
    expect(page.locator("#seen")).to_contain_text("Every change seen")
    approve(page)
    assert answer.result(timeout=20).status_code == 200


def test_a_line_longer_than_the_screen_is_read_to_its_end(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.run("echo " + "x" * 20_000 + "; touch /work/tail")
    opened(page, site, waits(agent, answer))
    expect(page.locator("#seen")).to_contain_text("0 of 1 line seen")
    page.keyboard.press("End")
    page.wait_for_timeout(500)
    expect(page.locator("#card")).to_have_attribute("data-seen", "part")
    hold(page, "PageDown")
    cancel(agent)
    answer.result(timeout=20)


def test_five_thousand_lines_can_be_read_by_holding_a_key(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.write("/work/many.txt", "".join(f"{n}\n" for n in range(5000)))
    opened(page, site, waits(agent, answer))
    hold(page, "PageDown")
    assert page.locator(".ln.seen").count() == 5000
    cancel(agent)
    answer.result(timeout=20)


def test_a_wheel_marks_what_passes(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.write("/work/wheel.txt", LINES)
    opened(page, site, waits(agent, answer))
    page.mouse.move(800, 400)
    for _ in range(60):
        page.mouse.wheel(0, 200)
        page.wait_for_timeout(40)
    expect(page.locator("#seen")).to_contain_text("Seen to the end")
    cancel(agent)
    answer.result(timeout=20)


def test_without_script_nothing_is_folded(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    put(agent, page, site, "/work/plain.txt", LINES)
    answer = agent.write("/work/plain.txt", LINES.replace("line 201\n", "LINE 201\n"))
    action = waits(agent, answer)
    plain = window("bob", java_script_enabled=False)
    plain.goto(site.page("queue", action))
    expect(plain.locator(".diff tbody tr:visible")).to_have_count(402)
    plain.get_by_role("link", name="Next change").click()
    expect(plain.locator("#change-1")).to_be_in_viewport()
    cancel(agent)
    answer.result(timeout=20)
