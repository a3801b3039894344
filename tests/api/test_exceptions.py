"""Network exceptions over REST: who may, what it looks like, whose they are."""

import pytest

from console.workspaces import db, permissions

from .conftest import limited_key

pytestmark = pytest.mark.anyio
DATABASE = {"address": "10.1.2.3", "protocol": "tcp", "port": 5432, "reason": "reports"}


def path(agent, end=""):
    return f"/agents/{agent.pk}/network-exceptions{end}"


async def test_one_is_made_listed_and_ended(ask, place):
    made = await ask.post(path(place.scout), DATABASE, key=place.alices)
    assert made.status_code == 201
    found = made.json()
    assert {name: found[name] for name in DATABASE} == DATABASE
    assert (found["agent_id"], found["made_by"]) == (place.scout.pk, place.alice.pk)
    assert (await ask.get(path(place.scout), key=place.alices)).json() == {"items": [found], "next_cursor": None}
    assert (await ask.get(path(place.other), key=place.alices)).json()["items"] == []
    ended = await ask("DELETE", path(place.scout, f"/{found['id']}"), key=place.alices)
    assert (ended.status_code, ended.json()) == (200, {"success": True})
    assert (await ask.get(path(place.scout), key=place.alices)).json()["items"] == []
    again = await ask("DELETE", path(place.scout, f"/{found['id']}"), key=place.alices)
    assert (again.status_code, again.json()["code"]) == (404, "not_found")


async def test_another_agents_or_workspaces_is_not_there(ask, place):
    made = (await ask.post(path(place.scout), DATABASE, key=place.alices)).json()
    for agent, key in ((place.other, place.alices), (place.scout, place.mallorys)):
        answer = await ask("DELETE", path(agent, f"/{made['id']}"), key=key)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    for answer in (
        await ask.post(path(place.scout), DATABASE, key=place.mallorys),
        await ask.get(path(place.scout), key=place.mallorys),
    ):
        assert answer.status_code == 404
    assert len((await ask.get(path(place.scout), key=place.alices)).json()["items"]) == 1


async def test_it_needs_agents_manage_and_no_agents_key(ask, place):
    weak = await db.write(limited_key, place.bob, permissions.SANDBOXES_READ, place)
    for key in (weak, place.scouts):
        for answer in (
            await ask.post(path(place.scout), DATABASE, key=key),
            await ask.get(path(place.scout), key=key),
            await ask("DELETE", path(place.scout, "/nex_x"), key=key),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"address": "10.0.0.0/8"}, "address"),
        ({"address": "127.0.0.1"}, "address"),
        ({"protocol": "icmp"}, "protocol"),
        ({"port": 0}, "port"),
        ({"port": True}, "port"),
        ({"ports": [1]}, "ports"),
    ],
)
async def test_what_is_wrong_is_named(ask, place, change, field):
    answer = await ask.post(path(place.scout), DATABASE | change, key=place.alices)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_the_same_again_is_a_conflict(ask, place):
    await ask.post(path(place.scout), DATABASE, key=place.alices)
    answer = await ask.post(path(place.scout), DATABASE, key=place.alices)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
