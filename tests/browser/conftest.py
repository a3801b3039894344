"""Real Chromium on a real console. A pytest process of its own: synchronous Playwright keeps a loop on this thread."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.site import AgentSide, Site
from tests.gvisor.served import Served
from tests.people import PASSWORD

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/browser/" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    served = Served(tmp_path_factory.mktemp("console") / "var")
    try:
        site = Site(served.up())
        site.furnish()
        yield site
    finally:
        served.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def window(chromium: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """`window("bob")` is a browser of its own in which Bob is signed in. A script error fails the test."""
    contexts: list[Any] = []
    errors: list[str] = []

    def opened(who: str | None, **options: Any) -> Page:
        context = chromium.new_context(viewport={"width": 1280, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(f"dialog {dialog.message}"))
        page.on("console", lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None)
        if who:
            sign_in(page, site, f"{who}@example.test", PASSWORD)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def sign_in(page: Page, site: Site, email: str, password: str) -> None:
    page.goto(f"{site.url}/sign-in")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)


@pytest.fixture
def agent(site: Site) -> Iterator[AgentSide]:
    side = site.agent()
    yield side
    side.close()
