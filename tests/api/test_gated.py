"""Commands and files by an agent's key: they wait for a person, and are told what became of them, once."""

import asyncio
import threading

import pytest

from approvals import decisions, digest, gate, payloads, room
from approvals.models import Action, Execution
from console.workspaces import agents, db, members, permissions
from console.workspaces.models import Agent
from sandboxes import dispatch
from sandboxes.models import Sandbox

from .conftest import caller_of, leaving, make_sandbox, the_action, until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("hub")]


@pytest.fixture(autouse=True)
def short_calls(settings):
    settings.GATED_CALL_S = 0.4


async def run(ask, place, command="echo hi", *, key=None, **more):
    body = {"command": command, **more.pop("body", {})}
    return await ask.post(f"/sandboxes/{place.sandbox.pk}/commands", body, key=key or place.scouts, **more)


async def while_it_waits(ask, place, then, **more):
    """The answer to a call during which `then(action)` happened."""
    call = asyncio.create_task(run(ask, place, **more))
    action = await until(Action.objects.filter(status="pending").select_related("agent").first)
    await db.write(then, action)
    return await call


def deny(place, reason="Not this one."):
    return lambda action: decisions.decide(action, "deny", by=place.bob, digest=action.digest, reason=reason)


def approve(place):
    return lambda action: decisions.decide(action, "approve", by=place.bob, digest=action.digest)


async def test_undecided_in_time_is_pending_and_nothing_has_run(ask, place):
    answer = await run(ask, place, body={"reason": "to look around"})
    assert (answer.status_code, answer.json()["code"]) == (409, "pending_approval")
    action = await the_action(pk=answer.json()["action_id"])
    assert (action.status, action.agent_id, action.reason) == ("pending", place.scout.pk, "to look around")
    assert action.arguments == {"command": "echo hi", "cwd": "/work", "env": {}, "stdin": "", "timeout_s": 120}
    assert answer.json()["joined"] is False
    assert not await db.read(Execution.objects.exists)


async def test_every_argument_reaches_the_action(ask, place):
    sent = {"argv": ["ls", "-l"], "timeout": 5, "cwd": "/tmp", "env": {"A": "1"}, "stdin": "in"}
    answer = await ask.post(f"/sandboxes/{place.sandbox.pk}/commands", sent, key=place.scouts)
    action = await the_action(pk=answer.json()["action_id"])
    assert action.arguments == {"argv": ["ls", "-l"], "timeout_s": 5, "cwd": "/tmp", "env": {"A": "1"}, "stdin": "in"}


async def test_a_denial_comes_at_once_with_its_reason(ask, place, settings):
    settings.GATED_CALL_S = 20
    answer = await while_it_waits(ask, place, deny(place, "It would delete the report."))
    assert (answer.status_code, answer.json()["code"]) == (403, "denied")
    assert answer.json()["reason"] == "It would delete the report."
    assert answer.json()["decided_by"] == "reviewer"
    assert "not run" in answer.json()["detail"]
    assert "exit_code" not in answer.json()


async def test_approved_and_not_started_is_still_pending_for_the_client(ask, place):
    """No engine here: it stays approved, and the client may go on waiting."""
    answer = await while_it_waits(ask, place, approve(place))
    assert (answer.status_code, answer.json()["code"], answer.json()["status"]) == (409, "pending_approval", "approved")


async def test_the_same_call_again_joins_and_gets_the_one_outcome(ask, place, settings):
    first = await run(ask, place)
    again = await run(ask, place)
    assert again.json()["action_id"] == first.json()["action_id"]
    assert again.json()["joined"] is True
    settings.GATED_CALL_S = 20
    last = await while_it_waits(ask, place, deny(place))
    assert (last.json()["action_id"], last.json()["joined"]) == (first.json()["action_id"], True)
    assert await db.read(Action.objects.count) == 1


async def test_an_outcome_that_was_given_is_not_given_twice(ask, place):
    given = await while_it_waits(ask, place, deny(place))
    anew = await run(ask, place)
    assert anew.json()["action_id"] != given.json()["action_id"]
    assert anew.json()["joined"] is False


