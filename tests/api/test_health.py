"""What watches the server asks without a key, and is told which part is not ready, and no more."""

import asyncio

import pytest
from django.db import connection

from console import asgi, health
from sandboxes import boxes, clock

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def looked_at_anew(monkeypatch):
    monkeypatch.setattr(health, "LOOK_EVERY_S", -1)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_both_are_open_to_all_and_read_only(ask, hub, path):
    for headers in ({}, {"Host": "10.1.2.3:8000"}, {"X-API-Key": "wrong"}):
        answer = await ask.client.get(path, headers=headers)
        assert answer.status_code in (200, 503)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-request-id"]
        assert "set-cookie" not in answer.headers
    refused = await ask.client.post(path)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_the_process_is_alive_without_anything_else(ask):
    assert (await ask.client.get("/healthz")).json() == {"code": "alive", "detail": "The process answers."}


async def parts(ask):
    answer = await ask.client.get("/readyz")
    missing = {name for name, state in answer.json()["parts"].items() if state != "ready"}
    assert answer.status_code == (503 if missing else 200)
    assert ("retry-after" in answer.headers) is bool(missing)
    assert all(name in answer.json()["detail"] for name in missing)
    return missing


async def test_without_gvisor_the_sandbox_host_is_not_ready_and_no_secret_is_told(ask, hub, settings):
    assert await parts(ask) == {"sandbox_host"}
    told = (await ask.client.get("/readyz")).text
    assert str(settings.VAR) not in told
    assert "docker" not in told.lower()


async def test_with_everything_there_it_is_ready_until_docker_stops_answering(ask, hub, monkeypatch):
    monkeypatch.setattr(hub.boxes, "engine", object())
    hub.boxes._looked_at = health.monotonic()
    assert await parts(ask) == set()
    monkeypatch.setattr(boxes, "LOOKED_WITHIN_S", 0)
    assert await parts(ask) == {"sandbox_host"}


async def test_without_a_host_in_this_process(ask, transactional_db):
    assert await parts(ask) == {"loops", "sandbox_host"}


async def test_a_clock_that_stands_still(ask, hub, monkeypatch):
    monkeypatch.setattr(clock, "STUCK_AFTER_S", 0)
    assert "loops" in await parts(ask)


async def test_a_host_that_does_not_answer(ask, hub, monkeypatch):
    monkeypatch.setattr(health, "ANSWERS_WITHIN_S", 0.05)
    held = asyncio.Event()

    async def state():
        await held.wait()

    monkeypatch.setattr(hub, "state", state)
    assert {"loops", "sandbox_host"} <= await parts(ask)


async def test_without_its_database(ask, hub):
    def rename(old, new):
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")

    await health.db.write(rename, "workspaces_workspace", "away")
    try:
        assert "database" in await parts(ask)
    finally:
        await health.db.write(rename, "away", "workspaces_workspace")
    assert "database" not in await parts(ask)


async def test_who_asks_often_makes_nobody_busy(ask, hub, monkeypatch):
    looks, look = [], health.look

    async def counted():
        looks.append(1)
        return await look()

    monkeypatch.setattr(health, "LOOK_EVERY_S", 60)
    monkeypatch.setattr(health, "look", counted)
    ready = next(app for pattern, app in asgi.ROUTES if pattern.fullmatch("readyz"))
    monkeypatch.setattr(ready, "_parts", {})
    await asyncio.gather(*[ask.client.get("/readyz") for _ in range(20)])
    assert len(looks) == 1
