"""Sandboxes and their commands over REST, as far as they are rows. What runs is in tests/gvisor."""

import asyncio

import pytest

from console.workspaces import db
from sandboxes.models import Command, Sandbox
from sandboxes.outputs import Stream, _directory

from .conftest import make_sandbox

pytestmark = pytest.mark.anyio


async def test_a_sandbox_has_the_shape_of_the_contract(ask, place):
    answer = await ask.get(f"/sandboxes/{place.sandbox.pk}", key=place.scouts)
    found = answer.json()
    assert set(found) == {
        "id", "label", "status", "created_at", "last_activity", "persistent", "agent_id", "conversation", "image",
        "network", "expires_at", "ended_reason",
    }  # fmt: skip
    assert (found["id"], found["status"], found["agent_id"]) == (place.sandbox.pk, "running", place.scout.pk)
    assert found["created_at"].endswith("Z")
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")


async def test_the_list_is_bare_and_holds_the_live_ones_of_the_caller(ask, place):
    await db.write(make_sandbox, place.scout, status="ended", ended_reason="idle")
    theirs = await db.write(make_sandbox, place.other)
    lists = {key: (await ask.get("/sandboxes", key=key)).json() for key in (place.scouts, place.alices, place.mallorys)}
    found = {key: {item["id"] for item in items} for key, items in lists.items()}
    assert found[place.scouts] == {place.sandbox.pk}
    assert found[place.alices] == {place.sandbox.pk, theirs.pk}
    assert found[place.mallorys] == set()


async def test_an_ended_one_stays_readable_and_a_deleted_one_is_gone(ask, place, hub):
    ended = await db.write(make_sandbox, place.scout, status="ended", ended_reason="oom")
    answer = (await ask.get(f"/sandboxes/{ended.pk}", key=place.scouts)).json()
    assert (answer["status"], answer["ended_reason"]) == ("ended", "oom")
    for sandbox in (ended, place.sandbox):
        first = await ask("DELETE", f"/sandboxes/{sandbox.pk}", key=place.scouts)
        assert (first.status_code, first.json()) == (200, {"success": True})
        assert (await ask("DELETE", f"/sandboxes/{sandbox.pk}", key=place.scouts)).status_code == 404
        assert (await ask.get(f"/sandboxes/{sandbox.pk}", key=place.scouts)).status_code == 404


async def test_without_gvisor_nothing_is_created_and_the_fix_is_named(ask, place, hub):
    for key in (place.scouts, place.alices):
        answer = await ask.post("/sandboxes", {"label": "report", "persistent": False}, key=key)
        assert (answer.status_code, answer.json()["code"]) == (503, "no_runtime")
        assert "bin/up" in answer.json()["detail"]
        assert int(answer.headers["retry-after"]) > 0
    assert await db.read(Sandbox.objects.count) == 1


async def test_a_request_that_never_reaches_a_host_is_told_so(ask, place):
    answer = await ask.post("/sandboxes", {}, key=place.scouts)
    assert (answer.status_code, answer.json()["code"]) == (503, "no_runtime")


async def test_a_switched_off_agent_creates_nothing(ask, place, hub):
    await db.write(type(place.scout).objects.filter(pk=place.scout.pk).update, sandbox_enabled=False)
    answer = await ask.post("/sandboxes", {}, key=place.scouts)
    assert (answer.status_code, answer.json()["code"]) == (403, "sandbox_not_enabled")


async def test_commands_are_listed(ask, place):
    running = await db.write(Command.objects.create, sandbox=place.sandbox, action_id="act_y")
    path = f"/sandboxes/{place.sandbox.pk}/commands"
    every = (await ask.get(path, key=place.scouts)).json()["items"]
    assert [item["id"] for item in every] == [running.pk, place.command.pk]
    only = (await ask.get(path, key=place.scouts, status="running")).json()["items"]
    assert [item["id"] for item in only] == [running.pk]
    assert (await ask.get(path, key=place.scouts, status="odd")).json()["field"] == "status"


async def test_output_read_page_by_page_joins_without_a_flaw(ask, place, monkeypatch):
    from console.api import commands

    monkeypatch.setattr(commands, "PAGE_BYTES", 7)
    text = "déjà vu – 漢字 🎉\0 end"
    Stream(_directory(place.command.action_id), "stdout").put(0, text.encode())
    read, at = "", 0
    for _ in range(30):
        path = f"/sandboxes/{place.sandbox.pk}/commands/{place.command.pk}"
        found = (await ask.get(path, key=place.scouts, stdout_from=at)).json()
        if not found["stdout"]:
            break
        read, at = read + found["stdout"], found["next"]["stdout"]
        assert found["lost_bytes"] == {"stdout": 0, "stderr": 0}
    assert (read, at) == (text, len(text.encode()))


async def test_half_a_character_waits_for_its_rest_while_the_command_runs(ask, place):
    command = await db.write(Command.objects.create, sandbox=place.sandbox, action_id="act_y")
    path = f"/sandboxes/{place.sandbox.pk}/commands/{command.pk}"
    stream = Stream(_directory(command.action_id), "stdout")
    stream.put(0, "é".encode()[:1])
    assert (await ask.get(path, key=place.scouts)).json()["next"]["stdout"] == 0
    stream.put(1, "é".encode()[1:])
    found = (await ask.get(path, key=place.scouts)).json()
    assert (found["stdout"], found["next"]["stdout"]) == ("é", 2)


async def test_output_that_is_gone_is_counted(ask, place):
    Stream(_directory(place.command.action_id), "stderr").put(100, b"late")
    path = f"/sandboxes/{place.sandbox.pk}/commands/{place.command.pk}"
    found = (await ask.get(path, key=place.scouts, stderr_from=40)).json()
    assert (found["stderr"], found["lost_bytes"]["stderr"], found["next"]["stderr"]) == ("late", 60, 104)


async def test_a_wait_for_a_command_ends_with_it(ask, place):
    from console.workspaces import bus

    command = await db.write(Command.objects.create, sandbox=place.sandbox, action_id="act_y")
    path = f"/sandboxes/{place.sandbox.pk}/commands/{command.pk}"
    call = asyncio.create_task(ask.get(path, key=place.scouts, wait=20))
    await asyncio.sleep(0.1)
    await db.write(Command.objects.filter(pk=command.pk).update, status="exited", exit_code=3)
    bus.announce("action:act_y")
    async with asyncio.timeout(2):
        assert (await call).json()["exit_code"] == 3