async def test_an_outcome_that_nobody_waited_for_is_given_to_the_next_call(ask, place):
    pending = await run(ask, place)
    await db.write(deny(place), await the_action(pk=pending.json()["action_id"]))
    late = await run(ask, place)
    assert (late.status_code, late.json()["joined"]) == (403, True)
    assert late.json()["action_id"] == pending.json()["action_id"]


async def test_a_client_that_leaves_takes_nothing_with_it(ask, place, settings):
    settings.GATED_CALL_S = 20
    leave = asyncio.Event()
    path = f"/sandboxes/{place.sandbox.pk}/commands"
    call = asyncio.create_task(leaving(path, {"command": "echo hi"}, key=place.scouts, leave=leave))
    await until(Action.objects.exists)
    leave.set()
    assert await call == []
    action = await the_action()
    assert (action.status, action.delivered_at) == ("pending", None)
    await db.write(deny(place), action)
    assert (await run(ask, place)).json()["action_id"] == action.pk


async def test_what_a_call_began_is_followed_though_its_client_left_before_it_heard(place, monkeypatch):
    leave, committed, has_left, submit = asyncio.Event(), threading.Event(), threading.Event(), dispatch.submit

    def slowly(proposal):
        answer = submit(proposal)
        committed.set()
        has_left.wait(10)
        return answer

    monkeypatch.setattr(dispatch, "submit", slowly)
    path = f"/sandboxes/{place.sandbox.pk}/commands"
    call = asyncio.create_task(leaving(path, {"command": "echo hi"}, key=place.alices, leave=leave))
    assert await asyncio.to_thread(committed.wait, 10)
    leave.set()
    assert await call == []
    assert (await the_action()).status == "running"
    has_left.set()
    await until(Action.objects.filter(status="failed").exists)  # there is no runtime here


async def test_a_reviewer_who_reads_an_outcome_does_not_take_it_from_the_agent(ask, place):
    pending = (await run(ask, place)).json()["action_id"]
    await db.write(deny(place), await the_action(pk=pending))
    await ask.get(f"/actions/{pending}", key=place.alices)
    assert (await run(ask, place)).json()["action_id"] == pending


async def test_the_other_agent_never_joins(ask, place):
    theirs = await db.write(lambda: Sandbox.objects.filter(pk=place.sandbox.pk).update(agent=place.other))
    assert theirs
    first = await run(ask, place, key=place.others)
    await db.write(lambda: Sandbox.objects.filter(pk=place.sandbox.pk).update(agent=place.scout))
    mine = await run(ask, place)
    assert mine.json()["action_id"] != first.json()["action_id"]


async def test_each_end_has_its_code(ask, place, settings):
    settings.GATED_CALL_S = 20
    scout = await caller_of(place.scouts)

    def expire(action):
        Action.objects.filter(pk=action.pk).update(expires_at=action.created_at)
        gate.expire()

    def started_then(status, **error):
        def end(action):
            decisions.decide(action, "approve", by=place.bob, digest=action.digest)
            gate.finish(gate.start(action.pk), status=status, error=error or None)

        return end

    ends = [
        (lambda action: gate.cancel(action, by=scout), 409, "cancelled"),
        (expire, 409, "expired"),
        (lambda action: gate.supersede(action, "x changed.", code="stale_edit"), 409, "stale_edit"),
        (started_then("failed", code="sandbox_gone", detail="It ended (oom)."), 409, "sandbox_gone"),
        (started_then("failed", code="no_space", detail="Full."), 409, "no_space"),
        (started_then("failed", code="halted", detail="Stopped."), 423, "halted"),
        (started_then("unknown", code="lost", detail="Lost."), 409, "outcome_unknown"),
    ]
    for number, (end, status, code) in enumerate(ends):
        answer = await while_it_waits(ask, place, end, command=f"echo {number}")
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert answer.json()["action_id"].startswith("act_")
        assert answer.json()["detail"]


