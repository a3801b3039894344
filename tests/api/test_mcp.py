"""The door at /mcp: whose sessions there are, and bodies and request ids that are not as they should be."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from django.utils import timezone

from approvals import gate
from approvals.models import Action
from console.api.mcp import sessions
from console.workspaces import db

pytestmark = pytest.mark.anyio
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


class Talk:
    """`await talk.open(key)` answers a session's id."""

    def __init__(self) -> None:
        from console.asgi import application

        transport = httpx.ASGITransport(app=application)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def post(self, body: Any, *, key: str, session: str = "", **more: str) -> httpx.Response:
        headers = {"X-API-Key": key, "Accept": "application/json, text/event-stream", **more}
        if session:
            headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        sent = {"json": body} if isinstance(body, dict) else {"content": body}
        if not isinstance(body, dict):
            headers["Content-Type"] = "application/json"
        return await self.client.post("/mcp/c/talk", headers=headers, **sent)

    async def open(self, key: str) -> str:
        answer = await self.post(INITIALIZE, key=key)
        assert answer.status_code == 200, answer.text
        return answer.headers["mcp-session-id"]

    async def is_open(self, session: str, key: str) -> bool:
        return (await self.post(LIST, key=key, session=session)).status_code == 200


@pytest.fixture
def talk(hub: Any) -> Talk:
    return Talk()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PER_KEY", 3)
    monkeypatch.setattr(sessions, "MOST", 5)


async def test_one_key_opens_as_many_as_it_likes_and_no_other_is_refused(talk, place, few):
    theirs = await talk.open(place.others)
    ours = [await talk.open(place.scouts) for _ in range(10)]
    assert await talk.is_open(theirs, place.others)
    assert await talk.is_open(await talk.open(place.others), place.others)
    assert [await talk.is_open(each, place.scouts) for each in ours] == [False] * 7 + [True] * 3


async def test_the_one_that_goes_is_the_least_used(talk, place, few):
    first, second, third = [await talk.open(place.scouts) for _ in range(3)]
    assert await talk.is_open(first, place.scouts)
    await talk.open(place.scouts)
    assert [await talk.is_open(each, place.scouts) for each in (first, second, third)] == [True, False, True]


async def test_when_all_are_taken_the_key_with_the_most_gives_one_up(talk, place, few):
    ours = [await talk.open(place.scouts) for _ in range(3)]
    theirs = [await talk.open(key) for key in (place.others, place.alices, place.mallorys)]
    assert [await talk.is_open(each, place.scouts) for each in ours] == [False, True, True]
    keys = (place.others, place.alices, place.mallorys)
    assert [await talk.is_open(each, key) for each, key in zip(theirs, keys, strict=True)] == [True] * 3


async def test_one_with_a_call_under_way_stays_and_where_all_have_one_its_key_hears_so(talk, place, few):
    ours = [await talk.open(place.scouts) for _ in range(3)]
    goes_on = asyncio.Event()
    calls = [asyncio.create_task(talk.post(slowly(goes_on), key=place.scouts, session=each)) for each in ours]
    await asyncio.sleep(0.1)
    refused = await talk.post(INITIALIZE, key=place.scouts)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    await talk.open(place.others)
    goes_on.set()
    assert [answer.status_code for answer in await asyncio.gather(*calls)] == [200] * 3


async def slowly(goes_on: asyncio.Event) -> AsyncIterator[bytes]:
    content = json.dumps(LIST).encode()
    yield content[:5]
    await goes_on.wait()
    yield content[5:]


async def test_one_that_was_refused_or_ended_by_its_client_takes_no_place(talk, place, few):
    kept = [await talk.open(place.scouts) for _ in range(2)]
    for _ in range(4):
        assert (await talk.post(b"[1", key=place.scouts)).status_code == 400
        ended = await talk.open(place.scouts)
        await talk.client.request("DELETE", "/mcp", headers={"X-API-Key": place.scouts, "Mcp-Session-Id": ended})
    assert [await talk.is_open(each, place.scouts) for each in kept] == [True] * 2


async def test_another_key_cannot_keep_or_end_a_session(talk, place, few):
    first, *_ = [await talk.open(place.scouts) for _ in range(3)]
    assert not await talk.is_open(first, place.others)
    await talk.open(place.scouts)
    assert not await talk.is_open(first, place.scouts), "another key's call is no use of it"


