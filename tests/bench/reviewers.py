"""Reviewers' browsers without a browser: what a page of the queue does over the wire, as `live.js` and `notices.js` do,
and an agent that waits. Must stay true to those scripts: what they fetch is what is measured."""

import asyncio
import json
import re
from collections.abc import Coroutine
from contextlib import suppress
from random import uniform
from time import perf_counter
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

AT_ONCE = httpx.Limits(max_connections=6, max_keepalive_connections=6)  # as browsers to one host
ROW = re.compile(r'<li class="row[^"]*" data-id="([^"]+)" data-status="([^"]+)"')
HIDDEN = re.compile(r'<input type="hidden" name="(digest|seen|csrfmiddlewaretoken)" value="([^"]*)"')
HELD_S = 60.0
NOTICES_APART_S = 3.0


class Moments:
    """When each action was first seen to be what."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], asyncio.Future[float]] = {}

    def _of(self, *what: str) -> asyncio.Future[float]:
        return self._at.setdefault((what[0], what[1]), asyncio.get_running_loop().create_future())

    def note(self, action: str, status: str) -> None:
        if not (moment := self._of(action, status)).done():
            moment.set_result(perf_counter())

    async def of(self, action: str, status: str) -> float:
        async with asyncio.timeout(HELD_S):
            return await asyncio.shield(self._of(action, status))


class Reviewer:
    """One page: its list, the card that is open on it, and its socket. Times are `perf_counter`'s."""

    def __init__(self, url: str, workspace: str, cookies: dict[str, str]) -> None:
        self.url, self.workspace, self.queue = url, workspace, f"/w/{workspace}/queue"
        self.http = httpx.AsyncClient(
            base_url=url, cookies=cookies, limits=AT_ONCE, timeout=HELD_S, trust_env=False, headers={"Origin": url}
        )
        self.rows: dict[str, str] = {}  # id -> status, as shown
        self.waits: set[str] = set()
        self.card, self.seq = "", 0
        self.heard, self.drawn = Moments(), Moments()  # that the socket said so; that its row did
        self.lookers: dict[str, list[str]] = {}
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._soon: set[str] = set()
        self._looks, self._looked = False, 0.0
        self._background: set[asyncio.Task[Any]] = set()
        self.socket: ClientConnection | None = None

    async def visit(self, card: str = "") -> str:
        """The whole page, as a click on a row or on Queue asks for it; its socket is a new one."""
        await self.leave()
        page = await self._page(f"{self.queue}/{card}".rstrip("/"))
        self.card, self.rows = card, dict(ROW.findall(page))
        cookie = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        address = f"{self.url.replace('http', 'ws', 1)}/ws/queue/{self.workspace}{f'?card={card}' if card else ''}"
        self.socket = await connect(
            address, origin=Origin(self.url), additional_headers={"Cookie": cookie}, max_size=None, proxy=None
        )
        self._later(self._hear(self.socket))
        return page

    async def leave(self) -> None:
        if self.socket:
            await self.socket.close()
        for task in list(self._background):
            task.cancel()
        self._background.clear()
        self._loading.clear()
        self._soon.clear()
        self._looks = False

    async def close(self) -> None:
        await self.leave()
        await self.http.aclose()

    async def decide(self, page: str, action: str, verdict: str) -> None:
        """The form of a card, by htmx."""
        sent = dict(HIDDEN.findall(page.partition('id="card"')[2]))
        assert sent["seen"], "the card gave no token"
        answer = await self.http.post(
            f"{self.queue}/{action}/decide", data={**sent, "verdict": verdict}, headers={"HX-Request": "true"}
        )
        assert "Approved by you" in answer.raise_for_status().text, answer.text[:300]

    # ---- live.js ----
    async def _hear(self, socket: ClientConnection) -> None:
        async for text in socket:
            message = json.loads(text)
            if "snapshot" in message:
                self.seq = message["snapshot"]
                self.waits = {action for action, status in message["open"].items() if status == "pending"}
            elif "looking" in message:
                self._look_at(message["looking"])
            elif message["seq"] > self.seq:
                assert message["seq"] == self.seq + 1, "a gap"
                self.seq = message["seq"]
                self._changed(message)

    def _changed(self, message: dict[str, Any]) -> None:
        if message["subject"] != "action":
            return
        action, status = message["id"], message["status"]
        self.heard.note(action, status)
        if status == "pending" and self.card == action:
            self._load(action, "votes")
        if self.rows.get(action, status) != status:
            self._load_row(action)
        if self.card == action and status != "pending":
            self._load(action, "card" if status == "approved" else "fate")
        if status != "pending":
            self.waits.discard(action)
        elif action not in self.waits:
            self.waits.add(action)
            self._look_soon()

    def _look_at(self, now: dict[str, list[str]]) -> None:
        moved = [action for action in {*self.lookers, *now} if self.lookers.get(action) != now.get(action)]
        self.lookers = now
        for action in moved:
            if action in self.rows:
                self._load_row(action)
            if action == self.card:
                self._load(action, "looking")

    def _load(self, action: str, part: str) -> None:
        """The newest answer wins."""
        address = f"{self.queue}/{action}?part={part}" + (f"&open={self.card}" if part == "row" else "")
        if older := self._loading.get(address):
            older.cancel()
        self._loading[address] = self._later(self._fragment(address, action, part))

    async def _fragment(self, address: str, action: str, part: str) -> None:
        text = await self._page(address)
        if part == "row":
            ((_, status),) = ROW.findall(text)
            self.rows[action] = status
            self.drawn.note(action, status)

    def _load_row(self, action: str) -> None:
        if action not in self._soon:
            self._soon.add(action)
            self._later(self._row_in_a_moment(action))

    async def _row_in_a_moment(self, action: str) -> None:
        await asyncio.sleep(uniform(0.1, 0.3))
        self._soon.discard(action)
        self._load(action, "row")

    def _look_soon(self) -> None:
        if not self._looks:
            self._looks = True
            self._later(self._look_for_notices())

    async def _look_for_notices(self) -> None:
        await asyncio.sleep(max(0.0, self._looked + NOTICES_APART_S - perf_counter()))
        self._looks, self._looked = False, perf_counter()
        await self._page(f"/w/{self.workspace}/notices/waiting")

    async def _page(self, address: str) -> str:
        answer = await self.http.get(address, headers={"HX-Request": "true"} if "part=" in address else {})
        assert answer.status_code == 200, f"{address}: {answer.status_code}"
        return answer.text

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()):
            raise error


class Waiter:
    """An agent that waits for one of its actions, with the key of its own."""

    def __init__(self, http: httpx.AsyncClient, key: str, action: str) -> None:
        self.http, self.key, self.action = http, key, action
        self.polls = 0
        self.task = asyncio.create_task(self._wait())

    async def _wait(self) -> float:
        """When it was told the end."""
        while True:
            answer = await self.http.get(f"/v1/actions/{self.action}?wait=55", headers={"X-API-Key": self.key})
            self.polls += 1
            if answer.raise_for_status().json()["status"] not in ("pending", "approved", "running"):
                return perf_counter()

    async def close(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