async def test_a_new_idempotency_key_proposes_anew_and_the_same_one_does_not(ask, place):
    first = await run(ask, place, headers={"Idempotency-Key": "a"})
    same = await run(ask, place, headers={"Idempotency-Key": "a"})
    new = await run(ask, place, headers={"Idempotency-Key": "b"})
    other_body = await run(ask, place, "echo other", headers={"Idempotency-Key": "a"})
    assert first.json()["action_id"] == same.json()["action_id"] != new.json()["action_id"]
    assert (other_body.status_code, other_body.json()["code"]) == (409, "idempotency_mismatch")


async def test_an_idempotency_key_is_for_one_address(ask, place):
    """The same word for another sandbox is another call, and none that is refused."""
    other = await db.write(make_sandbox, place.scout)
    first = await run(ask, place, headers={"Idempotency-Key": "a"})
    body = {"command": "echo other"}
    second = await ask.post(f"/sandboxes/{other.pk}/commands", body, key=place.scouts, headers={"Idempotency-Key": "a"})
    assert second.json()["code"] == "pending_approval"
    assert second.json()["action_id"] != first.json()["action_id"]


async def test_the_same_call_is_answered_after_its_sandbox_has_ended(ask, place):
    first = await run(ask, place, headers={"Idempotency-Key": "a"})
    await db.write(deny(place, "No."), await the_action(pk=first.json()["action_id"]))
    await db.write(lambda: Sandbox.objects.filter(pk=place.sandbox.pk).update(status="ended", ended_reason="idle"))
    again = await run(ask, place, headers={"Idempotency-Key": "a"})
    assert (again.status_code, again.json()["reason"]) == (403, "No.")
    assert (await run(ask, place, headers={"Idempotency-Key": "b"})).json()["code"] == "sandbox_gone"


async def test_the_same_call_at_once_is_one_action(ask, place):
    answers = await asyncio.gather(*[run(ask, place, headers={"Idempotency-Key": "a"}) for _ in range(5)])
    assert len({answer.json()["action_id"] for answer in answers}) == 1
    assert await db.read(Action.objects.count) == 1


async def test_what_stops_a_proposal_says_so_at_once(ask, place):
    await db.write(agents.change_tools, place.scout, by=None, sandbox_enabled=False)
    off = await run(ask, place)
    assert (off.status_code, off.json()["code"]) == (403, "sandbox_not_enabled")
    scout = await db.read(Agent.objects.get, pk=place.scout.pk)
    await db.write(agents.change_tools, scout, by=None, sandbox_enabled=True)
    for member in (place.alice, place.bob):
        await db.write(members.take, member, permissions.APPROVALS_REVIEW, by=place.alice)
    nobody = await run(ask, place)
    assert (nobody.status_code, nobody.json()["code"]) == (409, "no_reviewer")
    await db.write(lambda: Sandbox.objects.filter(pk=place.sandbox.pk).update(status="ended", ended_reason="idle"))
    gone = await run(ask, place)
    assert (gone.status_code, gone.json()["code"], gone.json()["ended_reason"]) == (409, "sandbox_gone", "idle")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "command"),
        ({"command": "a", "argv": ["a"]}, "command"),
        ({"command": "   "}, "command"),
        ({"command": "a\0b"}, "command"),
        ({"argv": []}, "argv"),
        ({"command": "a", "timeout": 0}, "timeout"),
        ({"command": "a", "timeout": 1e9}, "timeout"),
        ({"command": "a", "background": "yes"}, "background"),
        ({"command": "a", "env": {"A B": "1"}}, "env"),
        ({"command": "x" * ((1 << 20) + 1)}, "command"),
    ],
)
async def test_bad_commands_name_the_field(ask, place, body, field):
    answer = await ask.post(f"/sandboxes/{place.sandbox.pk}/commands", body, key=place.scouts)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert not await db.read(Action.objects.exists)


