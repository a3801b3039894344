"""What two real browsers show, and when: Chromium on the queue, beside the reviewers of `tests.bench.reviewers`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import time
from typing import Any

from playwright.async_api import Page, async_playwright

from tests.browser.conftest import CHROMIUM, FLAGS

NOW = "performance.timeOrigin + performance.now()"
WAITING = "() => Number(document.querySelector('.title [data-waiting]').textContent)"
COUNTED = f"(n) => ({WAITING})() >= n && {NOW}"
LISTED = f'(id) => document.querySelector(`.row[data-id="${{id}}"]`) && {NOW}'
READ = "() => document.querySelector('#card[data-seen=\"all\"]:not([data-quiet])')"
DECIDED = f"() => document.querySelector('#outcome').dataset.status !== 'pending' && {NOW}"
CLICKED = f"document.addEventListener('click', () => {{ window.clicked = {NOW}; }}, true)"


class Window:
    """One page of one who is signed in. Times in ms."""

    def __init__(self, page: Page, queue: str) -> None:
        self.page, self.queue = page, queue

    async def visit(self, card: str = "") -> float:
        """Until all of the page is there and its socket up."""
        began = 1000 * time()
        await self.page.goto(f"{self.queue}{card}")
        return await self._at(f"() => document.body.dataset.link === 'up' && {NOW}") - began

    async def waiting(self) -> int:
        found: int = await self.page.evaluate(WAITING)
        return found

    async def counts(self, waiting: int, began: float) -> float:
        return await self._at(COUNTED, waiting) - began

    async def lists(self, action: str) -> float:
        """From the click on `Show n new` to the row."""
        await self.page.evaluate(CLICKED)
        await self.page.click("[data-news]")
        return await self._at(LISTED, action) - await self.page.evaluate("window.clicked")

    async def approves(self, action: str) -> float:
        """From the click to the outcome's place on the card."""
        await self.visit(f"/{action}")
        await self.page.wait_for_function(READ)
        await self.page.evaluate(CLICKED)
        await self.page.click("#card [data-approve][value=approve]")
        return await self._at(DECIDED) - await self.page.evaluate("window.clicked")

    async def _at(self, true: str, argument: Any = None) -> float:
        found: float = await (await self.page.wait_for_function(true, arg=argument)).json_value()
        return found


@asynccontextmanager
async def windows(url: str, queue: str, cookie: str, sessions: list[str]) -> AsyncIterator[list[Window]]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        found = []
        for session in sessions:
            context = await browser.new_context(viewport={"width": 1280, "height": 800})
            await context.add_cookies([{"name": cookie, "value": session, "url": url}])
            page = await context.new_page()
            page.set_default_timeout(60_000)
            found.append(Window(page, f"{url}{queue}"))
        yield found
        await browser.close()


async def measure(
    found: list[Window], propose: Callable[[], Awaitable[tuple[str, str]]], runs: int
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in ("w_page", "w_all", "w_heard", "w_listed", "w_approved")}
    for each in found:
        times["w_page"] += [await each.visit() for _ in range(3)]
        times["w_all"] += [await each.visit("?all=1") for _ in range(3)]
    waiting, asked = await found[0].waiting(), []
    for number in range(1, runs + 1):
        began = 1000 * time()
        asked.append((await propose())[1])
        times["w_heard"] += [await each.counts(waiting + number, began) for each in found]
    for each in found:
        times["w_listed"].append(await each.lists(asked[-1]))
    for number, action in enumerate(asked):
        times["w_approved"].append(await found[number % len(found)].approves(action))
    return times
