"""The queue's socket: what it says, to whom, and when it closes."""

import asyncio
import contextlib
from typing import Any

import pytest
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.db import OperationalError

from approvals import decisions
from console.pages import sockets, tail
from console.signed_in import SameOrigin, SignedIn
from console.workspaces import db, permissions
from tests.approvals.proposals import pending

app: Any = SameOrigin(SignedIn(URLRouter(sockets.routes)))


@pytest.fixture(autouse=True)
def own_threads():
    yield
    db.close()


@pytest.fixture(autouse=True)
def quick(settings):
    settings.TIMER_DIVISOR = 20


def socket_of(client: Any, workspace: Any) -> WebsocketCommunicator:
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value if client.cookies else ""
    headers = [
        (b"host", b"127.0.0.1:8000"),
        (b"origin", b"http://127.0.0.1:8000"),
        (b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()),
    ]
    return WebsocketCommunicator(app, f"/ws/queue/{workspace.pk}", headers=headers)


@contextlib.asynccontextmanager
async def opened(client: Any, workspace: Any):
    socket = socket_of(client, workspace)
    connected, _ = await socket.connect(timeout=10)
    assert connected
    yield socket
    await socket.disconnect()


async def closed(socket: WebsocketCommunicator) -> int:
    while True:
        sent = await socket.receive_output(timeout=10)
        if sent["type"] == "websocket.close":
            return sent["code"]


def test_a_snapshot_and_then_every_change_by_number(committed_cast, browser) -> None:
    cast = committed_cast
    first = pending(cast.caller(cast.scout), "echo 1")

    async def story() -> None:
        async with opened(browser_of, cast.workspace) as socket:
            snapshot = await socket.receive_json_from(timeout=10)
            assert snapshot["open"] == {first.pk: "pending"}
            second = await db.write(pending, caller, "echo 2")
            said = await socket.receive_json_from(timeout=10)
            assert said == {
                "seq": snapshot["snapshot"] + 1, "subject": "action", "id": second.pk, "status": "pending"
            }  # fmt: skip
            await db.write(decisions.decide, second, "approve", by=cast.alice, digest=second.digest)
            said = await socket.receive_json_from(timeout=10)
            assert (said["seq"], said["status"]) == (snapshot["snapshot"] + 2, "approved")

    browser_of, caller = browser(cast.bob), cast.caller(cast.scout)
    asyncio.run(story())


def test_no_content_is_ever_sent(committed_cast, browser) -> None:
    cast = committed_cast

    async def story() -> None:
        async with opened(client, cast.workspace) as socket:
            await socket.receive_json_from(timeout=10)
            await db.write(pending, caller, "echo top-secret", reason="top-secret", conversation="top-secret")
            said = await socket.receive_json_from(timeout=10)
            assert "top-secret" not in str(said)
            assert set(said) == {"seq", "subject", "id", "status"}

    client, caller = browser(cast.bob), cast.caller(cast.scout)
    asyncio.run(story())


@pytest.mark.parametrize("who", ["mallory", "nobody"])
def test_strangers_get_no_socket(committed_cast, browser, who) -> None:
    client = browser(getattr(committed_cast, who, None))

    async def story() -> None:
        connected, _ = await socket_of(client, committed_cast.workspace).connect(timeout=10)
        assert not connected

    asyncio.run(story())


def test_a_socket_of_mallory_hears_nothing_of_this_workspace(committed_cast, browser) -> None:
    cast = committed_cast
    client, caller = browser(cast.mallory), cast.caller(cast.scout)

    async def story() -> None:
        async with opened(client, cast.elsewhere) as socket:
            assert (await socket.receive_json_from(timeout=10))["open"] == {}
            await db.write(pending, caller)
            assert await socket.receive_nothing(timeout=1)

    asyncio.run(story())


def lose_permission(cast: Any, client: Any) -> None:
    cast.bob.permissions.filter(name__in=sockets.LOOK).delete()


def sign_out(cast: Any, client: Any) -> None:
    client.logout()