async def test_a_variable_that_steers_what_runs_is_not_for_agents(ask, place):
    answer = await run(ask, place, body={"env": {"LD_PRELOAD": "/work/x.so"}})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed_by_settings")
    assert answer.json()["field"] == "env.LD_PRELOAD"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"path": "x"}, "content"),
        ({"path": "", "content": ""}, "path"),
        ({"path": "x", "content": "not base64!", "encoding": "base64"}, "content"),
        ({"path": "x", "content": "x", "encoding": "latin-1"}, "encoding"),
        ({"path": "x", "content": "x", "mode": 0o1777}, "mode"),
        ({"path": "x", "content": "x", "protected": "yes"}, "protected"),
    ],
)
async def test_bad_files_name_the_field(ask, place, body, field):
    answer = await ask.post(f"/sandboxes/{place.sandbox.pk}/files", body, key=place.scouts)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_who_decides_by_key_sees_the_sandboxs_variables_too(ask, place):
    await db.write(Sandbox.objects.filter(pk=place.sandbox.pk).update, env={"MONTH": "3", "A": "of the sandbox"})
    answer = await run(ask, place, body={"env": {"A": "its own"}})
    action = (await ask.get(f"/actions/{answer.json()['action_id']}", key=place.scouts)).json()
    assert action["environment"] == {"MONTH": "3", "A": "its own"}


async def test_what_nobody_was_asked_about_is_not_to_be_sent_again(ask, place, monkeypatch):
    """Only what waited for a person is joined: the same call again would run a second time."""

    async def runs_on(self, pass_, **_):
        await asyncio.sleep(2)

    monkeypatch.setattr(dispatch.Dispatcher, "execute", runs_on)
    await db.write(agents.change_tools, place.scout, by=None, command_mode="never")
    answer = await run(ask, place)
    assert (answer.status_code, answer.json()["code"]) == (409, "still_running")
    assert "Do not make this call again" in answer.json()["detail"]
    assert answer.json()["action_id"] in answer.json()["detail"]


async def test_reading_wants_a_path(ask, place):
    answer = await ask.get(f"/sandboxes/{place.sandbox.pk}/files", key=place.scouts)
    assert (answer.status_code, answer.json()["field"]) == (422, "path")


async def test_a_gated_call_is_a_wait_of_its_key_and_one_too_many_proposes_nothing(ask, place, settings):
    settings.GATED_CALL_S, settings.WAITS_PER_KEY = 20, 3
    calls = [asyncio.create_task(run(ask, place, f"echo {n}")) for n in range(3)]
    await until(lambda: Action.objects.count() == 3)
    refused = await run(ask, place, "echo more")
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    assert int(refused.headers["retry-after"]) > 0
    assert await db.read(Action.objects.count) == 3
    for action in await db.read(lambda: list(Action.objects.select_related("agent"))):
        await db.write(deny(place), action)
    assert {call.status_code for call in await asyncio.gather(*calls)} == {403}
    settings.GATED_CALL_S = 0.2
    assert (await run(ask, place, "echo more")).json()["code"] == "pending_approval"


async def test_a_gated_call_whose_client_left_is_no_wait_any_more(ask, place, settings):
    settings.GATED_CALL_S, settings.WAITS_PER_KEY = 20, 1
    leave = asyncio.Event()
    path = f"/sandboxes/{place.sandbox.pk}/commands"
    call = asyncio.create_task(leaving(path, {"command": "echo hi"}, key=place.scouts, leave=leave))
    await until(Action.objects.exists)
    leave.set()
    await call
    settings.GATED_CALL_S = 0.2
    assert (await run(ask, place)).json()["code"] == "pending_approval"


async def test_a_workspace_keys_command_waits_for_nobody_and_is_no_wait(ask, place, settings):
    settings.WAITS_PER_KEY = 0
    assert (await run(ask, place)).json()["code"] == "too_many"
    answer = await run(ask, place, key=place.alices)
    assert answer.json()["code"] != "too_many"
    assert (await the_action()).agent_id is None


async def test_a_call_refused_for_want_of_room_leaves_no_content(ask, place, monkeypatch):
    monkeypatch.setattr(room, "OPEN_PROPOSALS", 1)
    kept, refused = (f"# {name} {place.sandbox.pk}\n" + "x" * 5000 for name in ("kept", "refused"))
    assert (await run(ask, place, kept)).json()["code"] == "pending_approval"
    assert (await run(ask, place, refused)).json()["code"] == "too_many"
    paths = [payloads.path(digest.reference(text.encode())) for text in (kept, refused)]
    assert [path.exists() for path in paths] == [True, False]
    assert await db.read((await the_action()).payload_uses.count) == 1