async def pieces(count: int, size: int = 1 << 20) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * size


@pytest.mark.parametrize("revision", ["none yet", "2025-11-25", "2026-07-28"])
async def test_a_body_in_pieces_that_is_too_large_is_413_and_no_failure(talk, place, revision, caplog):
    session = await talk.open(place.scouts) if revision == "2025-11-25" else ""
    version = {"MCP-Protocol-Version": revision} if revision == "2026-07-28" else {}
    answer = await talk.post(pieces(10), key=place.scouts, session=session, **version)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert "Traceback" not in caplog.text
    assert not [each for each in caplog.records if each.exc_info]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"1e999999", b"null"])
async def test_a_body_that_is_no_message_is_refused(talk, place, body):
    session = await talk.open(place.scouts)
    assert (await talk.post(body, key=place.scouts, session=session)).status_code == 400
    assert await talk.is_open(session, place.scouts)


async def listed(talk: Talk, key: str) -> dict[str, Any]:
    """What `list_pending` answers."""
    params = {"name": "list_pending", "arguments": {}}
    body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    answer = (await talk.post(body, key=key, session=await talk.open(key))).text
    found: dict[str, Any] = json.loads(answer.split("data: ", 1)[1])["result"]
    return found


def make_actions(place: Any, count: int, **fields: Any) -> list[Action]:
    about = {"workspace": place.workspace, "agent": place.scout, "sandbox_id": place.sandbox.pk, "tool": "run"}
    return [Action.objects.create(**about, digest="0" * 64, asked=True, **fields) for _ in range(count)]


async def test_what_an_agent_took_back_itself_is_no_news_to_it(talk, place):
    ours, stopped = await db.write(make_actions, place, 2, status="pending")
    caller = await db.read(place.caller, place.scout)
    await db.write(gate.cancel, ours, by=caller)
    await db.write(gate.supersede, stopped, "Its sandbox ended.")
    items = (await listed(talk, place.scouts))["structuredContent"]["items"]
    assert [(each["action_id"], each["status"]) for each in items] == [(stopped.pk, "superseded")]


@pytest.mark.parametrize(("count", "more"), [(50, False), (51, True)])
async def test_a_list_of_what_waits_says_when_there_is_more(talk, place, count, more):
    await db.write(make_actions, place, count, status="denied", ended_at=timezone.now())
    found = await listed(talk, place.scouts)
    assert len(found["structuredContent"]["items"]) == 50
    assert found["structuredContent"]["more"] is more
    assert ("There are more" in found["content"][0]["text"]) is more


def call(request_id: Any, command: str, **meta: Any) -> dict[str, Any]:
    params = {"name": "run", "arguments": {"command": command}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


@pytest.mark.parametrize("second", [7, "7"])
async def test_of_two_calls_with_one_request_id_the_second_is_refused_and_proposes_nothing(
    talk, place, second, settings
):
    settings.TIMER_DIVISOR = 25  # a call answers after 2 s
    await db.write(lambda: type(place.sandbox).objects.update(conversation="talk"))
    session = await talk.open(place.scouts)
    first = asyncio.create_task(talk.post(call(7, "echo 1"), key=place.scouts, session=session))
    while not await db.read(Action.objects.exists):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    refused = await talk.post(call(second, "echo 2"), key=place.scouts, session=session)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, -32600)
    assert "id 7" in refused.json()["error"]["message"]
    assert '"pending"' in (await first).text
    assert await db.read(Action.objects.count) == 1
    again = await talk.post({**LIST, "id": second}, key=place.scouts, session=session)
    assert again.status_code == 200, "once answered, its id is free"


async def test_what_an_agent_says_comes_beside_the_arguments_and_is_on_its_card(talk, place, settings):
    settings.TIMER_DIVISOR = 250  # a call answers after 0.2 s
    await db.write(lambda: type(place.sandbox).objects.update(conversation="talk"))
    session = await talk.open(place.scouts)
    (before,) = await db.write(make_actions, place, 1, status="denied", ended_at=timezone.now())
    says = {"sandgate/reason": "So that <b>tests</b> run.", "sandgate/parent_action": before.pk}
    answer = await talk.post(call(7, "echo 1", **says, other=1), key=place.scouts, session=session)
    action = await db.read(lambda: Action.objects.get(status="pending"))
    assert action.pk in answer.text
    assert (action.reason, action.parent_action) == ("So that <b>tests</b> run.", before.pk)
    assert "sandgate" not in str(action.arguments)


