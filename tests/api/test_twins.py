"""Identical calls with Idempotency-Keys of their own: one card, one run, and an answer for each who waits."""

import asyncio

import pytest

from approvals import decisions
from approvals.models import Action, Execution
from console.workspaces import db
from sandboxes import dispatch, ends
from sandboxes.models import Sandbox

from .conftest import until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("hub")]
RESULT = {
    "exit_code": 3, "status": "exited", "timed_out": False, "truncated": False, "duration_ms": 7,
    "stdout_bytes": 0, "stderr_bytes": 0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_conversation(settings, place):
    settings.GATED_CALL_S = 60
    Sandbox.objects.filter(pk=place.sandbox.pk).update(conversation="c")


async def by_command(ask, place, key):
    address = f"/sandboxes/{place.sandbox.pk}/commands"
    return await ask.post(address, {"command": "echo hi"}, key=place.scouts, headers={"Idempotency-Key": key})


async def by_tool(ask, place, key):
    body = {"conversation": "c", "arguments": {"command": "echo hi"}}
    headers = {"Idempotency-Key": key, "Prefer": "wait=55"}
    return await ask.post("/tools/run", body, key=place.scouts, headers=headers)


def decide(place, verdict) -> Action:
    action = Action.objects.pending().cards().select_related("agent").get()
    return decisions.decide(action, verdict, by=place.bob, digest=action.digest, reason="Not now.")


def approve_and_run(place) -> None:
    pass_ = dispatch.begin(decide(place, "approve").pk)
    ends.succeed(pass_, RESULT)


async def three_at_once(ask, place, door, then):
    calls = [asyncio.create_task(door(ask, place, f"k{number}")) for number in range(3)]
    await until(lambda: Action.objects.pending().count() == 3)
    await db.write(then)
    return await asyncio.gather(*calls)


async def test_approved_one_runs_and_every_caller_gets_its_outcome(ask, place):
    answers = await three_at_once(ask, place, by_command, lambda: approve_and_run(place))
    assert [(answer.status_code, answer.json()["exit_code"]) for answer in answers] == [(200, 3)] * 3
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert await db.read(Execution.objects.count) == 1
    await until(lambda: not Action.objects.filter(asked=True, delivered_at=None).exists())  # noted once it is written


async def test_tools_answer_with_the_one_that_ran_and_say_that_it_was_joined(ask, place):
    answers = [answer.json() for answer in await three_at_once(ask, place, by_tool, lambda: approve_and_run(place))]
    assert {answer["status"] for answer in answers} == {"succeeded"}
    assert len({answer["id"] for answer in answers}) == 1
    assert sorted(answer["joined"] for answer in answers) == [False, True, True]


async def test_denied_every_caller_hears_the_reason(ask, place):
    answers = await three_at_once(ask, place, by_command, lambda: decide(place, "deny"))
    assert [(answer.status_code, answer.json()["reason"]) for answer in answers] == [(403, "Not now.")] * 3
    assert len({answer.json()["action_id"] for answer in answers}) == 3


async def test_the_same_key_later_is_still_its_own_action_which_names_the_one_that_ran(ask, place):
    await three_at_once(ask, place, by_tool, lambda: approve_and_run(place))
    merged = await db.read(lambda: Action.objects.filter(status="superseded").first().pk)
    found = (await ask.get(f"/actions/{merged}", key=place.scouts)).json()
    ran = await db.read(lambda: Action.objects.get(status="succeeded").pk)
    assert found["id"] == merged
    assert (found["outcome"]["error"]["code"], found["outcome"]["error"]["next_action"]) == ("merged", ran)
    assert ran in found["outcome"]["text"]
