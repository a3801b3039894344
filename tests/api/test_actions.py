"""Following actions, taking them back, and deciding by key."""

import asyncio
import time

import pytest

from approvals import decisions, edits, gate
from approvals.models import Action
from console.workspaces import db, permissions
from console.workspaces.models import Agent, Workspace
from tests import people
from tests.approvals import proposals

from .conftest import caller_of, the_action, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def pending(place, transactional_db):
    def make(command="echo hi", agent=None, **more):
        caller = place.caller(agent or place.scout)
        return proposals.pending(caller, command, sandbox_id=place.sandbox.pk, **more)

    return make


@pytest.fixture
def reviews(place):
    """A review key of bob's, in a workspace that lets keys decide."""
    Workspace.objects.filter(pk=place.workspace.pk).update(key_decisions=True)
    return place.workspace_key(place.bob, permissions.APPROVALS_REVIEW)


async def decide(ask, key, action, verdict="approve", **more):
    body = {"verdict": verdict, "digest": action.digest, **more}
    return await ask.post(f"/actions/{action.pk}/decision", body, key=key)


async def test_an_action_says_all_that_the_contract_names(ask, place, pending):
    made = await db.write(pending, conversation="c1", parent_action="act_0", reason="why")
    found = (await ask.get(f"/actions/{made.pk}", key=place.scouts)).json()
    assert set(found) == {
        "id", "status", "tool", "arguments", "environment", "digest", "reason", "agent_id", "conversation",
        "parent_action", "sandbox_id", "flags", "approvals_needed", "decisions", "created_at", "expires_at",
        "plan_id", "plan_place", "decided_at", "started_at", "ended_at", "escalated_at", "joined", "outcome",
        "script",
    }  # fmt: skip
    assert (found["status"], found["outcome"], found["decisions"]) == ("pending", None, [])
    assert (found["conversation"], found["parent_action"], found["reason"]) == ("c1", "act_0", "why")
    assert found["created_at"].endswith("Z")
    assert found["digest"] == made.digest


async def test_a_list_says_in_words_what_was_not_done_as_a_single_answer_does(ask, place, pending):
    made = await db.write(pending)
    await db.write(decisions.decide, made, "deny", by=place.bob, digest=made.digest, reason="Not needed")
    one = (await ask.get(f"/actions/{made.pk}", key=place.scouts)).json()
    (listed,) = (await ask.get("/actions", key=place.scouts)).json()["items"]
    assert listed["outcome"]["text"] == one["outcome"]["text"]
    assert "Not needed" in listed["outcome"]["text"]


async def test_a_wait_ends_with_the_decision(ask, place, pending):
    made = await db.write(pending)
    call = asyncio.create_task(ask.get(f"/actions/{made.pk}", key=place.scouts, wait=20))
    await asyncio.sleep(0.1)
    began = time.monotonic()
    await db.write(decisions.decide, made, "deny", by=place.bob, digest=made.digest, reason="no", via="page")
    found = (await call).json()
    assert time.monotonic() - began < 1
    assert found["status"] == "denied"
    assert found["outcome"]["executed"] is False
    assert (found["outcome"]["decided_by"], found["outcome"]["reason"]) == ("reviewer", "no")
    assert found["decisions"] == [
        {"by": "Bob", "verdict": "deny", "reason": "no", "via": "page", "at": found["decisions"][0]["at"]}
        | {"digest": made.digest, "reset": False}
    ]
    assert await until(Action.objects.filter(pk=made.pk).exclude(delivered_at=None).exists)


async def test_a_wait_that_ends_first_is_no_refusal(ask, place, pending):
    made = await db.write(pending)
    answer = await ask.get(f"/actions/{made.pk}", key=place.scouts, wait=0.1)
    assert (answer.status_code, answer.json()["status"]) == (200, "pending")
    assert (await the_action(pk=made.pk)).delivered_at is None


@pytest.mark.parametrize("wait", [-1, 56, "x", "nan"])
async def test_a_wait_has_bounds(ask, place, pending, wait):
    made = await db.write(pending)
    answer = await ask.get(f"/actions/{made.pk}", key=place.scouts, wait=wait)
    assert (answer.status_code, answer.json()["field"]) == (422, "wait")


async def test_a_key_has_so_many_waits_and_no_more(ask, place, pending, settings):
    settings.WAITS_PER_KEY = 3
    made = await db.write(pending)
    calls = [asyncio.create_task(ask.get(f"/actions/{made.pk}", key=place.scouts, wait=20)) for _ in range(3)]
    await asyncio.sleep(0.3)
    refused = await ask.get(f"/actions/{made.pk}", key=place.scouts, wait=20)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    assert int(refused.headers["retry-after"]) > 0
    assert (await ask.get(f"/actions/{made.pk}", key=place.scouts)).status_code == 200
    assert (await ask.get(f"/actions/{made.pk}", key=place.alices, wait=0.1)).status_code == 200
    await db.write(decisions.decide, made, "deny", by=place.bob, digest=made.digest, reason="no", via="page")
    assert {call.status_code for call in await asyncio.gather(*calls)} == {200}
    assert (await ask.get(f"/actions/{made.pk}", key=place.scouts, wait=0.1)).status_code == 200


