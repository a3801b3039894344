"""MCP as a client has it: the SDK's own, over HTTP, against a whole console, in both revisions of the protocol."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from .served import CHECKOUT, Served, until
from .test_example import Reviewer
from .test_tools import SET

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
DIVISOR = 10  # a call answers after 5 s, and says after each half a second that it still waits


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("mcp"), SANDGATE_TIMER_DIVISOR=str(DIVISOR)).up()
    yield console
    console.close()


@asynccontextmanager
async def connected(served: Served, mode: str, *, path: str = "/mcp/c/talk") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {served.first_run['agent_key']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=70, trust_env=False) as http,
        Client(streamable_http_client(f"{served.url}{path}", http_client=http), mode=mode) as client,
    ):
        yield client


def text(result: CallToolResult) -> str:
    return result.content[0].text


def names(result: CallToolResult) -> dict[str, Any]:
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def change(served: Served, **settings: Any) -> None:
    command = [sys.executable, "manage.py", "shell", "-c", SET.replace("{settings}", repr(settings))]
    subprocess.run(command, cwd=CHECKOUT, env=served.environment, check=True)


def pending(served: Served) -> dict[str, Any] | None:
    with served.api("agent") as api:
        items = api.get("/actions", params={"status": "pending"}).json()["items"]
    return items[0] if items else None


def decide(served: Served, action: dict[str, Any], verdict: str = "approve", **more: str) -> None:
    with served.api("review") as api:
        body = {"verdict": verdict, "digest": action["digest"], **more}
        api.post(f"/actions/{action['id']}/decision", json=body).raise_for_status()


async def waiting(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = await asyncio.to_thread(until, lambda: pending(served))
    return found


@both
async def test_tools_are_those_that_the_agent_is_pinned_to(served: Served, mode: str) -> None:
    async with connected(served, mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == {
            "read", "edit", "write", "glob", "grep", "run", "follow", "stop", "processes", "publish",
            "await_action", "list_pending",
        }  # fmt: skip
        assert listed["read"].annotations.read_only_hint is True
        assert listed["run"].annotations.read_only_hint is False
        with served.api("agent") as api:
            by_rest = {tool["name"]: tool["inputSchema"] for tool in api.get("/tools").json()["tools"]}
        assert {name: tool.input_schema for name, tool in listed.items() if name in by_rest} == by_rest
    change(served, toolset=1)
    try:
        async with connected(served, mode) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"list_files", "read_file", "run_command", "write_file", "await_action", "list_pending"}
    finally:
        change(served, toolset=2)


@both
async def test_a_gated_call_waits_for_its_reviewer_and_is_given_its_outcome(served: Served, mode: str) -> None:
    async with connected(served, mode) as client:
        says = {"sandgate/reason": f"To greet, {mode}."}
        call = asyncio.create_task(client.call_tool("run", {"command": f"echo hello from {mode}"}, meta=says))
        asked = await waiting(served)
        assert asked["reason"] == f"To greet, {mode}."
        decide(served, asked)
        result = await call
    assert result.is_error is False
    assert f"hello from {mode}" in text(result)
    assert names(result)["status"] == "succeeded"
    assert names(result)["conversation"] == "talk"


@both
async def test_undecided_it_answers_in_time_with_its_action_and_is_awaited_on(served: Served, mode: str) -> None:
    told: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with connected(served, mode) as client:
        result = await client.call_tool("run", {"command": f"echo late {mode}"}, progress_callback=progress)
        assert (names(result)["status"], result.is_error) == ("pending", False)
        action_id = names(result)["action_id"]
        assert action_id in text(result)
        assert "await_action" in text(result)
        assert f"{action_id} waits for a person" in told
        listed = await client.call_tool("list_pending", {})
        assert action_id in [item["action_id"] for item in names(listed)["items"]]
        awaited = asyncio.create_task(client.call_tool("await_action", {"action_id": action_id}))
        decide(served, await waiting(served))
        assert f"late {mode}" in text(await awaited)
        async with asyncio.timeout(10):  # that it was given is noted once it is written
            while names(await client.call_tool("list_pending", {}))["items"]:
                pass


@both
async def test_what_came_back_to_its_reviewer_is_awaited_to_its_end(served: Served, mode: str) -> None:
    path = f"back-{mode}.txt"
    ten = "".join(f"line {n}\n" for n in range(1, 11))
    async with connected(served, mode) as client:
        call = asyncio.create_task(client.call_tool("write", {"path": path, "content": ten}))
        decide(served, await waiting(served))
        sandbox = names(await call)["sandbox_id"]
        read = text(await client.call_tool("read", {"path": path})).splitlines()
        version, anchor = read[0].split("version ")[1][:12], read[2].split("|")[0]
        edits = [{"do": "replace", "from": anchor, "lines": ["two"]}]
        call = asyncio.create_task(client.call_tool("edit", {"path": path, "version": version, "edits": edits}))
        first = await waiting(served)
        with served.api("workspace") as api:
            body = {"command": f"sed -i 's/line 9/nine/' {path}"}
            api.post(f"/sandboxes/{sandbox}/commands", json=body).raise_for_status()
        decide(served, first)
        result = await call
        assert (result.is_error, names(result)["error"]["code"]) == (True, "stale_edit")
        awaited = asyncio.create_task(client.call_tool("await_action", {"action_id": first["id"]}))
        decide(served, await waiting(served))
        ended = await awaited
        assert (names(ended)["status"], names(ended)["action_id"]) == (
            "succeeded",
            names(result)["error"]["next_action"],
        )
        assert names(await client.call_tool("list_pending", {}))["items"] == []


@both
async def test_a_denial_is_an_error_that_gives_the_reason(served: Served, mode: str) -> None:
    async with connected(served, mode) as client:
        call = asyncio.create_task(client.call_tool("run", {"command": f"rm -rf report-{mode}"}))
        decide(served, await waiting(served), "deny", reason="Keep the report.")
        result = await call
    assert (result.is_error, names(result)["status"]) == (True, "denied")
    assert text(result) == "A reviewer denied this. It was not run. Reason: Keep the report."


@both
async def test_cancelling_a_call_takes_its_action_back(served: Served, mode: str) -> None:
    async with connected(served, mode) as client:
        call = asyncio.create_task(client.call_tool("run", {"command": f"echo cancelled {mode}"}))
        action = await waiting(served)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with served.api("agent") as api:
            ended = lambda: api.get(f"/actions/{action['id']}").json()["status"] == "cancelled"  # noqa: E731
            await asyncio.to_thread(until, ended)


@both
async def test_a_restarted_client_finds_its_sandbox_and_what_it_was_not_told(served: Served, mode: str) -> None:
    path = f"/mcp/c/again-{mode}"
    async with connected(served, mode, path=path) as client:
        sandbox = names(await client.call_tool("glob", {"pattern": "*"}))["sandbox_id"]
    with served.api("agent") as api, served.api("review") as review:  # as if its own call had gone on too long
        body = {"conversation": f"again-{mode}", "arguments": {"command": "echo kept > kept.txt; echo done"}}
        asked = api.post("/tools/run", json=body, headers={"Prefer": "wait=0"}).raise_for_status().json()
        action_id = asked["id"]
        decide(served, asked)
        await asyncio.to_thread(until, lambda: review.get(f"/actions/{action_id}").json()["status"] == "succeeded")
    async with connected(served, mode, path=path) as client:
        listed = await client.call_tool("list_pending", {})
        assert [item["action_id"] for item in names(listed)["items"]] == [action_id]
        assert "done" in text(await client.call_tool("await_action", {"action_id": action_id}))
        read = await client.call_tool("read", {"path": "kept.txt"})
        assert "|kept" in text(read)
        assert names(read)["sandbox_id"] == sandbox
    with served.api("agent") as api:
        api.delete(f"/sandboxes/{sandbox}").raise_for_status()


@both
async def test_a_call_that_is_wrong_says_how_it_would_be_right(served: Served, mode: str) -> None:
    async with connected(served, mode) as client:
        result = await client.call_tool("read", {"path": 5})
        assert result.is_error
        assert "`arguments.path` is a text" in text(result)
        assert '{"path": "src/app.py"' in text(result)
        missing = await client.call_tool("read", {"path": "no/such/file"})
        assert (missing.is_error, names(missing)["error"]["code"]) == (True, "file_not_found")
        nobody = await client.call_tool("await_action", {"action_id": "act_made_up"})
        assert (nobody.is_error, names(nobody)["code"]) == (True, "not_found")
        with pytest.raises(MCPError, match="no tool 'fly'"):
            await client.call_tool("fly", {})


async def test_a_conversation_is_named_by_address_or_header_or_is_the_sessions_or_the_keys_own(served: Served) -> None:
    async with connected(served, "legacy", path="/mcp") as client:
        ours = names(await client.call_tool("glob", {"pattern": "*"}))
        assert ours["conversation"].startswith("mcp-")
    async with connected(served, "2026-07-28", path="/mcp") as client:
        default = names(await client.call_tool("glob", {"pattern": "*"}))
        assert default["conversation"].startswith("default-key_")
    assert default["sandbox_id"] != ours["sandbox_id"]
    with served.api("agent") as api:
        for found in (ours, default):
            api.delete(f"/sandboxes/{found['sandbox_id']}").raise_for_status()


async def test_each_new_session_has_a_sandbox_however_many_were_before(served: Served) -> None:
    """A client without a conversation's name leaves one behind each time; nobody can go on in those."""
    made = []
    with served.api("agent") as api:
        for sandbox in api.get("/sandboxes").json():
            api.delete(f"/sandboxes/{sandbox['id']}").raise_for_status()
        for _ in range(6):
            async with connected(served, "legacy", path="/mcp") as client:
                result = await client.call_tool("glob", {"pattern": "*"})
                assert not result.is_error, text(result)
                made.append(names(result)["sandbox_id"])
        live = {sandbox["id"] for sandbox in api.get("/sandboxes").json()}
        assert live == set(made[1:]), "the one not used for longest has gone"
        for sandbox in live:
            api.delete(f"/sandboxes/{sandbox}").raise_for_status()


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def post(served: Served, body: dict[str, Any], key: str | None = "agent", **headers: str) -> httpx.Response:
    own = {"Authorization": f"Bearer {served.first_run[f'{key}_key']}"} if key else {}
    accept = {"Accept": "application/json, text/event-stream"}
    return httpx.post(f"{served.url}/mcp", json=body, headers={**own, **accept, **headers}, trust_env=False, timeout=30)


