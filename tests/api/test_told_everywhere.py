"""Every end that an action can have, through every door that tells an agent of it: the same words."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import states, told
from approvals.models import Action
from console.workspaces import db
from sandboxes.models import Sandbox

from .conftest import the_action
from .test_mcp import Talk

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("hub")]
STALE = {"code": "stale_edit", "detail": "Nothing was written. /work/a has changed.", "version": "3f9c0b71d2ae"}
ENDS = {
    "denied": {"decided_by": "reviewer", "end_reason": "Use staging."},
    "denied by the gate": {"decided_by": "system", "end_reason": "The same was denied 4 min ago by Bob (act_0): No."},
    "denied by a rule": {"decided_by": "rule", "end_reason": "`rm` is never run here."},
    "expired": {"decided_by": "clock", "end_reason": "Nobody decided in time."},
    "cancelled": {"decided_by": "agent", "end_reason": "Its agent took this back before it started."},
    "superseded": {"decided_by": "system", "end_reason": STALE["detail"], "error": STALE},
    "failed": {"decided_by": "reviewer", "error": {"code": "no_space", "detail": "No space is left."}},
    "unknown": {"decided_by": "reviewer", "end_reason": "The host was lost.", "error": {"code": "lost"}},
}


@pytest.fixture(autouse=True)
def short_calls(settings, place):
    settings.GATED_CALL_S = 0.2
    Sandbox.objects.filter(pk=place.sandbox.pk).update(conversation="c")


def ended(name: str, fields) -> Action:
    """The one action, as it is after that end."""
    status, now = name.split()[0], timezone.now()
    ran = {"started_at": now} if status in ("failed", "unknown") else {}
    Action.objects.update(status=status, ended_at=now, delivered_at=None, **ran, **fields)
    return Action.objects.get()


async def by_command(ask, place) -> str:
    sent = {"command": "echo hi"}
    return (await ask.post(f"/sandboxes/{place.sandbox.pk}/commands", sent, key=place.scouts)).json()["detail"]


async def by_tool(ask, place) -> str:
    body = {"conversation": "c", "arguments": {"command": "echo hi"}}
    answer = await ask.post("/tools/run", body, key=place.scouts, headers={"Prefer": "wait=0"})
    return (answer.json()["outcome"] or {"text": ""})["text"]


async def by_action(ask, place) -> str:
    action = await the_action()
    return (await ask.get(f"/actions/{action.pk}", key=place.scouts)).json()["outcome"]["text"]


async def by_list(ask, place) -> str:
    return (await ask.get("/actions", key=place.scouts)).json()["items"][0]["outcome"]["text"]


async def by_mcp(ask, place) -> str:
    talk, action = Talk(), await the_action()
    call = {"name": "await_action", "arguments": {"action_id": action.pk, "wait_s": 0}}
    body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}
    answer = await talk.post(body, key=place.scouts, session=await talk.open(place.scouts))
    lines = [line.removeprefix("data:") for line in answer.text.splitlines() if line.startswith("data:")]
    result = next(found for found in map(json.loads, lines or [answer.text]) if "result" in found)["result"]
    assert result["isError"] is True
    return result["content"][0]["text"]


DOORS = {"command": by_command, "tool": by_tool, "action": by_action, "list": by_list, "mcp": by_mcp}


def test_every_end_but_success_is_here():
    assert {name.split()[0] for name in ENDS} == set(states.ENDED) - {"succeeded"}


@pytest.mark.parametrize("door", DOORS)
async def test_every_end_is_told_in_the_same_words(ask, place, door):
    first = by_tool if door == "tool" else by_command
    await first(ask, place)
    for name, fields in ENDS.items():
        action = await db.write(ended, name, fields)
        expected = told.ended(action)
        said = await DOORS[door](ask, place)
        if door == "command" and fields.get("error", {}).get("detail"):
            expected = fields["error"]["detail"]  # the rest is in fields of the answer
        assert said == expected, (door, name)
        assert await db.read(Action.objects.count) == 1, "it proposed anew instead of telling"


@pytest.mark.parametrize("left_min", [10, -1])
async def test_a_denied_call_is_told_when_it_may_come_again(ask, place, left_min):
    await by_command(ask, place)
    retry_at = timezone.now() + timedelta(minutes=left_min)
    await db.write(ended, "denied", {**ENDS["denied"], "retry_at": retry_at})
    answer = await ask.post(f"/sandboxes/{place.sandbox.pk}/commands", {"command": "echo hi"}, key=place.scouts)
    body = answer.json()
    assert (answer.status_code, body["human_decided"], body["reason"]) == (403, True, "Use staging.")
    assert 9 * 60 < body["retry_after"] <= 600 if left_min > 0 else "retry_after" not in body