STATELESS = "2026-07-28"
REVISIONS = pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])


async def said(talk: Talk, key: str, revision: str, **meta: Any) -> httpx.Response:
    """To a call of `run` with that beside its arguments."""
    if revision == STATELESS:
        own = {"protocolVersion": revision, "clientInfo": {"name": "test", "version": "1"}, "clientCapabilities": {}}
        meta |= {f"io.modelcontextprotocol/{name}": value for name, value in own.items()}
        more = {"MCP-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": "run"}
    else:
        more = {"session": await talk.open(key)}
    body = json.dumps(call(7, "echo 1", **meta)).encode()  # httpx itself would not send half a character
    return await talk.post(body, key=key, **more)


async def told(talk: Talk, key: str, revision: str, **meta: Any) -> dict[str, Any]:
    return json.loads((await said(talk, key, revision, **meta)).text.split("data: ", 1)[-1])["result"]


@pytest.mark.parametrize("name", ["sandgate/reason", "sandgate/parent_action"])
async def test_half_a_character_in_it_is_refused_and_nothing_is_proposed(talk, place, name):
    assert (await said(talk, place.scouts, "2025-11-25", **{name: "a\ud800b"})).status_code == 400
    found = await told(talk, place.scouts, STATELESS, **{name: "a\ud800b"})
    assert (found["isError"], found["structuredContent"]["field"]) == (True, f"_meta.{name}")
    assert not await db.read(Action.objects.exists)


@REVISIONS
@pytest.mark.parametrize("name", ["sandgate/reason", "sandgate/parent_action"])
@pytest.mark.parametrize("value", [5, ["x"], "x" * 2001, "a\0b", None])
async def test_what_it_says_is_a_short_text_or_the_call_is_refused(talk, place, revision, name, value):
    found = await told(talk, place.scouts, revision, **{name: value})
    assert (found["isError"], found["structuredContent"]["field"]) == (True, f"_meta.{name}")
    assert name in found["content"][0]["text"]
    assert not await db.read(Action.objects.exists)


@REVISIONS
async def test_an_action_that_it_does_not_follow_from_is_named_as_it_named_it(talk, place, revision):
    found = await told(talk, place.scouts, revision, **{"sandgate/parent_action": "act_made_up"})
    assert (found["isError"], found["structuredContent"]["field"]) == (True, "_meta.sandgate/parent_action")
    assert "`sandgate/parent_action` in `_meta` act_made_up is no action" in found["content"][0]["text"]


@pytest.mark.database
async def test_an_id_that_can_be_none_is_refused(talk, place):
    params = {"name": "await_action", "arguments": {"action_id": "act_\0"}}
    body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    answer = (await talk.post(body, key=place.scouts, session=await talk.open(place.scouts))).text
    told = json.loads(answer.split("data: ", 1)[1])["result"]
    assert (told["isError"], told["structuredContent"]["field"]) == (True, "arguments.action_id")


@pytest.mark.parametrize("name", ["list_pending", "await_action"])
async def test_a_stranger_among_the_arguments_of_its_own_tools_is_named_too(talk, place, name):
    params = {"name": name, "arguments": {"action_id": "act_1", "stranger": 1}}
    body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    answer = (await talk.post(body, key=place.scouts, session=await talk.open(place.scouts))).text
    told = json.loads(answer.split("data: ", 1)[1])["result"]
    assert told["isError"]
    assert "is not known" in told["content"][0]["text"]


@pytest.mark.parametrize("path", ["/mcp/x", "/mcp/c", "/mcp/c/a/b", "/mcp/c/a%2Fb", "/mcp//", "//mcp/sse"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_an_address_beside_the_door_is_told_where_the_door_is(talk, place, method, path):
    for headers in ({}, {"X-API-Key": place.scouts}):
        answer = await talk.client.request(method, f"http://localhost{path}", headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
        assert answer.json()["code"] == "not_found"
        assert "/mcp/c/{name}" in answer.json()["detail"]
        assert "x-request-id" in answer.headers
