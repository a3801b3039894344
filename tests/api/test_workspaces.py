"""Agents, members, keys and the audit log: the pages' acts, with the pages' permissions."""

import pytest

from console.workspaces import audit, db, keys, permissions
from console.workspaces.models import Agent, Key, Workspace

pytestmark = pytest.mark.anyio


async def ids(ask, path, key, **params):
    answer = await ask.get(path, key=key, **params)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]], answer.json()["next_cursor"]


async def test_the_key_describes_itself_as_the_published_client_wants_it(ask, place):
    me = (await ask.get("/admin/me", key=place.scouts)).json()
    assert (me["tenant_admin"], me["permissions"], me["agent_id"]) == (False, ["sandboxes:run"], place.scout.pk)
    assert place.scouts.startswith(me["value"].rstrip("…"))
    assert place.scouts not in str(me)
    assert (await ask.get("/nodes", key=place.scouts)).json() == []


async def test_a_bearer_token_is_a_key_too_and_a_cookie_is_not(ask, place):
    bearer = await ask("GET", "/admin/me", key=None, headers={"Authorization": f"Bearer {place.scouts}"})
    assert bearer.status_code == 200
    cookie = await ask("GET", "/admin/me", key=None, headers={"Cookie": f"sessionid={place.scouts}"})
    assert cookie.status_code == 401


async def test_agents_are_made_and_set_up(ask, place):
    made = await ask.post("/agents", {"name": "Clerk"}, key=place.alices)
    assert made.status_code == 201
    assert made.json()["tools"]["sandbox_enabled"] is False
    assert made.json()["permissions"] == []
    path = f"/agents/{made.json()['id']}"
    before = (await ask.get(f"{path}/tools/sandbox", key=place.alices)).json()
    wanted = {"sandbox_enabled": True, "command_mode": "always"}
    after = (await ask("PUT", f"{path}/tools/sandbox", key=place.alices, json=wanted)).json()
    assert after == {**before, **wanted, "settings_version": before["settings_version"] + 1}
    same = (await ask("PUT", f"{path}/tools/sandbox", key=place.alices, json=wanted)).json()
    assert same == after
    given = await ask("PUT", f"{path}/permissions/sandboxes:run", key=place.alices)
    assert given.json() == {"success": True}
    found = (await ask.get("/agents", key=place.alices)).json()["items"][0]
    assert (found["id"], found["permissions"]) == (made.json()["id"], ["sandboxes:run"])
    assert (await ask("DELETE", f"{path}/permissions/sandboxes:run", key=place.alices)).status_code == 200
    assert (await ask.get("/agents", key=place.alices)).json()["items"][0]["permissions"] == []


