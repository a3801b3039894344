"""Colleagues on a card: told by ids on the socket, by name on the page, and gone with their socket."""

import asyncio
import contextlib

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator

from console.pages import looking
from console.workspaces import db
from tests.approvals.proposals import pending
from tests.pages.test_queue import queue_url
from tests.pages.test_sockets import app, socket_of


@pytest.fixture(autouse=True)
def quick(settings):
    settings.TIMER_DIVISOR = 20
    yield
    db.close()


@contextlib.asynccontextmanager
async def opened(client, cast, action_id: str = ""):
    plain = socket_of(client, cast.workspace)
    query = f"?card={action_id}" if action_id else ""
    socket = WebsocketCommunicator(app, plain.scope["path"] + query, headers=plain.scope["headers"])
    assert (await socket.connect(timeout=10))[0]
    assert "snapshot" in await socket.receive_json_from(timeout=10)
    yield socket
    await socket.disconnect()


def test_a_colleague_is_told_of_while_the_card_is_open_and_no_longer(committed_cast, browser) -> None:
    cast = committed_cast
    action = pending(cast.caller(cast.scout), "echo top-secret")
    alice, bob = browser(cast.alice), browser(cast.bob)

    async def story() -> None:
        async with opened(alice, cast) as hers:
            async with opened(bob, cast, action.pk) as his:
                said = await hers.receive_json_from(timeout=10)
                assert said == {"looking": {action.pk: [cast.bob.pk]}}
                assert await his.receive_nothing(timeout=0.5)  # nobody is told of themselves
                page = await sync_to_async(alice.get)(queue_url(cast, action.pk))
                assert "Bob is looking" in page.content.decode()
                row = await sync_to_async(alice.get)(queue_url(cast, action.pk), {"part": "row"})
                assert "Bob is looking" in row.content.decode()
                own = await sync_to_async(bob.get)(queue_url(cast, action.pk))
                assert "is looking" not in own.content.decode()
            assert await hers.receive_json_from(timeout=10) == {"looking": {}}

    asyncio.run(story())
    assert "is looking" not in alice.get(queue_url(cast, action.pk)).content.decode()


def test_nobody_elsewhere_hears_of_it(committed_cast, browser) -> None:
    cast = committed_cast
    with looking.at(cast.workspace.pk, cast.bob.pk, "act_1"):
        assert looking.others(cast.elsewhere.pk, but="") == {}
        assert looking.names(cast.mallory) == {}
        assert looking.names(cast.alice) == {"act_1": "Bob is looking"}
    assert looking.names(cast.alice) == {}


@pytest.mark.parametrize("named", ["", "act_", "<script>", "act_" + "x" * 40, "act_A", "%00"])
def test_what_is_no_id_is_no_card(committed_cast, browser, named) -> None:
    cast, client = committed_cast, browser(committed_cast.bob)

    async def story() -> None:
        async with opened(client, cast, named):
            await asyncio.sleep(0.1)
            assert looking.others(cast.workspace.pk, but="") == {}

    asyncio.run(story())


def test_two_pages_of_one_person_are_one_and_two_people_are_named(committed_cast) -> None:
    cast = committed_cast
    place = cast.workspace.pk
    with looking.at(place, cast.bob.pk, "act_1"), looking.at(place, cast.bob.pk, "act_1"):
        assert looking.others(place, but=cast.alice.pk) == {"act_1": [cast.bob.pk]}
        with looking.at(place, cast.alice.pk, "act_1"):
            assert looking.names(cast.mallory) == {}
            assert len(looking.others(place, but="")["act_1"]) == 2