def be_removed(cast: Any, client: Any) -> None:
    from console.workspaces import members

    members.remove(cast.bob, by=cast.alice)


def change_password(cast: Any, client: Any) -> None:
    cast.bob.user.set_password("another horse battery 7")
    cast.bob.user.save()


@pytest.mark.parametrize(
    ("loss", "codes"),
    [
        (lose_permission, {sockets.NOT_YOURS}),
        (be_removed, {sockets.NOT_YOURS, sockets.SIGNED_OUT}),  # whichever is looked at first
        (sign_out, {sockets.SIGNED_OUT}),
        (change_password, {sockets.SIGNED_OUT}),
    ],
)
def test_losing_the_right_closes_the_socket(committed_cast, browser, loss, codes) -> None:
    client = browser(committed_cast.bob)
    assert sockets.RECHECK_S < 5

    async def story() -> None:
        async with opened(client, committed_cast.workspace) as socket:
            await socket.receive_json_from(timeout=10)
            await db.write(loss, committed_cast, client)
            assert await closed(socket) in codes

    asyncio.run(story())


async def more_without_end(self: tail.Tail, seq: int) -> list[tuple[int, str]]:
    await asyncio.sleep(0)
    return [(seq + number, "{}") for number in range(1, tail.READ + 1)]


async def untaken(self: sockets.Queue, *args: Any, **kwargs: Any) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(("owner", "name", "held_up"), [
    (tail.Tail, "after", more_without_end),
    (sockets.Queue, "send", untaken),
])  # fmt: skip
def test_a_page_that_lags_behind_loses_its_socket_with_the_right(
    committed_cast, browser, monkeypatch, owner, name, held_up
) -> None:
    client = browser(committed_cast.bob)

    async def story() -> None:
        async with opened(client, committed_cast.workspace) as socket:
            await socket.receive_json_from(timeout=10)
            monkeypatch.setattr(owner, name, held_up)
            await db.write(pending, caller)
            await db.write(sign_out, committed_cast, client)
            async with asyncio.timeout(10):
                assert await closed(socket) == sockets.SIGNED_OUT

    caller = committed_cast.caller(committed_cast.scout)
    asyncio.run(story())


@pytest.mark.parametrize(("owner", "name"), [
    (sockets, "_member_id"), (sockets, "_snapshot"), (sockets, "user_of"), (tail.Tail, "after")
])  # fmt: skip
def test_a_socket_that_fails_is_closed_so_that_its_page_connects_anew(
    committed_cast, browser, monkeypatch, caplog, owner, name
) -> None:
    client = browser(committed_cast.bob)

    def unreadable(*asked: Any, **more: Any) -> None:
        raise OperationalError("disk I/O error")

    async def story() -> None:
        async with opened(client, committed_cast.workspace) as socket:
            assert await closed(socket) == sockets.FAILED

    monkeypatch.setattr(owner, name, unreadable)
    asyncio.run(story())
    assert sockets.FAILED < 4400  # from there on the page is loaded anew
    assert "disk I/O error" in caplog.text


def test_what_a_page_says_here_counts_for_nothing(committed_cast, browser) -> None:
    cast = committed_cast
    client, action = browser(cast.bob), pending(cast.caller(cast.scout))

    async def story() -> None:
        async with opened(client, cast.workspace) as socket:
            await socket.receive_json_from(timeout=10)
            for text in ('{"decide": "approve"}', "not json"):
                await socket.send_to(text_data=text)
            await socket.send_to(bytes_data=b"\0")
            assert await socket.receive_nothing(timeout=1)

    asyncio.run(story())
    action.refresh_from_db()
    assert action.status == "pending"


def test_reading_is_enough_to_listen(committed_cast, browser) -> None:
    committed_cast.bob.permissions.exclude(name=permissions.SANDBOXES_READ).delete()
    client = browser(committed_cast.bob)

    async def story() -> None:
        async with opened(client, committed_cast.workspace) as socket:
            assert "snapshot" in await socket.receive_json_from(timeout=10)

    asyncio.run(story())
