"""A reviewer who is tired, hurried or not alone: what keys, clicks and colleagues do, and what they do not."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.site import AgentSide, Site
from tests.browser.test_card import cancel
from tests.browser.test_review import QUIET_MS, approve, waits
from tests.gvisor.served import until

SLOW_MS = 20_000  # reading goes by frames, and a busy machine draws few
Window = Callable[..., Page]


def status(agent: AgentSide, action: str) -> str:
    return agent.api.get(f"/actions/{action}").json()["status"]


def wait_together(agent: AgentSide, number: int) -> list[str]:
    """Ids of what waits, once that many do."""

    def ids() -> list[str]:
        found = agent.api.get("/actions", params={"status": "pending"}).json()["items"]
        return [item["id"] for item in found] if len(found) == number else []

    return until(ids)


def test_the_first_click_after_the_window_regains_focus_does_nothing(
    site: Site, window: Window, agent: AgentSide
) -> None:
    page, answer = window("bob"), agent.run("echo refocus")
    action = waits(agent, answer)
    page.goto(site.page("queue", action))
    expect(page.locator("#card")).to_have_attribute("data-seen", "all")
    page.wait_for_timeout(QUIET_MS)
    page.evaluate("""() => {
        window.dispatchEvent(new Event("focus"));
        document.querySelector("[data-approve]").click();
    }""")
    page.wait_for_timeout(300)
    assert status(agent, action) == "pending"
    approve(page)
    assert answer.result(timeout=20).json()["exit_code"] == 0


def test_no_single_key_decides_and_enter_on_deny_denies(site: Site, window: Window, agent: AgentSide) -> None:
    page, answer = window("bob"), agent.run("echo keys")
    action = waits(agent, answer)
    page.goto(site.page("queue", action))
    expect(page.locator("#card")).to_have_attribute("data-seen", "all")
    page.wait_for_timeout(QUIET_MS)
    assert page.evaluate("document.activeElement.matches('[data-approve]')") is False
    for key in ("Enter", "Space", "a", "y", "Shift+Tab", "Enter"):
        page.keyboard.press(key)
    assert status(agent, action) == "pending"
    page.goto(site.page("queue", action))
    page.wait_for_timeout(QUIET_MS)
    page.get_by_role("button", name="Deny…").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Reason").fill("not now")
    page.get_by_role("button", name="Deny", exact=True).focus()
    page.keyboard.press("Enter")
    assert answer.result(timeout=20).status_code == 403
    assert status(agent, action) == "denied"


def test_what_hides_below_blank_lines_is_counted_and_the_buttons_stay_in_view(
    site: Site, window: Window, agent: AgentSide
) -> None:
    page, answer = window("bob"), agent.run("ls" + "\n" * 200 + "rm -rf ~")
    page.goto(site.page("queue", waits(agent, answer)))
    page.wait_for_timeout(QUIET_MS)
    expect(page.locator(".sheet-head").first).to_contain_text("199 blank")
    button = page.get_by_role("button", name="Approve")
    expect(button).to_be_in_viewport()
    expect(button).to_have_attribute("aria-disabled", "true")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(button).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    cancel(agent)
    answer.result(timeout=20)


def test_what_expires_loses_its_buttons_on_every_screen(site: Site, window: Window, agent: AgentSide) -> None:
    bob, ines, answer = window("bob"), window("ines"), agent.run("echo expires")
    action = waits(agent, answer)
    for page in (bob, ines):
        page.goto(site.page("queue", action))
        expect(page.get_by_role("button", name="Deny…")).to_be_visible()
    site.shell(
        "from django.utils import timezone\nfrom approvals.models import Action\n"
        f"Action.objects.filter(pk={action!r}).update(expires_at=timezone.now())"
    )
    until(lambda: status(agent, action) == "expired")
    for page in (bob, ines):
        expect(page.get_by_role("button", name="Deny…")).to_have_count(0, timeout=2000)
        expect(page.locator("#outcome")).to_contain_text("this is not a denial")
    answer.result(timeout=20)


def test_a_colleague_on_the_same_card_is_named_and_goes(site: Site, window: Window, agent: AgentSide) -> None:
    bob, ines, answer = window("bob"), window("ines"), agent.run("echo together")
    action = waits(agent, answer)
    bob.goto(site.page("queue", action))
    expect(bob.locator("#looking")).to_be_hidden()
    ines.goto(site.page("queue", action))
    expect(bob.locator("#looking")).to_contain_text("Ines is looking")
    expect(bob.locator(".row .looking")).to_contain_text("Ines is looking")
    ines.goto(site.page("queue"))
    expect(bob.locator("#looking")).to_be_hidden()
    expect(bob.locator(".row .looking")).to_have_count(0)
    cancel(agent)
    answer.result(timeout=20)


def test_an_empty_queue_shows_what_comes_at_once_and_stays_alive(site: Site, window: Window, agent: AgentSide) -> None:
    page = window("bob")
    page.goto(site.page("queue"))
    expect(page.locator("[data-nothing]")).to_be_visible()
    page.wait_for_function("document.body.dataset.link === 'up'")
    # A page that asks without end is stopped, so that it can still be asked how often it did.
    page.evaluate("""() => {
        const { fetch } = window;
        window.fetched = 0;
        window.fetch = (...asked) => (window.fetched += 1) > 50 ? new Promise(() => 0) : fetch(...asked);
    }""")
    answers = [agent.run("echo one"), agent.run("echo two"), agent.run("echo three")]
    ids = wait_together(agent, 3)
    for action in ids:
        expect(page.locator(f'.row[data-id="{action}"]')).to_be_visible()
    page.wait_for_timeout(500)
    assert page.evaluate("window.fetched") < 20
    cancel(agent)
    for answer in answers:
        answer.result(timeout=20)


def test_several_are_approved_once_all_were_read(site: Site, window: Window, agent: AgentSide) -> None:
    page, answers = window("bob"), [agent.run("echo one"), agent.run("echo two")]
    first, second = wait_together(agent, 2)
    page.goto(site.page("queue", first))
    expect(page.locator("#batch")).to_be_hidden()
    expect(page.locator(f'.row input[value="{first}"][data-read]')).to_be_visible(timeout=SLOW_MS)
    for action in (first, second):
        page.locator(f'.row input[value="{action}"]').check()
    batch = page.locator("#batch")
    expect(batch).to_contain_text("1 not read yet")
    batch.get_by_role("button", name="Approve 2").click(force=True)
    page.wait_for_timeout(300)
    assert {status(agent, action) for action in (first, second)} == {"pending"}
    page.goto(site.page("queue", second))
    expect(page.locator(f'.row input[value="{second}"][data-read]')).to_be_visible(timeout=SLOW_MS)
    for action in (first, second):
        page.locator(f'.row input[value="{action}"]').check()
    expect(batch).to_contain_text("2 selected")
    page.wait_for_timeout(QUIET_MS)
    batch.get_by_role("button", name="Approve 2").click()
    expect(page.get_by_role("heading", name="2 of 2 approved")).to_be_visible()
    assert sorted(answer.result(timeout=30).json()["stdout"] for answer in answers) == ["one\n", "two\n"]


def test_all_of_a_conversation_are_denied_with_one_reason(site: Site, window: Window, agent: AgentSide) -> None:
    page, answers = window("bob"), [agent.run(f"echo {number}") for number in range(3)]
    wait_together(agent, 3)
    page.goto(site.page("queue"))
    page.wait_for_timeout(QUIET_MS)
    page.get_by_role("button", name="Deny all 3…").click()
    page.get_by_label("Reason").fill("Stop this")
    page.get_by_role("button", name="Deny 3").click()
    expect(page.get_by_role("heading", name="3 of 3 denied")).to_be_visible()
    assert {answer.result(timeout=20).status_code for answer in answers} == {403}


def test_one_edits_another_approves_and_the_edited_text_runs(site: Site, window: Window, agent: AgentSide) -> None:
    bob, ines, answer = window("bob"), window("ines"), agent.run("echo proposed")
    action = waits(agent, answer)
    ines.goto(site.page("queue", action))
    bob.goto(site.page("queue", action))
    bob.get_by_role("link", name="Edit", exact=True).click()
    bob.get_by_label("Command").fill("echo edited")
    bob.get_by_role("button", name="Show what would run").click()
    expect(bob.locator(".sheet").first).to_contain_text("echo edited")
    assert status(agent, action) == "pending"
    bob.get_by_role("button", name="Put up for approval").click()
    expect(bob.locator("#seen")).to_contain_text("Nobody approves what they have edited.")
    expect(ines.locator("#card")).to_contain_text("Edited by Bob")  # without a reload
    approve(ines)
    assert answer.result(timeout=20).json()["stdout"] == "edited\n"
    outcome = agent.api.get(f"/actions/{action}").json()["outcome"]
    assert outcome["edited"] is True
    assert "+echo edited" in outcome["diff_of_edit"]
