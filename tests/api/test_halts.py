"""Halting by key, and what every door says while a halt is in force."""

import pytest

from approvals.models import Action
from console.workspaces import db, halts, permissions
from console.workspaces.models import Halt
from sandboxes.models import Command, Sandbox

from .conftest import make_sandbox, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def bobs(place):
    return place.workspace_key(place.bob, permissions.APPROVALS_REVIEW)


async def halted(ask, place, bobs, agent=True):
    where = f"/agents/{place.scout.pk}/halt" if agent else "/workspace/halt"
    answer = await ask.post(where, {"reason": "Unknown uploads"}, key=bobs)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_reviewers_key_halts_an_agent_and_says_what_it_did(ask, place, bobs, hub):
    before = await db.write(make_sandbox, place.other)
    found = await halted(ask, place, bobs)
    assert (found["agent_id"], found["by"], found["reason"]) == (place.scout.pk, "Bob", "Unknown uploads")
    ended = (await ask.get(f"/sandboxes/{place.sandbox.pk}", key=place.scouts)).json()
    assert (ended["status"], ended["ended_reason"]) == ("ended", "halted")
    assert (await ask.get(f"/sandboxes/{before.pk}", key=place.others)).json()["status"] == "running"
    assert [each["id"] for each in (await ask.get("/halts", key=bobs)).json()["items"]] == [found["id"]]


async def test_without_a_body_it_halts_all_the_same(ask, place, bobs):
    answer = await ask("POST", f"/agents/{place.scout.pk}/halt", key=bobs)
    assert (answer.status_code, answer.json()["reason"]) == (200, halts.NO_REASON)


@pytest.mark.parametrize("body", [{"reason": 7}, {"reason": "x" * 501}, {"why": "x"}, []])
async def test_a_bad_body_is_named(ask, place, bobs, body):
    answer = await ask.post("/workspace/halt", body, key=bobs)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    assert not await db.read(Halt.objects.exists)


CALLS = (
    ("POST", "/sandboxes", {}),
    ("DELETE", "/sandboxes/{sandbox}", None),
    ("POST", "/sandboxes/{sandbox}/commands", {"command": "true"}),
    ("POST", "/sandboxes/{sandbox}/commands/{command}/stdin", {"data": "x"}),
    ("DELETE", "/sandboxes/{sandbox}/commands/{command}", None),
    ("POST", "/sandboxes/{sandbox}/files", {"path": "x", "content": "x"}),
    ("GET", "/sandboxes/{sandbox}/files?path=x", None),
    ("GET", "/sandboxes/{sandbox}/files/list?path=x", None),
    ("GET", "/sandboxes/{sandbox}/files/raw?path=x", None),
    ("PUT", "/sandboxes/{sandbox}/files/raw?path=x", b"x"),
    ("POST", "/sandboxes/{sandbox}/artifacts", {"path": "x"}),
    ("POST", "/tools/run", {"conversation": "c", "arguments": {"command": "true"}}),
    ("POST", "/tools/read", {"conversation": "c", "arguments": {"path": "x"}}),
    ("POST", "/tools/write", {"conversation": "c", "arguments": {"path": "x", "content": "x"}}),
    ("POST", "/tools/processes", {"conversation": "c", "arguments": {}}),
)


@pytest.mark.parametrize("of_agent", [True, False], ids=["agent", "workspace"])
@pytest.mark.parametrize(("method", "path", "body"), CALLS, ids=lambda value: str(value)[:40])
async def test_every_call_that_would_touch_a_sandbox_is_refused(ask, place, bobs, hub, method, path, body, of_agent):
    await halted(ask, place, bobs, agent=of_agent)
    await db.write(make_sandbox, place.scout)
    await db.write(lambda: Command.objects.update(status="running", background=True))  # which takes input
    more = {} if body is None else {"content": body} if isinstance(body, bytes) else {"json": body}
    where = path.format(sandbox=place.sandbox.pk, command=place.command.pk)
    answer = await ask(method, where, key=place.scouts, **more)
    assert (answer.status_code, answer.json()["code"]) == (423, "halted"), answer.text
    assert "Unknown uploads" in answer.json()["detail"]
    assert not await db.read(Action.objects.exists)


@pytest.mark.parametrize(
    "path", ["/sandboxes", "/sandboxes/{sandbox}", "/sandboxes/{sandbox}/commands", "/actions", "/tools"]
)
async def test_what_only_tells_goes_on(ask, place, bobs, path):
    await halted(ask, place, bobs)
    answer = await ask.get(path.format(sandbox=place.sandbox.pk), key=place.scouts)
    assert answer.status_code == 200, answer.text


async def test_what_waits_is_cancelled_and_its_agent_is_told_why(ask, place, bobs, hub):
    await db.write(Sandbox.objects.filter(pk=place.sandbox.pk).update, conversation="c")
    call = {"conversation": "c", "arguments": {"command": "true"}}
    asked = await ask.post("/tools/run", call, key=place.scouts, headers={"Prefer": "wait=0"})
    assert asked.status_code == 202, asked.text
    found = await halted(ask, place, bobs)
    assert found["cancelled"] == 1
    outcome = (await ask.get(f"/actions/{asked.json()['id']}", key=place.scouts)).json()
    assert (outcome["status"], outcome["outcome"]["error"]["code"]) == ("cancelled", "halted")
    assert "Unknown uploads" in outcome["outcome"]["reason"]


async def test_the_hub_notes_that_a_halted_one_is_down_only_when_it_has_an_engine(ask, place, bobs, hub):
    """There is none here: the row goes on saying that something is to be taken down."""
    await db.write(Sandbox.objects.filter(pk=place.sandbox.pk).update, container_id="c1")
    await halted(ask, place, bobs)
    row = await until(lambda: Sandbox.objects.filter(pk=place.sandbox.pk, status="ended").first())
    assert row.container_id == "c1"