async def test_lists_are_filtered_and_paged(ask, place, pending):
    made = [await db.write(pending, f"echo {n}", conversation=f"c{n % 2}") for n in range(5)]
    theirs = await db.write(pending, "echo theirs", agent=place.other)

    async def listed(key=place.alices, **params):
        answer = await ask.get("/actions", key=key, **params)
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["items"]], answer.json()["next_cursor"]

    newest_first = [action.pk for action in reversed(made)]
    assert await listed(agent=place.scout.pk) == (newest_first, None)
    assert (await listed())[0] == [theirs.pk, *newest_first]
    assert await listed(place.scouts) == (newest_first, None)
    assert await listed(place.scouts, agent=place.other.pk) == ([], None)
    assert await listed(place.mallorys) == ([], None)
    assert (await listed(conversation="c1"))[0] == [newest_first[1], newest_first[3]]
    assert len((await listed(sandbox=place.sandbox.pk))[0]) == 6
    assert await listed(status="denied") == ([], None)
    first, cursor = await listed(place.scouts, limit=3)
    second, end = await listed(place.scouts, limit=3, cursor=cursor)
    assert (first + second, end) == (newest_first, None)
    await db.write(decisions.decide, made[0], "deny", by=place.bob, digest=made[0].digest, reason="no")
    assert (await listed(place.scouts, undelivered=True))[0] == [made[0].pk]
    assert (await listed(place.scouts, undelivered=True))[0] == [made[0].pk]  # a list gives nothing away


@pytest.mark.parametrize(
    ("params", "field"),
    [({"limit": 0}, "limit"), ({"limit": 201}, "limit"), ({"cursor": "x"}, "cursor"), ({"status": "odd"}, "status")],
)
async def test_lists_refuse_what_they_do_not_know(ask, place, params, field):
    answer = await ask.get("/actions", key=place.scouts, **params)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_an_agent_takes_back_what_has_not_started(ask, place, pending):
    made = await db.write(pending)
    answer = await ask.post(f"/actions/{made.pk}/cancel", key=place.scouts)
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    again = await ask.post(f"/actions/{made.pk}/cancel", key=place.scouts)
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")
    started = await db.write(pending, "echo other")
    await db.write(decisions.decide, started, "approve", by=place.bob, digest=started.digest)
    assert await db.write(gate.start, started.pk)
    late = await ask.post(f"/actions/{started.pk}/cancel", key=place.scouts)
    assert (late.status_code, late.json()["status"]) == (200, "running")


async def test_a_workspace_key_takes_nothing_back_for_an_agent(ask, place, pending):
    made = await db.write(pending)
    answer = await ask.post(f"/actions/{made.pk}/cancel", key=place.alices)
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


async def test_deciding_by_key_is_off_until_the_workspace_turns_it_on(ask, place, pending):
    made = await db.write(pending)
    key = await db.write(place.workspace_key, place.bob, permissions.APPROVALS_REVIEW)
    answer = await decide(ask, key, made)
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert "workspace:manage" in answer.json()["detail"]
    assert (await the_action(pk=made.pk)).status == "pending"


async def test_a_review_key_decides_once(ask, place, pending, reviews):
    made = await db.write(pending)
    answer = await decide(ask, reviews, made)
    assert (answer.status_code, answer.json()["status"]) == (200, "approved")
    assert answer.json()["decisions"][0]["via"] == "api"
    late = await decide(ask, reviews, made, "deny", reason="too late")
    assert (late.status_code, late.json()["code"]) == (409, "already_decided")
    assert "Bob approved this first" in late.json()["detail"]


async def test_a_decision_names_what_was_looked_at(ask, place, pending, reviews):
    made = await db.write(pending)
    answer = await ask.post(f"/actions/{made.pk}/decision", {"verdict": "approve", "digest": "0" * 64}, key=reviews)
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_digest")
    assert (await the_action(pk=made.pk)).status == "pending"


async def test_a_denial_by_key_wants_a_reason(ask, place, pending, reviews):
    made = await db.write(pending)
    answer = await decide(ask, reviews, made, "deny")
    assert (answer.status_code, answer.json()["field"]) == (422, "reason")


async def test_no_agent_and_no_running_key_decides(ask, place, pending, reviews):
    made = await db.write(pending)
    for key in (place.scouts, place.others, place.alices):
        answer = await decide(ask, key, made)
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert (await caller_of(place.scouts)).is_agent
    assert (await the_action(pk=made.pk)).status == "pending"


async def test_an_approval_of_a_text_that_was_edited_since_is_marked(ask, place, pending):
    def edited():
        people.member(place.workspace, "dan", *permissions.PRESETS["reviewer"])
        Agent.objects.filter(pk=place.scout.pk).update(approvals_needed=2)
        made = pending("echo proposed")
        decisions.decide(made, "approve", by=place.alice, digest=made.digest)
        was = Action.objects.get(pk=made.pk)
        sent = proposals.run(place.caller(place.scout), "echo edited", profile=was.profile, sandbox_id=was.sandbox_id)
        now = edits.put(was, sent, by=place.bob, digest_before=was.digest)
        return made.digest, decisions.decide(
            Action.objects.get(pk=now.pk), "approve", by=place.alice, digest=now.digest
        )

    old, action = await db.write(edited)
    found = (await ask.get(f"/actions/{action.pk}", key=place.scouts)).json()
    assert found["status"] == "pending"
    said = {each["digest"]: each["reset"] for each in found["decisions"]}
    assert said == {old: True, action.digest: False}
