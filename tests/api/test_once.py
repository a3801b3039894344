"""`Idempotency-Key`: one call however often it is sent, and never a secret twice."""

import asyncio
import json
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals.models import Action, Decision
from console.api import agents as doors
from console.api.urls import api
from console.workspaces import db, permissions
from console.workspaces.models import Agent, KeptAnswer, Key, User, Workspace

from .conftest import leaving

pytestmark = pytest.mark.anyio
ONCE = {"Idempotency-Key": "a"}


def test_every_post_and_every_action_takes_one_and_nothing_else_does():
    for methods in api.document["paths"].values():
        for method, operation in methods.items():
            named = [parameter["name"] for parameter in operation.get("parameters", ())]
            takes = method == "post" or operation["x-gate"] == "approval"
            assert ("Idempotency-Key" in named) is takes, operation["operationId"]
            if takes:
                assert "`idempotency_mismatch`" in operation["responses"][409]["description"]


async def test_the_same_call_acts_once_and_is_answered_the_same(ask, place):
    first = await ask.post("/agents", {"name": "Clerk"}, key=place.alices, headers=ONCE)
    again = await ask.post("/agents", {"name": "Clerk"}, key=place.alices, headers=ONCE)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert await db.read(Agent.objects.filter(name="Clerk").count) == 1


async def test_another_body_under_it_is_refused_and_does_nothing(ask, place):
    await ask.post("/agents", {"name": "Clerk"}, key=place.alices, headers=ONCE)
    other = await ask.post("/agents", {"name": "Baker"}, key=place.alices, headers=ONCE)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")
    assert not await db.read(Agent.objects.filter(name="Baker").exists)


async def test_another_address_or_key_is_another_call(ask, place):
    made = await ask.post("/agents", {"name": "Clerk"}, key=place.alices, headers=ONCE)
    key = await ask.post("/keys", {"name": "Clerk"}, key=place.alices, headers=ONCE)
    theirs = await ask.post("/agents", {"name": "Clerk"}, key=place.mallorys, headers=ONCE)
    assert (made.status_code, key.status_code, theirs.status_code) == (201, 201, 201)
    assert made.json()["id"] != theirs.json()["id"]


async def test_without_one_and_with_an_empty_one_each_call_acts(ask, place):
    for headers in ({}, {"Idempotency-Key": ""}):
        made = [await ask.post("/keys", {"name": "k"}, key=place.alices, headers=headers) for _ in range(2)]
        assert made[0].json()["id"] != made[1].json()["id"]
    assert not await db.read(KeptAnswer.objects.exists)


async def test_a_secret_is_given_once_and_kept_nowhere(ask, place):
    first = (await ask.post("/keys", {"name": "k"}, key=place.alices, headers=ONCE)).json()
    again = (await ask.post("/keys", {"name": "k"}, key=place.alices, headers=ONCE)).json()
    assert first["secret"].startswith("sg_")
    assert again == {**first, "secret": None}
    assert await db.read(Key.objects.filter(name="k").count) == 1
    added = (await ask.post("/members", {"email": "eve@example.test"}, key=place.alices, headers=ONCE)).json()
    repeated = (await ask.post("/members", {"email": "eve@example.test"}, key=place.alices, headers=ONCE)).json()
    assert len(added["first_password"]) == 20
    assert repeated == {**added, "first_password": None}
    assert await db.read(User.objects.filter(email="eve@example.test").count) == 1
    kept = json.dumps(await db.read(lambda: list(KeptAnswer.objects.values_list("answer", flat=True))))
    assert first["secret"] not in kept
    assert added["first_password"] not in kept


async def test_permissions_are_looked_at_first(ask, place):
    key = await db.write(place.workspace_key, place.alice, permissions.AGENTS_MANAGE)
    assert (await ask.post("/agents", {"name": "Clerk"}, key=key, headers=ONCE)).status_code == 201
    await db.write(lambda: place.alice.permissions.filter(name=permissions.AGENTS_MANAGE).delete())
    again = await ask.post("/agents", {"name": "Clerk"}, key=key, headers=ONCE)
    assert (again.status_code, again.json()["code"]) == (403, "permission_denied")


