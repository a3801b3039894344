"""What guards a decision: reading to the end, the first moments, the connection."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, WebSocketRoute, expect

from approvals import draw
from tests.browser.site import AgentSide, Site
from tests.browser.test_review import QUIET_MS, approve, shows, waits

Window = Callable[..., Page]
TEXT_OF_SHEET = """() => {
    const sheet = document.querySelector("#card .sheet pre.code").cloneNode(true);
    for (const extra of sheet.querySelectorAll(".glyph, .note")) extra.remove();
    return sheet.textContent;
}"""


def cancel(agent: AgentSide) -> None:
    for item in agent.api.get("/actions", params={"status": "pending"}).json()["items"]:
        agent.api.post(f"/actions/{item['id']}/cancel")


def test_the_first_moments_decide_nothing(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.run("echo too-quick")
    action = waits(agent, answer)
    page.goto(site.page("queue", action))
    page.evaluate("""() => {
        window.dispatchEvent(new Event("focus"));
        document.querySelector("[data-approve]").click();
    }""")
    page.wait_for_timeout(300)
    assert agent.api.get(f"/actions/{action}").json()["status"] == "pending"
    expect(page.locator("#card[data-quiet]")).to_have_count(0)
    approve(page)
    assert answer.result(timeout=20).json()["exit_code"] == 0


def test_hostile_text_is_drawn_and_its_bytes_run_unchanged(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    hostile = "printf '%s' '<img src=x onerror=alert(1)>\u202e\u200b\u0430\u2028' | od -An -tx1\n#\t\thidden   \n"
    answer = agent.run(hostile)
    action = waits(agent, answer)
    page.goto(site.page("queue", action))
    assert draw.undrawn(page.evaluate(TEXT_OF_SHEET)) == hostile
    expect(page.locator(".sheet .esc").first).to_have_text("⟨U+202E⟩⟨U+200B⟩")
    expect(page.get_by_text("Hidden characters")).to_be_visible()
    assert page.locator("img").count() == 0
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    approve(page)
    expect(page.locator("#outcome .badge")).to_have_text("exit 0")
    printed = re.sub(r"\s", "", answer.result(timeout=20).json()["stdout"])
    assert bytes.fromhex(printed) == hostile.split("'")[3].encode()


def test_a_write_is_shown_as_a_difference_and_lands(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    first = agent.write("/work/a.ini", "one\ntwo\n")
    page.goto(site.page("queue", waits(agent, first)))
    expect(page.locator(".sheet-head")).to_contain_text("new file")
    approve(page)
    first.result(timeout=20)
    second = agent.write("/work/a.ini", "one\n2\n")
    page.goto(site.page("queue", waits(agent, second)))
    assert page.locator(".diff tr.del .txt").all_inner_texts() == ["two"]
    assert page.locator(".diff tr.add .txt").all_inner_texts() == ["2"]
    approve(page)
    assert second.result(timeout=20).status_code == 200
    got = agent.api.get(f"/sandboxes/{agent.sandbox}/files", params={"path": "/work/a.ini", "encoding": "utf-8"})
    assert got.json()["content"] == "one\n2\n"


def test_new_actions_wait_behind_a_button_and_nothing_moves(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    first = agent.run("echo first-of-two")
    shows(page, "first-of-two")
    where = page.locator(".row", has_text="first-of-two").bounding_box()
    second = agent.run("echo second-of-two")
    expect(page.locator("[data-news]")).to_have_text(re.compile("Show 1 new"))
    assert page.locator(".row", has_text="first-of-two").bounding_box() == where
    assert page.locator(".row", has_text="second-of-two").count() == 0
    expect(page.locator("#said")).to_have_text("1 new action waits")
    expect(page.locator(".rail .nav [data-waiting]")).to_have_text("2")
    expect(page).to_have_title("Queue (2) · Sandgate")
    page.locator("[data-news]").click()
    expect(page.locator(".row", has_text="second-of-two")).to_be_visible()
    expect(page.locator("[data-news]")).to_be_hidden()
    cancel(agent)
    expect(page.locator(".rail .nav [data-waiting]")).to_have_text("0")
    for answer in (first, second):
        answer.result(timeout=20)


def test_signing_out_elsewhere_ends_this_page_within_five_seconds(site: Site, window: Window) -> None:
    page = window("ines")
    expect(page.locator("body[data-link=up]")).to_be_attached()
    elsewhere = page.context.new_page()
    elsewhere.goto(site.page("queue"))
    elsewhere.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in**", timeout=5500)


class Line:
    """The sockets of a page, to be cut and mended."""

    def __init__(self) -> None:
        self.whole = True
        self.sockets: list[WebSocketRoute] = []

    def carry(self, socket: WebSocketRoute) -> None:
        if not self.whole:
            socket.close(code=1011)
            return
        socket.connect_to_server()
        self.sockets.append(socket)

    def cut(self) -> None:
        self.whole = False
        self.sockets.pop().close(code=1011)

    def mend(self) -> None:
        self.whole = True


def test_losing_the_server_locks_the_buttons_and_loses_nothing(site: Site, window: Window, agent: AgentSide) -> None:
    page, line = window("bob"), Line()
    page.route_web_socket(re.compile("/ws/queue/"), line.carry)
    answer = agent.run("echo survives")
    action = waits(agent, answer)
    page.goto(site.page("queue", action))
    expect(page.locator("body[data-link=up]")).to_be_attached()
    page.wait_for_timeout(QUIET_MS)
    line.cut()
    expect(page.locator(".offline")).to_be_visible()
    expect(page.locator("body[data-link=down]")).to_be_attached()
    expect(page.locator("[data-news]")).to_be_hidden()
    expect(page.locator("[data-news]")).to_have_text("")
    page.get_by_role("button", name="Approve").click(force=True)
    expect(page.get_by_role("button", name="Approve")).to_have_accessible_description(re.compile("^Not connected."))
    expect(page.get_by_role("button", name="Deny…")).to_have_accessible_description(re.compile("^Not connected."))
    page.set_viewport_size({"width": 1280, "height": 300})
    page.mouse.move(900, 100)
    page.mouse.wheel(0, 5000)
    page.wait_for_timeout(300)
    expect(page.locator(".offline")).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert agent.api.get(f"/actions/{action}").json()["status"] == "pending"
    missed = agent.run("echo while-away")
    page.wait_for_timeout(1500)
    line.mend()
    expect(page.locator("body[data-link=up]")).to_be_attached(timeout=15_000)
    expect(page.locator(".offline")).to_be_hidden()
    expect(page.get_by_role("button", name="Deny…")).to_have_accessible_description("")
    expect(page.locator("[data-news]")).to_have_text(re.compile("Show 1 new"))
    expect(page.locator(".row", has_text="survives")).to_have_count(1)
    approve(page)
    assert answer.result(timeout=20).json()["stdout"] == "survives\n"
    cancel(agent)
    missed.result(timeout=20)


def test_a_decision_that_did_not_arrive_says_so_and_can_be_made_again(
    site: Site, window: Window, agent: AgentSide
) -> None:
    page = window("bob")
    answer = agent.run("echo tried-twice")
    page.goto(site.page("queue", waits(agent, answer)))
    page.route("**/decide", lambda route: route.abort())
    approve(page)
    expect(page.get_by_text("Your decision did not reach the server.")).to_be_visible()
    page.unroute("**/decide")
    approve(page)
    expect(page.locator("#outcome .badge")).to_have_text("exit 0")
    assert answer.result(timeout=20).json()["stdout"] == "tried-twice\n"


def test_a_phone_shows_one_thing_at_a_time_without_sideways_scroll(
    site: Site, window: Window, agent: AgentSide
) -> None:
    page = window("bob")
    page.set_viewport_size({"width": 375, "height": 812})
    answer = agent.run("echo " + "x" * 300 + " | tee /work/phone\n")
    action = waits(agent, answer)
    for address in (site.page("queue"), site.page("queue", action)):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
    expect(page.locator(".list")).to_be_hidden()
    open_menu = page.get_by_role("button", name="Menu")
    open_menu.click()
    expect(page.locator("#nav")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    approve(page)
    expect(page.locator("#outcome .badge")).to_have_text("exit 0")
    answer.result(timeout=20)
