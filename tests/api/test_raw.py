"""Files as bytes where no sandbox answers: what is refused, when, and that nothing of it stays."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from approvals.models import Action
from console.api import raw_files
from console.workspaces import db
from sandboxes.models import Sandbox

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def blobs(settings, tmp_path):
    options = {**settings.STORAGES["blobs"]["OPTIONS"], "location": tmp_path / "blobs"}
    settings.STORAGES = {**settings.STORAGES, "blobs": {**settings.STORAGES["blobs"], "OPTIONS": options}}
    return lambda: [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]


def address(place):
    return f"/sandboxes/{place.sandbox.pk}/files/raw"


async def test_a_body_that_takes_too_long_is_told_and_leaves_nothing(ask, place, hub, blobs, monkeypatch):
    monkeypatch.setattr(raw_files, "ARRIVE_WITHIN_S", 0.3)

    async def slow() -> AsyncIterator[bytes]:
        yield bytes(1 << 20)
        await asyncio.sleep(60)

    answer = await ask("PUT", address(place), key=place.scouts, params={"path": "x"}, content=slow())
    assert (answer.status_code, answer.json()["code"]) == (408, "too_slow")
    assert blobs() == []


async def test_what_the_sandbox_cannot_be_asked_about_leaves_nothing(ask, place, hub, blobs):
    for key in (place.scouts, place.alices):
        answer = await ask("PUT", address(place), key=key, params={"path": "x"}, content=bytes(100_000))
        assert answer.status_code in (409, 503), answer.text
    assert blobs() == []
    assert await db.read(lambda: Action.objects.filter(status__in=["pending", "running"]).count()) == 0


async def test_an_ended_sandbox_is_told_before_a_byte_is_read(ask, place, hub):
    await db.write(lambda: Sandbox.objects.update(status="ended", ended_reason="idle"))

    async def never() -> AsyncIterator[bytes]:
        pytest.fail("the body was read")
        yield b""

    for key in (place.scouts, place.alices):
        scope_key = {"key": key, "params": {"path": "x"}}
        answer = await ask("PUT", address(place), **scope_key, content=never())
        assert (answer.status_code, answer.json()["code"]) == (409, "sandbox_gone")
        assert (await ask("GET", address(place), **scope_key)).json()["code"] == "sandbox_gone"


async def test_a_key_has_so_many_streams(ask, place, hub, settings):
    settings.WAITS_PER_KEY = 0
    for method in ("GET", "PUT"):
        answer = await ask(method, address(place), key=place.alices, params={"path": "x"})
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many")
        assert answer.headers["retry-after"]


@pytest.mark.parametrize(
    "query", [{}, {"path": ""}, {"path": "x" * 4097}, {"path": "x", "mode": "755"}, {"path": "x", "mode": "-1"}]
)
async def test_what_is_asked_for_wrongly_is_named(ask, place, hub, query):
    answer = await ask("PUT", address(place), key=place.alices, params=query, content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    assert answer.json()["field"] in ("path", "mode")
