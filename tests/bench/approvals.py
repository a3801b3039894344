"""The gate under load: 1,000 actions wait, 20 reviewers have the queue open, 200 agents wait. Beside the same with 10
actions, one reviewer and no agent, on the same server in the same run.

    .venv/bin/python -m tests.bench.approvals [--runs 30] [--pending 1000] [--reviewers 20] [--waiting 200]

Two of the reviewers are real Chromium; the others send and fetch what a page does (`tests.bench.reviewers`). Ratios are
what counts; times only show how noisy the machine was, on which clients and server share the cores.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx

from tests.bench import report, windows
from tests.bench.reviewers import Reviewer, Waiter
from tests.bench.sandboxes import Row, p95
from tests.gvisor.served import CHECKOUT, Served

EACH = 5  # actions that one agent has waiting, in two conversations
FEW = 10
IDLE_S, PINGS = 8.0, 60
PAGES = 6
WINDOWS, RUNS_OF_WINDOWS = 2, 6
ASKING, MOST_RUNS = 3, 48  # an agent has at most 20 waiting

CAST = """
import json, sys
import django
django.setup()
from django.conf import settings
from django.test import Client
from console.workspaces import keys
from console.workspaces.models import Workspace
from tests import people
home = Workspace.objects.get()
many = int(sys.argv[1])
reviewers = [people.member(home, f"reviewer{n}", "approvals:review", "sandboxes:read") for n in range(many)]
cookies = []
for each in reviewers:
    client = Client()
    client.force_login(each.user)
    cookies.append(client.cookies[settings.SESSION_COOKIE_NAME].value)
agents = [people.agent(home, f"asking{number}") for number in range(int(sys.argv[2]))]
asking = [keys.make_agent_key(agent, name="asking", by=None)[1] for agent in agents]
print(json.dumps({"workspace": home.pk, "cookie": settings.SESSION_COOKIE_NAME, "sessions": cookies,
                  "asking": asking}))
"""
WAITING = """
import json, sys
import django
django.setup()
from console.workspaces import keys
from console.workspaces.models import Workspace
from tests import people
from tests.approvals.proposals import pending
home, start, agents, each = Workspace.objects.get(), *map(int, sys.argv[1:])
found = []
for number in range(start, start + agents):
    agent = people.agent(home, f"agent{number}")
    secret = keys.make_agent_key(agent, name="waiting", by=None)[1]
    caller = keys.authenticate(secret)
    for at in range(each):
        months = range(1, 2 + 7 * (at % 2))  # one line, or eight
        lines = [f"python3 report.py --month {month} --agent {number} --part {at}" for month in months]
        flags = ("unpinned_code",) if at % 3 == 0 else ()
        place = {"conversation": f"c{at % 2}", "sandbox_id": f"sbx_{number}"}
        action = pending(caller, "\\n".join(lines), **place, flags=flags, reason="The monthly report.")
    found.append([secret, action.pk])
print(json.dumps(found))
"""


@dataclass
class Site:
    served: Served
    workspace: str
    cookie: str
    sessions: list[str]
    asking: list[str]
    waiting: list[list[str]] = field(default_factory=list)  # key and action of each agent

    @property
    def pid(self) -> int:
        assert self.served.process
        return self.served.process.pid

    def wait_more(self, pending: int) -> None:
        """Until so many actions wait."""
        agents = (pending - EACH * len(self.waiting)) // EACH
        if agents > 0:
            self.waiting += _run(self.served, WAITING, len(self.waiting), agents, EACH)

    def reviewer(self, number: int) -> Reviewer:
        return Reviewer(self.served.url, self.workspace, {self.cookie: self.sessions[number]})

    def rss_mb(self) -> float:
        return int(Path(f"/proc/{self.pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def cpu_s(self) -> float:
        """Of the server's own process."""
        used = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")


def _run(served: Served, script: str, *arguments: int) -> Any:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    env = {**served.environment, "DJANGO_SETTINGS_MODULE": "console.settings"}
    return json.loads(subprocess.check_output(command, cwd=CHECKOUT, env=env))


