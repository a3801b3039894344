"""The reviewer's page in a real browser: what appears by itself, what a click does, what the agent gets."""

import re
from collections.abc import Callable
from concurrent.futures import Future

import httpx
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import sign_in
from tests.browser.site import AgentSide, Site

QUIET_MS = 600
Window = Callable[..., Page]


def open_row(page: Page, text: str) -> None:
    page.locator(".group:not(.lately) .row", has_text=text).get_by_role("link").click()
    expect(page.locator("#card")).to_be_visible()
    page.wait_for_timeout(QUIET_MS)


def approve(page: Page) -> None:
    expect(page.locator("#card")).to_have_attribute("data-seen", "all")
    page.wait_for_timeout(QUIET_MS)
    page.get_by_role("button", name="Approve").click()


def deny(page: Page, reason: str) -> None:
    page.get_by_role("button", name="Deny…").click()
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("button", name="Deny", exact=True).click()


def shows(page: Page, text: str) -> None:
    """The new action, which came without a reload: at once in an empty list, else behind the news."""
    row = page.locator(".row", has_text=text)
    news = page.locator("[data-news]:visible")
    expect(row.or_(news).first).to_be_visible()
    if not row.count():
        news.click()
    expect(row.first).to_be_visible()


def test_the_first_sign_in_asks_for_a_new_password(site: Site, window: Window) -> None:
    page, admin = window(None), site.served.first_run["admin"]
    sign_in(page, site, admin["user"], admin["password"])
    expect(page.get_by_role("heading", name="Choose your own password")).to_be_visible()
    page.goto(site.page("queue"))
    assert page.url.endswith("/password")
    page.get_by_label("Password now").fill(admin["password"])
    page.get_by_label("New password", exact=True).fill("seventeen blue kettles")
    page.get_by_label("New password, again").fill("seventeen blue kettles")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_role("heading", name="Queue", exact=True)).to_be_visible()
    expect(page.get_by_text("The first keys still lie on this machine.")).to_be_visible()


def test_a_proposal_appears_is_approved_runs_and_its_output_appears(
    site: Site, window: Window, agent: AgentSide
) -> None:
    page = window("bob")
    page.evaluate("window.sameDocument = true")
    answer = agent.run("echo from-the-sandbox; echo careful >&2; exit 3")
    shows(page, "from-the-sandbox")
    assert page.evaluate("window.sameDocument")
    assert not answer.done()
    open_row(page, "from-the-sandbox")
    page.evaluate("window.sameDocument = true")
    approve(page)
    outcome = page.locator("#outcome")
    expect(outcome.locator(".badge")).to_have_text("exit 3")
    expect(outcome.locator(".out")).to_contain_text("from-the-sandbox")
    expect(outcome.locator(".out .err")).to_contain_text("careful")
    expect(outcome).to_contain_text("Approved by you")
    expect(page.locator(".row", has_text="from-the-sandbox").locator(".state")).to_contain_text("exit 3")
    assert page.evaluate("window.sameDocument")
    ran = answer.result(timeout=20).json()
    assert (ran["stdout"], ran["stderr"], ran["exit_code"]) == ("from-the-sandbox\n", "careful\n", 3)


def test_a_denial_reaches_the_agent_with_its_reason(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.run("rm -rf /work/keep-me")
    shows(page, "keep-me")
    open_row(page, "keep-me")
    page.get_by_role("button", name="Deny…").click()
    page.get_by_role("button", name="Deny", exact=True).click()  # without a reason nothing happens
    expect(page.get_by_text("Say why, or choose a reason.")).to_be_visible()
    assert not answer.done()
    page.get_by_text("Not safe").click()
    page.get_by_label("Reason").fill("Use staging.")
    page.get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator("#outcome")).to_contain_text("Denied by you")
    told = answer.result(timeout=20)
    assert told.status_code == 403
    assert told.json()["code"] == "denied"
    assert "Not safe. Use staging." in told.json()["detail"]


def test_a_second_browser_sees_the_decision_and_the_run(site: Site, window: Window, agent: AgentSide) -> None:
    bob, ines = window("bob"), window("ines")
    answer = agent.run("echo seen-by-two")
    for page in (bob, ines):
        shows(page, "seen-by-two")
        open_row(page, "seen-by-two")
    approve(bob)
    expect(ines.locator("#outcome .badge")).to_have_text("exit 0")
    expect(ines.locator("#outcome")).to_contain_text("Approved by Bob")
    expect(ines.locator("#outcome .out")).to_contain_text("seen-by-two")
    expect(ines.get_by_role("button", name="Approve")).to_have_count(0)
    assert answer.result(timeout=20).json()["exit_code"] == 0
    late = window("ines")  # who comes later sees the same
    expect(late.locator(".lately .row", has_text="seen-by-two")).to_contain_text("exit 0")
    expect(late.locator(".row", has_text="seen-by-two")).to_have_count(1)


def test_who_decides_second_is_told_who_was_first(site: Site, window: Window, agent: AgentSide) -> None:
    bob, ines = window("bob"), window("ines", java_script_enabled=False)
    answer = agent.run("echo race")
    shows(bob, "echo race")
    open_row(bob, "echo race")
    ines.goto(bob.url)
    approve(bob)
    expect(bob.locator("#outcome .badge")).to_have_text("exit 0")
    ines.get_by_label("Reason").fill("too late")
    ines.get_by_role("button", name="Deny").click()
    expect(ines.locator("body")).to_contain_text(re.compile(r"Bob approved this \d+ seconds? before you\."))
    assert answer.result(timeout=20).json()["exit_code"] == 0