def test_without_a_key_nothing_is_said(served: Served) -> None:
    for key, headers in ((None, {}), (None, {"X-API-Key": "sg_made_up"}), (None, {"Cookie": "sessionid=x"})):
        answer = post(served, INITIALIZE, key, **headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost"}, 403),
        ({}, 200),
    ],
)
def test_pages_of_elsewhere_and_other_names_are_refused(served: Served, headers: dict[str, str], status: int) -> None:
    assert post(served, INITIALIZE, **headers).status_code == status


def test_this_consoles_own_origin_is_let_in(served: Served) -> None:
    assert post(served, INITIALIZE, Origin=served.url).status_code == 200


def test_a_session_works_only_with_the_key_that_opened_it(served: Served) -> None:
    opened = post(served, INITIALIZE)
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert post(served, asked, "workspace", **session).status_code == 404
    assert post(served, asked, "agent", **session).status_code == 200


def test_a_key_that_may_not_run_sees_no_tools(served: Served) -> None:
    opened = post(served, INITIALIZE, "review")
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert "sandboxes:run" in post(served, asked, "review", **session).text


def test_the_example_client_writes_runs_and_reads_what_is_left_of_its_last_run(served: Served) -> None:
    """Run twice: the second time its file is there, in the same sandbox."""
    env = {**served.environment, "SANDGATE_KEY": served.first_run["agent_key"]}
    asked = []
    for _ in range(2):
        reviewer = Reviewer(served, "approve")
        reviewer.start()
        command = [sys.executable, "examples/mcp_client.py", "--url", served.url]
        done = subprocess.run(command, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=120)
        reviewer.over.set()
        reviewer.join(10)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "385" in done.stdout
        assert done.stdout.endswith("✓ done\n")
        asked.append([tool for tool, _ in reviewer.seen])
    assert asked == [["write", "run"], ["run"]]


async def test_when_the_server_stops_no_call_is_taken_for_cancelled(served: Served) -> None:
    with suppress(ExceptionGroup, MCPError):  # the client's words for a server that is gone
        async with connected(served, "2026-07-28") as client:
            call = asyncio.create_task(client.call_tool("run", {"command": "echo and the server stops"}))
            action = await waiting(served)
            assert await asyncio.to_thread(served.stop) == 0
            await asyncio.gather(call, return_exceptions=True)
    served.up()
    with served.api("agent") as api:
        ended = api.get(f"/actions/{action['id']}").json()
    assert ended["status"] == "superseded", "its sandbox ended with the server; nobody took it back"
