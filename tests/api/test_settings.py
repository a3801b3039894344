"""Settings for sandboxes over REST: the workspace's and an agent's."""

import pytest

from console.workspaces import db, permissions

pytestmark = pytest.mark.anyio


@pytest.fixture
def managers(place):
    return place.workspace_key(place.alice, permissions.WORKSPACE_MANAGE)


async def test_the_workspaces_settings_are_read_and_changed(ask, place, managers):
    before = (await ask.get("/workspace", key=managers)).json()
    assert (before["id"], before["limits"], before["stock_images"]) == (place.workspace.pk, {}, ["default", "node"])
    assert before["limits_in_force"]["memory_mb"] == {"default": 512, "least": 128, "most": 4096}
    wanted = {"limits": {"memory_mb": {"most": 256}}, "images": ["team/tools:2"], "pool_size": 2}
    after = (await ask("PUT", "/workspace", key=managers, json=wanted)).json()
    assert after["limits"]["memory_mb"] == {"default": None, "most": 256}
    assert after["limits_in_force"]["memory_mb"] == {"default": 256, "least": 128, "most": 256}
    assert (after["images"], after["pool_size"]) == (["team/tools:2"], 2)
    assert (await ask.get("/workspace", key=managers)).json() == after
    assert (await ask("PUT", "/workspace", key=managers, json={"pool_size": 0})).json() == {**after, "pool_size": 0}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"limits": {"memory_mb": {"most": 1}}}, "limits.memory_mb.most"),
        ({"limits": {"memory_mb": {"most": "512"}}}, "limits"),
        ({"limits": {"ram": {}}}, "limits.ram"),
        ({"pool_size": 99}, "pool_size"),
        ({"images": ["a b"]}, "images"),
        ({"name": "mine"}, "name"),
    ],
)
async def test_a_bad_setting_is_named(ask, managers, body, field):
    answer = await ask("PUT", "/workspace", key=managers, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    assert answer.json()["field"].startswith(field)


async def test_nobody_else_sees_or_changes_them(ask, place):
    for key, why in (
        (place.scouts, "permission_denied"),
        (await db.write(place.workspace_key, place.alice, permissions.AGENTS_MANAGE), "permission_denied"),
        (None, "no_key"),
    ):
        for method in ("GET", "PUT"):
            body = {"json": {"pool_size": 0}} if method == "PUT" else {}
            assert (await ask(method, "/workspace", key=key, **body)).json()["code"] == why
    elsewhere = await db.write(place.workspace_key, place.mallory, permissions.WORKSPACE_MANAGE)
    assert (await ask.get("/workspace", key=elsewhere)).json()["name"] == "Elsewhere"


async def test_agent_tools_have_the_sandboxs_settings(ask, place):
    path = f"/agents/{place.scout.pk}/tools/sandbox"
    before = (await ask.get(path, key=place.alices)).json()
    assert (before["network"], before["persistent_allowed"], before["writable_root_allowed"]) == (
        "public",
        False,
        False,
    )
    wanted = {
        "network": "none", "persistent_allowed": True, "writable_root_allowed": True,
        "images": ["team/tools:2"], "limits": {"cpus": {"default": 0.5, "most": 1}},
    }  # fmt: skip
    after = (await ask("PUT", path, key=place.alices, json=wanted)).json()
    assert after == {**before, **wanted, "limits_in_force": after["limits_in_force"], "settings_version": 3}
    assert after["limits_in_force"]["cpus"] == {"default": 0.5, "least": 0.1, "most": 1}
    answer = await ask("PUT", path, key=place.alices, json={"limits": {"cpus": {"most": 100}}})
    assert (answer.status_code, answer.json()["field"]) == (422, "limits.cpus.most")
    assert "at most 4.0 in this workspace" in answer.json()["detail"]