def test_a_reason_overtaken_by_a_colleague_stays_on_the_page(site: Site, window: Window, agent: AgentSide) -> None:
    bob, ines = window("bob"), window("ines")
    answer = agent.run("echo overtaken")
    action = waits(agent, answer)
    for page in (bob, ines):
        page.goto(site.page("queue", action))
    bob.wait_for_timeout(QUIET_MS)
    bob.get_by_role("button", name="Deny…").click()
    bob.get_by_text("Too broad").click()
    bob.get_by_label("Reason").fill("Name the file\nthat you want.")
    approve(ines)
    expect(bob.get_by_text("Ines approved this before you. Your reason was not sent:")).to_be_visible()
    expect(bob.locator("[data-unsent-reason]")).to_have_text("Too broad. Name the file\nthat you want.")
    expect(ines.locator("[data-unsent]")).to_be_hidden()
    expect(bob.locator("#outcome .badge")).to_have_text("exit 0")
    expect(bob.locator("[data-unsent]")).to_be_visible()  # what follows does not take it away
    assert answer.result(timeout=20).json()["exit_code"] == 0


def test_ones_own_denial_is_not_called_unsent(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    answer = agent.run("echo mine")
    page.goto(site.page("queue", waits(agent, answer)))
    page.wait_for_timeout(QUIET_MS)
    deny(page, "Not this one.")
    expect(page.locator("#outcome")).to_contain_text("Denied by you")
    page.wait_for_timeout(1000)  # the socket's news of it has come too
    expect(page.locator("[data-unsent]")).to_be_hidden()
    assert answer.result(timeout=20).status_code == 403


def test_a_decision_on_its_way_is_not_overtaken_by_the_page(site: Site, window: Window, agent: AgentSide) -> None:
    bob, ines = window("bob"), window("ines")
    answer = agent.run("echo slow-answer")
    action = waits(agent, answer)
    for page in (bob, ines):
        page.goto(site.page("queue", action))
    held: list[Route] = []
    bob.route("**/decide", lambda route: held.append(route))
    bob.wait_for_timeout(QUIET_MS)
    deny(bob, "Held back.")
    approve(ines)
    expect(ines.locator("#outcome .badge")).to_have_text("exit 0")
    expect(bob.locator(".row", has_text="slow-answer").locator(".state")).to_contain_text("exit 0")
    expect(bob.locator("#card")).to_have_attribute("data-status", "pending")
    held[0].continue_()
    expect(bob.locator(".refusal")).to_contain_text(re.compile(r"Ines approved this \d+ seconds? before you\."))
    expect(bob.locator(".refusal")).to_contain_text("Held back.")
    assert answer.result(timeout=20).json()["exit_code"] == 0


def test_everything_works_without_script(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob", java_script_enabled=False)
    answer = agent.run("echo plain-form")
    waits(agent, answer)
    page.goto(site.page("queue"))
    page.locator(".row", has_text="plain-form").get_by_role("link").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#outcome")).to_contain_text("Approved by you")
    assert answer.result(timeout=20).json()["stdout"] == "plain-form\n"
    page.reload()
    expect(page.locator("#outcome .out")).to_contain_text("plain-form")


def waits(agent: AgentSide, answer: "Future[httpx.Response]") -> str:
    """The id of this agent's one waiting action, once it is there."""
    from tests.gvisor.served import until

    def pending() -> list[dict]:
        assert not answer.done(), answer.result().text
        return agent.api.get("/actions", params={"status": "pending"}).json()["items"]

    return until(pending)[0]["id"]


def test_other_workspaces_and_other_agents_see_nothing(site: Site, window: Window, agent: AgentSide) -> None:
    heard: list[str] = []
    mallory = window("mallory")
    mallory.on("websocket", lambda socket: socket.on("framereceived", lambda frame: heard.append(str(frame))))
    mallory.reload()
    expect(mallory.locator("body[data-link=up]")).to_be_attached()
    answer = agent.run("echo private")
    action = waits(agent, answer)
    for parts in (("queue",), ("queue", action), ("queue", action, "raw")):
        assert mallory.request.get(site.page(*parts)).status == 404
    assert mallory.request.get(site.page("queue", action, workspace="elsewhere")).status == 404
    mallory.wait_for_timeout(2500)
    assert set(heard) == {'{"snapshot": 0, "open": {}}'}
    refused = mallory.evaluate(
        """(address) => new Promise((done) => {
            const socket = new WebSocket(address);
            socket.onopen = () => done("open");
            socket.onerror = () => done("refused");
        })""",
        site.page("x").replace("http", "ws").replace("/w/", "/ws/queue/").removesuffix("/x"),
    )
    assert refused == "refused"
    other = httpx.Client(base_url=f"{site.url}/v1", headers={"X-API-Key": site.known["other_key"]}, trust_env=False)
    assert other.get(f"/actions/{action}").status_code == 404
    assert other.get("/actions").json()["items"] == []
    assert agent.api.post(f"/actions/{action}/cancel").status_code == 200
    answer.result(timeout=20)