async def test_a_refusal_did_nothing_so_the_same_call_may_try_again(ask, place, hub):
    taken = await ask.post("/agents", {"name": "Scout"}, key=place.alices, headers=ONCE)
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")
    await db.write(lambda: Agent.objects.filter(pk=place.scout.pk).update(name="Gone"))
    assert (await ask.post("/agents", {"name": "Scout"}, key=place.alices, headers=ONCE)).status_code == 201
    for _ in range(2):
        answer = await ask.post("/sandboxes", {}, key=place.scouts, headers=ONCE)
        assert answer.json()["code"] == "no_runtime"


async def test_two_at_once_are_one_act_and_one_answer(ask, place):
    calls = [ask.post("/keys", {"name": "k"}, key=place.alices, headers=ONCE) for _ in range(6)]
    answers = [answer.json() for answer in await asyncio.gather(*calls)]
    assert len({answer["id"] for answer in answers}) == 1
    assert len([answer for answer in answers if answer["secret"]]) == 1
    assert await db.read(Key.objects.filter(name="k").count) == 1


async def test_two_at_once_with_other_bodies_are_one_act_and_one_refusal(ask, place):
    calls = [ask.post("/agents", {"name": name}, key=place.alices, headers=ONCE) for name in ("Clerk", "Baker")]
    assert sorted(answer.status_code for answer in await asyncio.gather(*calls)) == [201, 409]
    assert await db.read(Agent.objects.filter(name__in=["Clerk", "Baker"]).count) == 1


async def test_a_client_that_left_finds_the_answer(ask, place, monkeypatch):
    """It leaves while the act waits for its turn to write; what it asked for is done, and there when it comes again."""
    entered, go_on, make = asyncio.Event(), asyncio.Event(), db.write

    async def slow(function, *values, **named):
        if function is doors._make:
            entered.set()
            await go_on.wait()
        return await make(function, *values, **named)

    monkeypatch.setattr(doors.db, "write", slow)
    body, leave = {"name": "Clerk"}, asyncio.Event()
    left = asyncio.create_task(leaving("/agents", body, key=place.alices, leave=leave, headers=ONCE))
    await entered.wait()
    leave.set()
    assert await left == []
    again = asyncio.create_task(ask.post("/agents", body, key=place.alices, headers=ONCE))
    await asyncio.sleep(0.1)
    assert not again.done()
    go_on.set()
    assert (await again).status_code == 201
    assert await db.read(Agent.objects.filter(name="Clerk").count) == 1


async def test_a_call_that_failed_on_the_way_is_not_done_again(ask, place, monkeypatch):
    def half(who, body):
        make(who, body)
        raise RuntimeError("after the commit")

    make = doors._make
    monkeypatch.setattr(doors, "_make", half)
    assert (await ask.post("/agents", {"name": "Clerk"}, key=place.alices, headers=ONCE)).status_code == 500
    again = await ask.post("/agents", {"name": "Clerk"}, key=place.alices, headers=ONCE)
    assert (again.status_code, again.json()["code"]) == (409, "outcome_unknown")


async def test_deciding_and_cancelling_are_answered_again(ask, place):
    await db.write(lambda: Workspace.objects.update(key_decisions=True))
    reviews = await db.write(place.workspace_key, place.bob, permissions.APPROVALS_REVIEW)
    fields = {"workspace": place.workspace, "agent": place.scout, "sandbox_id": place.sandbox.pk, "digest": "0" * 64}
    tomorrow = timezone.now() + timedelta(days=1)
    action = await db.write(lambda: Action.objects.create(tool="run", asked=True, expires_at=tomorrow, **fields))
    body = {"verdict": "deny", "digest": "0" * 64, "reason": "no"}
    for path, sent, key in (("decision", body, reviews), ("cancel", {}, place.scouts)):
        first = await ask.post(f"/actions/{action.pk}/{path}", sent, key=key, headers=ONCE)
        again = await ask.post(f"/actions/{action.pk}/{path}", sent, key=key, headers=ONCE)
        assert (first.status_code, again.status_code) == (200, 200), first.text
        assert first.json() == again.json()
    assert await db.read(Decision.objects.count) == 1
    assert (await ask.post(f"/actions/{action.pk}/decision", body, key=reviews)).json()["code"] == "already_decided"


async def test_too_long_a_one_is_named(ask, place):
    answer = await ask.post("/agents", {"name": "Clerk"}, key=place.alices, headers={"Idempotency-Key": "x" * 256})
    assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key")
    assert not await db.read(Agent.objects.filter(name="Clerk").exists)
