"""The real application, called as the server calls it, with the real gate, database and hub. There is no engine here:
what a sandbox really does is shown in tests/gvisor."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from django.utils import timezone

from approvals.models import Action
from console.workspaces import db, keys, members, permissions
from console.workspaces.models import Agent, Member
from sandboxes import host
from sandboxes.models import Command, Sandbox
from tests.people import Cast


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


class Ask:
    """Calls /v1 with a key. `await ask.get("/sandboxes", key=…)`."""

    def __init__(self) -> None:
        from console.asgi import application

        transport = httpx.ASGITransport(app=application)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def __call__(self, method: str, path: str, *, key: str | None, **more: Any) -> httpx.Response:
        headers = {**({"X-API-Key": key} if key else {}), **more.pop("headers", {})}
        return await self.client.request(method, f"/v1{path}", headers=headers, **more)

    async def get(self, path: str, *, key: str | None, **params: Any) -> httpx.Response:
        return await self("GET", path, key=key, params=params)

    async def post(self, path: str, body: Any = None, *, key: str | None, **more: Any) -> httpx.Response:
        return await self("POST", path, key=key, json=body, **more)


@pytest.fixture
def ask() -> Ask:
    return Ask()


@dataclass
class Place(Cast):
    """The cast with a key each, and a running sandbox of scout's with a command in it."""

    sandbox: Sandbox
    command: Command
    scouts: str
    others: str
    alices: str
    mallorys: str


@pytest.fixture
def place(committed_cast: Cast) -> Place:
    cast = committed_cast
    sandbox = make_sandbox(cast.scout)
    return Place(
        **vars(cast),
        sandbox=sandbox,
        command=Command.objects.create(sandbox=sandbox, action_id="act_x", status="exited", exit_code=0),
        scouts=cast.key_of(cast.scout),
        others=cast.key_of(cast.other),
        alices=everything_but(cast, cast.alice, permissions.APPROVALS_REVIEW),
        mallorys=everything_but(cast, cast.mallory, permissions.APPROVALS_REVIEW),
    )


def everything_but(cast: Cast, member: Member, *without: str) -> str:
    own = set(member.permissions.values_list("name", flat=True))
    return cast.workspace_key(member, *(own - set(without)))


def make_sandbox(agent: Agent, **fields: Any) -> Sandbox:
    made = {
        "status": "running",
        "image": "default",
        "image_id": "sha256:1",
        "cpus": 1,
        "memory_mb": 512,
        "disk_mb": 1024,
        "idle_timeout_s": 900,
        "expires_at": timezone.now() + timedelta(hours=8),
    }
    return Sandbox.objects.create(workspace=agent.workspace, agent=agent, **{**made, **fields})


@pytest.fixture
def hub(settings: Any, tmp_path: Path, transactional_db: None) -> Iterator[host.Hub]:
    """As `manage.py up` starts it on a machine without gVisor: it submits and dispatches, and can start nothing."""
    settings.VAR, settings.INSTANCE = tmp_path, "0test000"
    started = host.Hub(on_death=lambda: None)
    started.start()
    host.current = started
    yield started
    host.current = None
    assert started.stop()


def limited_key(agent_or_member: Agent | Member, permission: str, cast: Cast) -> str:
    """A key that may one thing, which is not what the call under test needs."""
    members.give(agent_or_member, permission, by=None)
    if isinstance(agent_or_member, Agent):
        return cast.key_of(agent_or_member)
    return cast.workspace_key(agent_or_member, permission)


async def leaving(
    path: str,
    body: dict[str, Any],
    *,
    key: str,
    leave: asyncio.Event,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """What a client is sent that leaves when `leave` is set: the server then says `http.disconnect`."""
    from console.asgi import application

    content, sent = json.dumps(body).encode(), []
    incoming = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop()
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    own = {"host": "localhost", "x-api-key": key, "content-length": str(len(content)), **headers}
    scope = {
        "type": "http", "method": "POST", "path": f"/v1{path}", "raw_path": f"/v1{path}".encode(), "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in own.items()],
        "http_version": "1.1", "scheme": "http",
    }  # fmt: skip
    await application(scope, receive, send)
    return sent


async def until(reads: Callable[[], Any]) -> Any:
    """What `reads` answers on a database thread, once it is true."""
    async with asyncio.timeout(30):
        while not (found := await db.read(reads)):  # noqa: ASYNC110  (a table rings no event)
            await asyncio.sleep(0.01)
    return found


async def the_action(**filters: Any) -> Action:
    return await db.read(Action.objects.select_related("agent").get, **filters)


async def caller_of(secret: str) -> keys.Caller:
    found = await db.read(keys.authenticate, secret)
    assert found is not None
    return found