async def test_an_agent_of_that_name_again_is_a_conflict(ask, place):
    answer = await ask.post("/agents", {"name": "SCOUT"}, key=place.alices)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"toolset": 3}, "toolset"),
        ({"command_mode": "sometimes"}, "command_mode"),
        ({"sandbox_enabled": "yes"}, "sandbox_enabled"),
        ({"self_approval": "yes"}, "self_approval"),
    ],
)
async def test_agent_tools_refuse_what_they_do_not_know(ask, place, body, field):
    answer = await ask("PUT", f"/agents/{place.scout.pk}/tools/sandbox", key=place.alices, json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (await db.read(Agent.objects.get, pk=place.scout.pk)).settings_version == place.scout.settings_version


async def test_an_owner_is_a_member_of_this_workspace(ask, place):
    stranger = await ask.post("/agents", {"name": "x", "owner": place.mallory.pk}, key=place.alices)
    assert (stranger.status_code, stranger.json()["code"]) == (404, "not_found")
    mine = await ask.post("/agents", {"name": "x", "owner": place.bob.pk}, key=place.alices)
    assert mine.json()["owner"] == place.bob.pk


async def test_members_come_and_go(ask, place):
    made = await ask.post("/members", {"email": "eve@example.test", "name": "Eve"}, key=place.alices)
    assert made.status_code == 201
    assert len(made.json()["first_password"]) >= 16
    assert made.json()["permissions"] == []
    again = await ask.post("/members", {"email": "EVE@example.test"}, key=place.alices)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    path = f"/members/{made.json()['id']}"
    await ask("PUT", f"{path}/permissions/approvals:review", key=place.alices)
    found = {item["id"]: item for item in (await ask.get("/members", key=place.alices)).json()["items"]}
    assert found[made.json()["id"]]["permissions"] == ["approvals:review"]
    assert "first_password" not in str(found)
    assert place.mallory.pk not in found
    assert (await ask("DELETE", path, key=place.alices)).status_code == 200
    assert (await ask("DELETE", path, key=place.alices)).status_code == 404


async def test_nobody_gives_themselves_the_right_to_run(ask, place):
    path = f"/members/{place.alice.pk}/permissions/sandboxes:run"
    await ask("DELETE", path, key=place.alices)
    answer = await ask("PUT", path, key=place.alices)
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    unknown = await ask("PUT", f"/members/{place.bob.pk}/permissions/all", key=place.alices)
    assert (unknown.status_code, unknown.json()["field"]) == (422, "permission")


async def test_a_key_is_shown_once_works_and_ends(ask, place):
    made = await ask.post("/keys", {"name": "ci", "agent_id": place.scout.pk, "days": 1}, key=place.alices)
    assert made.status_code == 201
    secret = made.json()["secret"]
    assert (await ask.get("/admin/me", key=secret)).json()["agent_id"] == place.scout.pk
    listed = await ask.get("/keys", key=place.alices)
    assert secret not in listed.text
    assert listed.json()["items"][0]["id"] == made.json()["id"]
    assert (await ask("DELETE", f"/keys/{made.json()['id']}", key=place.alices)).status_code == 200
    assert (await ask.get("/admin/me", key=secret)).status_code == 401
    assert (await ask("DELETE", f"/keys/{made.json()['id']}", key=place.alices)).status_code == 200


async def test_a_key_makes_no_key_that_does_more_than_itself(ask, place):
    weak = await db.write(place.workspace_key, place.alice, permissions.KEYS_MANAGE)
    for wanted in ([permissions.SANDBOXES_RUN], [permissions.APPROVALS_REVIEW]):
        answer = await ask.post("/keys", {"name": "more", "permissions": wanted}, key=weak)
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    same = await ask.post("/keys", {"name": "same", "permissions": [permissions.KEYS_MANAGE]}, key=weak)
    assert same.json()["permissions"] == [permissions.KEYS_MANAGE]


async def test_a_key_of_a_member_who_left_opens_nothing(ask, place):
    reader = await db.write(place.workspace_key, place.bob, permissions.AUDIT_READ)
    assert (await ask.get("/audit", key=reader)).status_code == 200
    await ask("DELETE", f"/members/{place.bob.pk}", key=place.alices)
    assert (await ask.get("/audit", key=reader)).status_code == 401


async def test_a_permission_taken_from_a_member_is_taken_from_their_keys(ask, place):
    reader = await db.write(place.workspace_key, place.bob, permissions.AUDIT_READ)
    await ask("DELETE", f"/members/{place.bob.pk}/permissions/audit:read", key=place.alices)
    assert (await ask.get("/audit", key=reader)).status_code == 403


async def test_the_audit_log_tells_who_did_what_and_chains(ask, place):
    await ask.post("/agents", {"name": "Clerk"}, key=place.alices)
    rows = (await ask.get("/audit", key=place.alices)).json()["items"]
    assert (rows[0]["event"], rows[0]["actor_id"], rows[0]["data"]["name"]) == ("agent.made", place.alice.pk, "Clerk")
    assert all(newer["prev_hash"] == older["hash"] for newer, older in zip(rows, rows[1:], strict=False))
    only = (await ask.get("/audit", key=place.alices, subject=rows[0]["subject_id"])).json()["items"]
    assert only == [rows[0]]
    first = (await ask.get("/audit", key=place.alices, limit=2)).json()
    second = (await ask.get("/audit", key=place.alices, limit=2, cursor=first["next_cursor"])).json()
    assert [row["seq"] for row in first["items"] + second["items"]] == [row["seq"] for row in rows[:4]]
    assert await db.read(lambda: list(audit.broken_links(Workspace.objects.get(pk=place.workspace.pk)))) == []
    assert (await ask.get("/audit", key=place.alices, cursor="x")).json()["field"] == "cursor"


async def test_lists_are_paged(ask, place):
    for path in ("/agents", "/members", "/keys"):
        every, end = await ids(ask, path, place.alices)
        assert end is None
        first, cursor = await ids(ask, path, place.alices, limit=1)
        rest, end = await ids(ask, path, place.alices, cursor=cursor)
        assert (first + rest, end) == (every, None)
        assert every == sorted(every, reverse=True)


async def test_secrets_are_stored_as_hashes_only(place):
    row = await db.read(lambda: Key.objects.filter(agent=place.scout).latest("created_at"))
    assert row.secret_hash == keys._hash(place.scouts)
    assert place.scouts not in str(vars(row))
