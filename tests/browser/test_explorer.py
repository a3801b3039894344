"""The API explorer works from this server alone, and a call can be tried with a key."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.site import Site


def test_a_call_is_tried_with_a_key(window: Callable[..., Page], site: Site) -> None:
    page = window(None)
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(f"{site.url}/v1/docs")
    page.get_by_role("button", name="Authorize").click()
    form = page.locator(".modal-ux .auth-container", has_text="X-API-Key")
    form.locator("input").fill(site.served.first_run["agent_key"])
    form.get_by_role("button", name="Apply credentials").click()
    page.locator(".modal-ux .btn-done").first.click()
    call = page.locator("#operations-This_key-get_me")
    call.locator(".opblock-summary-control").click()
    call.get_by_role("button", name="Execute").click()
    expect(call.locator(".live-responses-table")).to_contain_text('"sandboxes:run"')
    assert fetched
    assert all(url.startswith((site.url, "data:")) for url in fetched), fetched
