"""Rules and grants by key."""

import pytest

from approvals import gate
from approvals.models import Action, Grant, Rule
from console.workspaces import db, permissions
from console.workspaces.models import Workspace
from tests.approvals.proposals import pending, run

from .conftest import caller_of

pytestmark = pytest.mark.anyio
RULE = {"effect": "allow", "tool": "run", "pattern": "git status", "matches": ["git status -s"]}


def submitted(*asked, **more):
    return gate.submit(run(*asked, **more))


async def made(ask, place, **fields):
    answer = await ask.post("/rules", {**RULE, **fields}, key=place.alices)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_a_rule_made_by_key_lets_the_next_call_through(ask, place):
    rule = await made(ask, place, agent_id=place.scout.pk, does_not_match=["git push"])
    assert (rule["scope"], rule["version"], rule["owner"]) == ("agent", 1, place.alice.pk)
    scout = await caller_of(place.scouts)
    assert isinstance(await db.write(submitted, scout, "git status"), gate.Pass)
    again = (await ask.get(f"/rules/{rule['id']}", key=place.alices)).json()
    assert (again["use_count"], bool(again["last_used_at"])) == (1, True)
    listed = (await ask.get("/rules", key=place.alices)).json()
    assert [each["id"] for each in listed["items"]] == [rule["id"]]


async def test_a_rule_whose_tests_fail_is_not_kept(ask, place):
    answer = await ask.post("/rules", {**RULE, "matches": ["git push"]}, key=place.alices)
    assert (answer.status_code, answer.json()["field"]) == (422, "matches")
    assert not await db.read(Rule.objects.exists)


async def test_a_change_is_a_new_version_and_of_an_old_one_a_conflict(ask, place):
    rule = await made(ask, place)
    changed = await ask("PUT", f"/rules/{rule['id']}", key=place.alices, json={"version": 1, "note": "for ls"})
    assert (changed.status_code, changed.json()["version"], changed.json()["pattern"]) == (200, 2, "git status")
    late = await ask("PUT", f"/rules/{rule['id']}", key=place.alices, json={"version": 1, "note": "late"})
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    ended = await ask("PUT", f"/rules/{rule['id']}", key=place.alices, json={"expires_at": "2000-01-01T00:00:00Z"})
    assert (ended.status_code, ended.json()["field"]) == (422, "expires_at")


async def test_an_ended_rule_is_gone(ask, place):
    rule = await made(ask, place)
    assert (await ask("DELETE", f"/rules/{rule['id']}", key=place.alices)).json() == {"success": True}
    assert (await ask.get(f"/rules/{rule['id']}", key=place.alices)).status_code == 404
    scout = await caller_of(place.scouts)
    assert isinstance(await db.write(submitted, scout, "git status"), gate.Wait)


async def test_a_rule_for_an_agent_of_others_is_refused(ask, place):
    answer = await ask.post("/rules", {**RULE, "agent_id": place.scout.pk}, key=place.mallorys)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_dry_run_says_what_would_have_been_and_changes_nothing(ask, place):
    scout = await caller_of(place.scouts)
    for line in ("git status", "git push", "curl x"):
        await db.write(pending, scout, line)
    await made(ask, place, effect="deny", pattern="curl", matches=[])
    body = {"rule": {"effect": "allow", "tool": "run", "pattern": "git status"}}
    found = (await ask.post("/rules/dry-run", body, key=place.alices)).json()
    assert (found["allow"], found["deny"], found["ask"]) == (1, 1, 1)
    assert [each["would"] for each in found["items"]] == ["deny", "ask", "allow"]
    assert await db.read(Rule.objects.count) == 1
    assert await db.read(Action.objects.filter(status="pending").count) == 3
    elsewhere = (await ask.post("/rules/dry-run", body, key=place.mallorys)).json()
    assert elsewhere["items"] == []


async def test_tests_run_without_a_rule(ask, place):
    body = {**RULE, "does_not_match": ["git status"]}
    found = (await ask.post("/rules/tests", body, key=place.alices)).json()
    assert [each["passes"] for each in found["items"]] == [True, False]
    assert not found["passes"]


async def test_a_key_gives_a_grant_only_where_keys_decide(ask, place):
    scout = await caller_of(place.scouts)
    action = await db.write(pending, scout, "cat notes")
    key = await db.write(place.workspace_key, place.bob, permissions.APPROVALS_REVIEW)
    body = {"action_id": action.pk, "digest": action.digest, "minutes": 10}
    refused = await ask.post("/grants", body, key=key)
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
    assert not await db.read(Grant.objects.exists)
    await db.write(Workspace.objects.filter(pk=place.workspace.pk).update, key_decisions=True)
    given = await ask.post("/grants", body, key=key)
    assert (given.status_code, given.json()["exactly"]) == (201, [["cat", "notes"]]), given.text
    assert isinstance(await db.write(submitted, scout, "cat notes", conversation=action.conversation), gate.Pass)
    assert len((await ask.get("/grants", key=key)).json()["items"]) == 1
    ended = await ask("DELETE", f"/grants/{given.json()['id']}", key=key)
    assert ended.json() == {"success": True}
    assert (await ask.get("/grants", key=key)).json()["items"] == []
    assert isinstance(await db.write(submitted, scout, "cat notes", idempotency_key="k"), gate.Wait)


async def test_packs_are_turned_on_and_off_for_this_workspace(ask, place):
    packs = (await ask.get("/rules/packs", key=place.alices)).json()["items"]
    assert {each["version_on"] for each in packs} == {None}
    on = (await ask("PUT", "/rules/packs/search", key=place.alices)).json()["items"]
    assert [each["name"] for each in on if each["version_on"]] == ["search"]
    elsewhere = (await ask.get("/rules/packs", key=place.mallorys)).json()["items"]
    assert {each["version_on"] for each in elsewhere} == {None}
    off = (await ask("DELETE", "/rules/packs/search", key=place.alices)).json()["items"]
    assert {each["version_on"] for each in off} == {None}
    unknown = await ask("PUT", "/rules/packs/made-up", key=place.alices)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert (await ask.get("/rules/suggestions", key=place.alices)).json() == {"items": []}
