"""Plans over REST: proposed, followed and decided by key."""

import asyncio

import pytest

from approvals import gate
from approvals.models import Action, Plan
from approvals.plans import deciding
from console.workspaces import db, permissions
from console.workspaces.models import Workspace
from sandboxes.models import Sandbox

from .conftest import until
from .test_twins import RESULT

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("hub")]
NOW = {"Prefer": "wait=0"}


@pytest.fixture(autouse=True)
def in_a_conversation(place):
    Sandbox.objects.filter(pk=place.sandbox.pk).update(conversation="c")


def body(*commands, **more):
    calls = [{"tool": "run", "arguments": {"command": command}} for command in commands or ("one", "two")]
    return {"conversation": "c", "calls": calls, **more}


async def propose(ask, place, *commands, **more):
    return await ask.post("/plans", body(*commands, **more), key=place.scouts, headers=NOW)


def approve(place, *left_out):
    plan = Plan.objects.get()
    said = {"left_out": left_out, "reason": "Not now."} if left_out else {}
    return deciding.decide(plan, "approve", by=place.bob, digest=deciding.digest_of(plan), **said)


def finish(at, exit_code):
    pass_ = gate.start(Plan.objects.get().in_order()[at].pk)
    gate.finish(pass_, status="succeeded", result={**RESULT, "exit_code": exit_code})


async def test_it_waits_as_one_and_says_where_to_wait_for_it(ask, place):
    answer = await propose(ask, place, title="Release", reason="why")
    assert answer.status_code == 202
    found = answer.json()
    assert answer.headers["Location"] == f"/v1/plans/{found['id']}"
    assert (found["status"], found["title"], found["joined"]) == ("pending", "Release", False)
    assert [(item["plan_id"], item["plan_place"], item["status"]) for item in found["items"]] == [
        (found["id"], 1, "pending"), (found["id"], 2, "pending"),
    ]  # fmt: skip
    assert (await ask.get(f"/plans/{found['id']}", key=place.scouts)).json() == found


async def test_the_same_again_joins_it(ask, place):
    first, again = (await propose(ask, place)).json(), (await propose(ask, place)).json()
    assert (again["id"], again["joined"]) == (first["id"], True)


