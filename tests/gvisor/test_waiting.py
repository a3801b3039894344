"""Waiting calls cost neither a thread nor a database handle each, and hear at once."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from .served import CHECKOUT, Served

pytestmark = pytest.mark.gvisor
WAITING = 100
PER_KEY = 20


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    console = Served(tmp_path / "var").up()
    yield console
    console.close()


def more_agent_keys(served: Served, count: int) -> list[str]:
    code = f"""
from console.workspaces import keys
from console.workspaces.models import Agent
for n in range({count}):
    print("KEY", keys.make_agent_key(Agent.objects.get(), name=str(n), by=None)[1])
"""
    command = [sys.executable, "manage.py", "shell", "-c", code]
    done = subprocess.run(command, cwd=CHECKOUT, env=served.environment, check=True, capture_output=True, text=True)
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("KEY ")]


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def database_handles(pid: int) -> int:
    links = (Path(f"/proc/{pid}/fd") / name for name in os.listdir(f"/proc/{pid}/fd"))
    return sum(os.readlink(link).endswith("db.sqlite3") for link in links if os.path.islink(link))


def test_a_hundred_waiting_calls_hold_no_thread_and_no_handle_each(served: Served) -> None:
    keys = more_agent_keys(served, WAITING // PER_KEY)
    asyncio.run(_wait_and_count(served, keys))


async def _wait_and_count(served: Served, keys: list[str]) -> None:
    pid = served.process.pid
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=f"{served.url}/v1", timeout=60, limits=limits, trust_env=False) as client:

        async def call(key: str, method: str, path: str, **more) -> httpx.Response:
            return await client.request(method, path, headers={"X-API-Key": key}, **more)

        sandbox = (await call(keys[0], "POST", "/sandboxes", json={})).raise_for_status().json()["id"]
        command = asyncio.ensure_future(
            call(keys[0], "POST", f"/sandboxes/{sandbox}/commands", json={"command": "echo hi"})
        )
        action = await _pending(call, keys[1])
        path = f"/actions/{action['id']}"
        waits = [
            asyncio.ensure_future(call(key, "GET", path, params={"wait": 55}))
            for key in keys
            for _ in range(PER_KEY - (key == keys[0]))
        ]
        await asyncio.sleep(2)
        assert not any(wait.done() for wait in waits)
        assert threads(pid) <= 40
        assert database_handles(pid) <= 20
        refused = await call(keys[1], "GET", path, params={"wait": 1})
        assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)
        await _approve(served, action)
        answers = await asyncio.gather(*waits)
        assert {answer.json()["status"] for answer in answers} == {"succeeded"}
        assert (await command).json()["stdout"] == "hi\n"


async def _pending(call, key: str) -> dict:
    for _ in range(200):
        items = (await call(key, "GET", "/actions", params={"status": "pending"})).json()["items"]
        if items:
            return items[0]
        await asyncio.sleep(0.05)
    raise AssertionError("nothing was proposed")


async def _approve(served: Served, action: dict) -> None:
    def decide() -> None:
        with served.api("review") as api:
            body = {"verdict": "approve", "digest": action["digest"]}
            api.post(f"/actions/{action['id']}/decision", json=body).raise_for_status()

    await asyncio.to_thread(decide)


def test_a_client_that_leaves_takes_nothing_with_it(served: Served) -> None:
    with served.api("agent", timeout_s=2) as api:
        sandbox = api.post("/sandboxes", json={}).raise_for_status().json()["id"]
        with pytest.raises(httpx.ReadTimeout):
            api.post(f"/sandboxes/{sandbox}/commands", json={"command": "echo kept"})
    with served.api("agent") as api:
        action = api.get("/actions", params={"status": "pending"}).json()["items"][0]
        asyncio.run(_approve(served, action))
        # The same call again joins what waits: it is not proposed twice, and the result is there.
        again = api.post(f"/sandboxes/{sandbox}/commands", json={"command": "echo kept"}).raise_for_status().json()
        assert (again["stdout"], again["joined"], again["action_id"]) == ("kept\n", True, action["id"])
        runs = [item for item in api.get("/actions").json()["items"] if item["tool"] == "run"]
        assert len(runs) == 1