class Asking:
    """Agents whose proposals are measured, each with a sandbox that runs."""

    def __init__(self, site: Site) -> None:
        self.site, self.number = site, 0
        self.http = httpx.AsyncClient(
            base_url=site.served.url, timeout=70, trust_env=False, limits=httpx.Limits(max_connections=None)
        )

    async def propose(self) -> tuple[str, str]:
        """Its key and its action, which waits for a person."""
        self.number += 1
        key = self.site.asking[self.number % len(self.site.asking)]
        answer = await self.http.post(
            "/v1/tools/run", headers={"X-API-Key": key, "Prefer": "wait=0"},
            json={"conversation": "measured", "arguments": {"argv": ["true", str(self.number)]}},
        )  # fmt: skip
        assert answer.status_code == 202, answer.text
        return key, answer.json()["id"]

    async def cancel(self, key: str, action: str) -> None:
        (await self.http.post(f"/v1/actions/{action}/cancel", headers={"X-API-Key": key})).raise_for_status()

    async def warm(self) -> None:
        """Each has its sandbox from here on."""
        review = {"X-API-Key": self.site.served.first_run["review_key"]}
        for _ in self.site.asking:
            key, action = await self.propose()
            digest = (await self.http.get(f"/v1/actions/{action}", headers=review)).json()["digest"]
            sent = {"verdict": "approve", "digest": digest}
            (await self.http.post(f"/v1/actions/{action}/decision", json=sent, headers=review)).raise_for_status()
            await Waiter(self.http, key, action).task

    async def ping(self) -> float:
        return await timed(self.http.get("/v1/admin/me", headers={"X-API-Key": self.site.asking[0]}))


async def timed(call: Awaitable[Any]) -> float:
    began = perf_counter()
    await call
    return (perf_counter() - began) * 1000


@asynccontextmanager
async def opened(site: Site, asking: Asking, reviewers: int, waiting: int) -> AsyncIterator[list[Reviewer]]:
    """So many pages, each on a card of its own, and so many agents in long-polls."""
    async with AsyncExitStack() as stack:
        for key, action in site.waiting[:waiting]:
            stack.push_async_callback(Waiter(asking.http, key, action).close)
        pages = [site.reviewer(number) for number in range(reviewers)]
        for page, (_, action) in zip(pages, site.waiting * reviewers, strict=False):
            stack.push_async_callback(page.close)
            await page.visit(action)
        await asyncio.sleep(2)
        yield pages


Measured = dict[str, list[float]]


async def measure(
    site: Site, asking: Asking, pages: list[Reviewer], asked: list[tuple[str, str]], runs: int
) -> Measured:
    found: Measured = {"ping": [await asking.ping() for _ in range(PINGS)]}
    used, began = site.cpu_s(), perf_counter()
    await asyncio.sleep(IDLE_S)
    found["idle_cpu"] = [100 * (site.cpu_s() - used) / (perf_counter() - began)]
    found["rss"], found["threads"] = [site.rss_mb()], [float(site.threads())]
    told("idle")
    found |= await measure_pages(pages[0])
    told("pages")
    found |= await measure_proposals(asking, pages, runs)
    told("proposals")
    found |= await measure_approvals(site, asking, pages, asked)
    told("approvals")
    queue, sessions = pages[0].queue, site.sessions[-WINDOWS:]
    async with windows.windows(site.served.url, queue, site.cookie, sessions) as real:
        found |= await windows.measure(real[: len(pages)], asking.propose, RUNS_OF_WINDOWS)
    told("windows")
    found["rss_after"] = [site.rss_mb()]
    return found


def told(what: str) -> None:
    """It takes minutes."""
    print(f"  {what}: measured", file=sys.stderr, flush=True)


async def measure_pages(page: Reviewer) -> Measured:
    action = page.card
    addresses = {
        "queue": page.queue, "card": f"{page.queue}/{action}", "list": f"{page.queue}?part=list",
        **{part: f"{page.queue}/{action}?part={part}" for part in ("row", "votes", "fate")},
    }  # fmt: skip
    return {name: [await timed(page.http.get(address)) for _ in range(PAGES)] for name, address in addresses.items()}


async def measure_proposals(asking: Asking, pages: list[Reviewer], runs: int) -> Measured:
    """From the call to each page that hears of it, and the answer to the call itself."""
    heard, answered = [], []
    for _ in range(runs):
        began = perf_counter()
        key, action = await asking.propose()
        answered.append(1000 * (perf_counter() - began))
        heard += [1000 * (await page.heard.of(action, "pending") - began) for page in pages]
        await asking.cancel(key, action)
        await asyncio.sleep(0.3)
    return {"proposed": answered, "heard": heard}