async def test_an_idempotency_key_proposes_once(ask, place):
    headers = {**NOW, "Idempotency-Key": "k"}
    answers = [await ask.post("/plans", body(), key=place.scouts, headers=headers) for _ in range(2)]
    assert len({answer.json()["id"] for answer in answers}) == 1
    other = await ask.post("/plans", body("else"), key=place.scouts, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")


async def test_a_wait_ends_with_the_end_of_all_of_it(ask, place):
    plan_id = (await propose(ask, place, "one", "two", "three")).json()["id"]
    wait = asyncio.create_task(ask.get(f"/plans/{plan_id}", key=place.scouts, wait=50))
    await asyncio.sleep(0.2)
    await db.write(approve, place)
    await db.write(finish, 0, 0)
    assert not wait.done()
    await db.write(finish, 1, 3)
    found = (await asyncio.wait_for(wait, 20)).json()
    assert [item["status"] for item in found["items"]] == ["succeeded", "succeeded", "cancelled"]
    assert (found["status"], found["stopped_by"]) == ("failed", found["items"][1]["id"])
    assert "ended with exit code 3. This was not run." in found["items"][2]["outcome"]["text"]
    assert "2. run" in found["text"]
    await until(lambda: not Action.objects.filter(delivered_at=None).exists())


async def test_its_actions_are_listed_by_it(ask, place):
    plan_id = (await propose(ask, place)).json()["id"]
    await ask.post("/tools/run", {"conversation": "c", "arguments": {"command": "x"}}, key=place.scouts, headers=NOW)
    found = (await ask.get("/actions", key=place.scouts, plan=plan_id)).json()["items"]
    assert [item["plan_place"] for item in found] == [2, 1]


async def test_a_workspace_key_that_may_decides_for_the_digest_it_saw(ask, place):
    await db.write(Workspace.objects.update, key_decisions=True)
    found = (await propose(ask, place)).json()
    key = await db.write(place.workspace_key, place.bob, permissions.APPROVALS_REVIEW)
    address = f"/plans/{found['id']}/decision"
    wrong = await ask.post(address, {"verdict": "approve", "digest": "0" * 64}, key=key)
    assert (wrong.status_code, wrong.json()["code"]) == (409, "wrong_digest")
    said = {"digest": found["digest"], "left_out": [found["items"][0]["id"]], "reason": "Not that"}
    answer = await ask.post(address, {"verdict": "approve", **said}, key=key)
    assert answer.status_code == 200
    assert [item["outcome"] and item["outcome"]["reason"] for item in answer.json()["items"]][0] == "Not that"
    late = await ask.post(address, {"verdict": "deny", "digest": found["digest"], "reason": "x"}, key=key)
    assert (late.status_code, late.json()["code"]) == (409, "already_decided")
    item = f"/actions/{found['items'][1]['id']}/decision"
    alone = await ask.post(item, {"verdict": "deny", "digest": found["items"][1]["digest"], "reason": "x"}, key=key)
    assert (alone.status_code, alone.json()["code"]) == (409, "conflict")


async def test_no_agent_decides(ask, place):
    found = (await propose(ask, place)).json()
    sent = {"verdict": "approve", "digest": found["digest"]}
    for key in (place.scouts, place.others):
        assert (await ask.post(f"/plans/{found['id']}/decision", sent, key=key)).status_code == 403
    assert await db.read(Action.objects.pending().count) == 2


async def test_whose_it_is_not_has_no_such_plan(ask, place):
    plan_id = (await propose(ask, place)).json()["id"]
    for key in (place.others, place.mallorys):
        assert (await ask.get(f"/plans/{plan_id}", key=key)).status_code == 404
    assert (await ask.get(f"/plans/{plan_id}", key=place.alices)).status_code == 200
    assert (await ask.post("/plans", body(), key=place.alices)).status_code == 403
    assert (await ask.post("/plans", body(), key=None)).status_code == 401
    assert (await ask("PUT", f"/plans/{plan_id}", key=place.scouts)).status_code == 405
    assert (await ask.get("/plans", key=place.scouts)).status_code == 405


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (body() | {"calls": []}, "calls"),
        (body(*map(str, range(21))), "calls"),
        (body() | {"conversation": ""}, "conversation"),
        (body() | {"title": "a\nb"}, "title"),
        (body() | {"more": 1}, "more"),
        (body() | {"calls": [{"tool": "run"}]}, "calls.0.arguments"),
        (body("ok", "  "), "calls.1.arguments.command"),
        (body() | {"calls": [{"tool": "run", "arguments": {"command": "x", "odd": 1}}]}, "calls.0.arguments.odd"),
        (body() | {"calls": [{"tool": "read", "arguments": {"path": "x"}}]}, "calls.0.tool"),
        (
            body() | {"calls": [{"tool": "write", "arguments": {"path": p, "content": "x"}} for p in ("a", "./a")]},
            "calls.1.arguments.path",
        ),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_waits(ask, place, sent, field):
    answer = await ask.post("/plans", sent, key=place.scouts, headers=NOW)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert not await db.read(Action.objects.exists)


async def test_a_tool_that_there_is_not_is_named_with_its_item(ask, place):
    sent = body() | {"calls": [{"tool": "run", "arguments": {"command": "x"}}, {"tool": "dance", "arguments": {}}]}
    answer = await ask.post("/plans", sent, key=place.scouts)
    assert (answer.status_code, answer.json()["item"]) == (404, 2)


async def test_what_was_denied_a_moment_ago_refuses_the_plan_naming_the_item(ask, place):
    await propose(ask, place, "rm -rf /", "ls")
    await db.write(lambda: approve(place, Plan.objects.get().in_order()[0].pk))
    answer = await propose(ask, place, "date", "rm -rf /")
    found = answer.json()
    assert (answer.status_code, found["code"], found["item"]) == (403, "denied", 2)
    assert "Not now" in found["reason"]
    assert await db.read(Plan.objects.count) == 1


async def test_twenty_items_are_one_open_proposal_and_the_minute_counts_each(ask, place):
    for n in range(3):
        assert (await propose(ask, place, *(f"{n} {m}" for m in range(20)))).status_code == 202
    answer = await propose(ask, place, "one more")
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many")
    assert int(answer.headers["Retry-After"]) > 0