async def measure_approvals(
    site: Site, asking: Asking, pages: list[Reviewer], asked: list[tuple[str, str]]
) -> Measured:
    """By the first reviewer, of what all have listed; the last one's socket says when it runs."""
    found: Measured = {name: [] for name in ("opened", "answered", "running", "told", "drawn", "cpu_each")}
    by = pages[0]
    for key, action in asked:
        began = perf_counter()
        page = await by.visit(action)
        found["opened"].append(1000 * (perf_counter() - began))
        waiter = Waiter(asking.http, key, action)
        await asyncio.sleep(0.5)
        used, began = site.cpu_s(), perf_counter()
        await by.decide(page, action, "approve")
        found["answered"].append(1000 * (perf_counter() - began))
        found["told"].append(1000 * (await waiter.task - began))
        found["running"].append(1000 * (await pages[-1].heard.of(action, "running") - began))
        found["drawn"] += [1000 * (await each.drawn.of(action, "succeeded") - began) for each in pages[1:] or [by]]
        await asyncio.sleep(0.5)
        found["cpu_each"].append(1000 * (site.cpu_s() - used))
    return found


# name, words, unit, what is to be reached
SHOWN = (
    ("proposed", "propose over /v1/tools, answered with 202", "ms", ""),
    ("heard", "proposal → every open page's socket", "ms", "p95 ≤ 150"),
    ("w_heard", "proposal → counted on the page, in Chromium", "ms", "p95 ≤ 150"),
    ("w_listed", "`Show n new` with all listed → the row, in Chromium", "ms", ""),
    ("answered", "approve click → the card's answer", "ms", ""),
    ("running", "approve click → started, sandbox running", "ms", "p95 ≤ 150"),
    ("told", "approve click → its agent has the outcome", "ms", ""),
    ("drawn", "approve click → its row has ended on every page", "ms", ""),
    ("w_approved", "approve click → outcome in Chromium", "ms", ""),
    ("opened", "open a card: page and socket", "ms", ""),
    ("w_page", "the queue in Chromium, socket up", "ms", ""),
    ("w_all", "all of the queue (`?all=1`) in Chromium, socket up", "ms", ""),
    ("queue", "GET the queue's page", "ms", ""),
    ("card", "GET a card's page", "ms", ""),
    ("list", "GET ?part=list", "ms", ""),
    ("row", "GET ?part=row", "ms", ""),
    ("votes", "GET ?part=votes", "ms", ""),
    ("fate", "GET ?part=fate", "ms", ""),
    ("ping", "another request, GET /v1/admin/me", "ms", "≤ 2 ×"),
    ("cpu_each", "the server's CPU for one approval, all pages told", "ms", ""),
    ("idle_cpu", "the server's CPU while nothing happens", "%", ""),
    ("rss", "the server's memory", "MB", ""),
    ("rss_after", "the server's memory, after all that", "MB", ""),
    ("threads", "the server's threads", "", ""),
)


def table(many: Measured, few: Measured) -> list[Row]:
    return [
        Row(what, statistics.median(many[name]), statistics.median(few[name]), unit, reach, _spread(many[name]))
        for name, what, unit, reach in SHOWN
    ]


def _spread(times: list[float]) -> str:
    return f"p95 {p95(times):.0f}, n={len(times)}" if len(times) > 1 else ""


async def run(asked: argparse.Namespace, served: Served) -> list[Row]:
    site = Site(served, **_run(served, CAST, asked.reviewers, ASKING))
    asking, measured = Asking(site), []
    await asking.warm()
    for pending, reviewers, waiting in ((FEW, 1, 0), (asked.pending, asked.reviewers - WINDOWS, asked.waiting)):
        oldest = [await asking.propose() for _ in range(asked.runs)]  # which each page lists
        site.wait_more(pending)
        print(f"{pending} actions, {reviewers} pages, {waiting} agents", file=sys.stderr, flush=True)
        async with opened(site, asking, reviewers, waiting) as pages:
            measured.append(await measure(site, asking, pages, oldest, asked.runs))
    few, many = measured
    return table(many, few)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("runs", 30), ("pending", 1000), ("reviewers", 20), ("waiting", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_known_args()[0]  # what the other scripts are asked for comes here as well
    asked.runs = min(asked.runs, MOST_RUNS)
    with tempfile.TemporaryDirectory() as place:
        served = Served(Path(place) / "var").up()
        try:
            rows = asyncio.run(run(asked, served))
        finally:
            served.close()
    print(f"{'':56}{'many':>9} {'few':>9}")
    for row in rows:
        print(row.shown())
    facts = {name: getattr(asked, name) for name in ("runs", "pending", "reviewers", "waiting")}
    report.keep("approvals", **facts, rows=[asdict(row) | {"ratio": row.ratio} for row in rows])


if __name__ == "__main__":
    main()
