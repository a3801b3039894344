"""/v1/tools: an agent's tools as pinned, and calls that are actions. There is no engine here: what waits, waits."""

import asyncio

import pytest

from approvals import decisions, gate
from approvals.models import Action
from console.api.tools import wait_of
from console.workspaces import agents, db, keys
from sandboxes import outputs, toolsets
from sandboxes.models import Command, Sandbox

from .conftest import make_sandbox, the_action, until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("hub")]
BAD = {
    "read": {},
    "edit": {"path": "a", "version": "1", "edits": []},
    "write": {"path": "a"},
    "glob": {"pattern": ""},
    "grep": {"pattern": "x", "mode": "bytes"},
    "run": {"command": "ls", "timeout_s": 0},
    "follow": {"id": 5},
    "stop": {"id": "cmd_1", "signal": "STOP"},
    "processes": {"all": True},
    "publish": {"path": None},
}


@pytest.fixture
def talk(place):
    """Scout's sandbox is that of its conversation `c`."""
    Sandbox.objects.filter(pk=place.sandbox.pk).update(conversation="c")
    return place


async def call(ask, tool, arguments, *, key, wait=0, headers=None, **more):
    body = {"conversation": "c", "arguments": arguments, **more}
    return await ask.post(f"/tools/{tool}", body, key=key, headers={"Prefer": f"wait={wait}", **(headers or {})})


async def change(place, **settings):
    await db.write(lambda: agents.change_tools(place.scout, by=None, **settings))


@pytest.mark.parametrize(
    ("format", "of"),
    [
        ("openai", lambda tool: (tool["type"] == "function") and tool["function"]["parameters"]),
        ("anthropic", lambda tool: tool["input_schema"]),
        ("mcp", lambda tool: tool["inputSchema"]),
    ],
)
async def test_tools_come_in_the_shape_that_was_asked_for(ask, talk, format, of):
    answer = (await ask.get("/tools", key=talk.scouts, format=format)).json()
    assert (answer["toolset"], answer["format"], len(answer["tools"])) == (2, format, 10)
    for tool in answer["tools"]:
        assert of(tool)["additionalProperties"] is False
    assert (await ask.get("/tools", key=talk.scouts, format="yaml")).status_code == 422


async def test_an_agent_has_the_toolset_it_is_pinned_to_and_no_other(ask, talk):
    await change(talk, toolset=1)
    answer = (await ask.get("/tools", key=talk.scouts)).json()
    assert answer["toolset"] == 1
    assert {tool["name"] for tool in answer["tools"]} == {"list_files", "read_file", "run_command", "write_file"}
    assert (await ask.get("/tools", key=talk.others)).json()["toolset"] == 2
    other = await call(ask, "run", {"command": "true"}, key=talk.scouts)
    assert (other.status_code, other.json()["code"]) == (404, "not_found")
    assert "run_command" in other.json()["detail"]
    assert not await db.read(Action.objects.exists)


async def test_a_workspace_key_has_the_newest(ask, talk):
    assert (await ask.get("/tools", key=talk.alices)).json()["toolset"] == 2


@pytest.mark.parametrize("tool", BAD)
async def test_bad_arguments_name_the_field_and_show_a_right_call(ask, talk, tool):
    answer = await call(ask, tool, BAD[tool], key=talk.scouts)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation"), answer.text
    assert answer.json()["field"].startswith("arguments.")
    assert f"`{answer.json()['field']}`" in answer.json()["detail"]
    example = answer.json()["example"]
    listed = (await ask.get("/tools", key=talk.scouts)).json()["tools"]
    schema = next(each["inputSchema"] for each in listed if each["name"] == tool)
    assert set(schema["required"]) <= set(example) <= set(schema["properties"])
    assert not await db.read(Action.objects.exists)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "arguments.command"),
        ({"command": "a", "argv": ["b"]}, "arguments.command"),
        ({"command": " "}, "arguments.command"),
    ],
)
async def test_what_only_the_act_can_see_is_told_in_the_same_way(ask, talk, arguments, field):
    answer = await call(ask, "run", arguments, key=talk.scouts)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert answer.json()["example"]["command"]


@pytest.mark.parametrize("path", ["a/.", "/work/."])
async def test_a_path_that_names_no_file_is_told_in_the_same_way(ask, talk, path):
    answer = await call(ask, "write", {"path": path, "content": "x"}, key=talk.scouts)
    assert (answer.status_code, answer.json().get("field")) == (422, "arguments.path"), answer.text
    assert answer.json()["example"]["path"]


async def test_half_a_character_names_the_argument_that_holds_it(ask, talk):
    body = b'{"conversation": "c", "arguments": {"path": "a.txt", "content": "\\ud800"}}'
    answer = await ask("POST", "/tools/write", key=talk.scouts, content=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "arguments.content"), answer.text
    assert answer.json()["example"]["path"]


@pytest.mark.parametrize("tool", ["run", "edit", "read"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"arguments": {}}, "conversation"),
        ({"conversation": "", "arguments": {}}, "conversation"),
        ({"conversation": "c"}, "arguments"),
        ({"conversation": "c", "arguments": []}, "arguments"),
        ({"conversation": "c", "arguments": {}, "stranger": 1}, "stranger"),
        ({}, "conversation"),
        ({"conversation": "c", "arguments": "right", "parent_action": "act_other"}, "parent_action"),
    ],
)
async def test_what_is_wrong_around_the_arguments_comes_with_a_right_call_too(ask, talk, tool, body, field):
    if body.get("arguments") == "right":
        body = {**body, "arguments": toolsets.example(tool)}
    answer = await ask.post(f"/tools/{tool}", body, key=talk.scouts)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    right = answer.json()["example"]
    body = {"conversation": "c", "arguments": right} if field == "arguments" else right
    assert (await ask.post(f"/tools/{tool}", body, key=talk.scouts, headers={"Prefer": "wait=0"})).status_code != 422


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        ({"do": "replace", "from": "1kqzt"}, "`lines` is missing"),
        ({"do": "replace", "lines": ["x"]}, "`from` is missing"),
        ({"do": "insert_after", "from": "1kqzt"}, "`lines` is missing"),
        ({"do": "insert_after", "from": "1kqzt", "lines": []}, "nothing to insert"),
        ({"do": "delete", "from": "1kqzt", "lines": []}, "takes no `lines`"),
        ({"do": "append", "from": "1kqzt", "lines": ["x"]}, "takes no `from`"),
        ({"do": "delete", "from": "first"}, "no anchor"),
        ({"do": "delete", "from": "3kqzt", "to": "2kqzt"}, "backwards"),
        ({"do": "append", "lines": ["a\nb"]}, "holds a newline"),
    ],
)
@pytest.mark.parametrize("key", ["alices", "scouts"])
async def test_an_edit_that_no_file_could_take_is_no_action_by_any_key(ask, talk, key, edit, word):
    hers = (await db.read(keys.authenticate, talk.alices)).key_id
    made = await db.write(make_sandbox, talk.scout, conversation="hers")
    await db.write(lambda: Sandbox.objects.filter(pk=made.pk).update(agent=None, key_id=hers))
    arguments = {"path": "a", "version": "3f9c0b71d2ae", "edits": [{"do": "append", "lines": ["ok"]}, edit]}
    where = {"alices": "hers", "scouts": "c"}[key]
    answer = await call(ask, "edit", arguments, key=getattr(talk, key), conversation=where)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation"), answer.text
    assert answer.json()["field"].startswith("arguments.edits.1")
    assert word in answer.json()["detail"]
    assert answer.json()["example"]["edits"]
    assert not await db.read(Action.objects.exists)


async def test_half_a_character_is_refused(ask, talk):
    body = (
        r'{"conversation": "c", "arguments": {"path": "a", "version": "3f9c0b71d2ae", '
        r'"edits": [{"do": "append", "lines": ["\ud800"]}]}}'
    )
    answer = await ask("POST", "/tools/edit", key=talk.scouts, content=body.encode())
    assert answer.status_code in (400, 422), answer.text


async def test_undecided_in_time_is_202_with_where_to_wait(ask, talk):
    answer = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts, reason="to look", parent_action="")
    action = await the_action()
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/actions/{action.pk}")
    assert (answer.json()["id"], answer.json()["status"], answer.json()["outcome"]) == (action.pk, "pending", None)
    assert (action.tool, action.conversation, action.reason) == ("run", "c", "to look")
    assert action.sandbox_id == talk.sandbox.pk


async def test_a_decision_within_the_wait_is_answered_at_once_in_words_for_a_model(ask, talk):
    waiting = asyncio.create_task(call(ask, "run", {"command": "echo hi"}, key=talk.scouts, wait=30))
    action = await until(Action.objects.filter(status="pending").first)
    reason = "It would delete the report."
    await db.write(decisions.decide, action, "deny", by=talk.bob, digest=action.digest, reason=reason)
    answer = await waiting
    assert (answer.status_code, answer.json()["status"]) == (200, "denied")
    assert answer.json()["outcome"]["text"] == f"A reviewer denied this. It was not run. Reason: {reason}"
    again = await ask.get(f"/actions/{action.pk}", key=talk.scouts)
    assert again.json()["outcome"] == answer.json()["outcome"]


async def test_an_outcome_that_was_given_is_not_given_to_the_same_call_again(ask, talk):
    await call(ask, "run", {"command": "echo hi"}, key=talk.scouts)
    action = await the_action()
    await db.write(decisions.decide, action, "deny", by=talk.bob, digest=action.digest, reason="no")
    given = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts)
    assert (given.json()["id"], given.json()["joined"]) == (action.pk, True)
    anew = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts)
    assert anew.json()["id"] != action.pk


async def test_it_is_the_same_act_as_the_call_on_the_sandbox_itself(ask, talk, settings):
    settings.GATED_CALL_S = 0.2
    by_tool = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts)
    by_rest = await ask.post(f"/sandboxes/{talk.sandbox.pk}/commands", {"command": "echo hi"}, key=talk.scouts)
    assert (by_rest.json()["action_id"], by_rest.json()["joined"]) == (by_tool.json()["id"], True)


async def test_an_idempotency_key_acts_once_and_is_told_from_another_body(ask, talk):
    once = {"Idempotency-Key": "k1"}
    first = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts, headers=once)
    again = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts, headers=once)
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
    other = await call(ask, "run", {"command": "echo ho"}, key=talk.scouts, headers=once)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")
    new = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts, headers={"Idempotency-Key": "k2"})
    assert new.json()["id"] != first.json()["id"]


async def test_whatever_else_is_in_the_body_is_another_body(ask, talk):
    """Each of its fields: nobody is given the action of another conversation as that of this one."""
    once, parent = (
        {"Idempotency-Key": "k1"},
        (await call(ask, "run", {"command": "true"}, key=talk.scouts)).json()["id"],
    )
    first = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts, headers=once)
    for other in ({"conversation": "d"}, {"reason": "why not"}, {"parent_action": parent}):
        answer = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts, headers=once, **other)
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_mismatch"), other
    again = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts, headers=once)
    assert again.json()["id"] == first.json()["id"]


async def test_an_idempotency_key_finds_its_action_when_the_sandbox_has_ended(ask, talk):
    """And makes no new sandbox, which this server could not."""
    once = {"Idempotency-Key": "k1"}
    first = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts, headers=once)
    await db.write(gate.cancel, await the_action(), by=await db.read(talk.caller, talk.scout))
    await db.write(Sandbox.objects.filter(pk=talk.sandbox.pk).update, status="ended", ended_reason="idle")
    again = await call(ask, "run", {"command": "echo hi"}, key=talk.scouts, headers=once)
    assert (again.status_code, again.json()["id"], again.json()["status"]) == (200, first.json()["id"], "cancelled")


async def test_a_conversation_is_an_agents_own(ask, talk):
    """Under the same name the other agent, and mallory, would get sandboxes of their own: here there is no engine."""
    for key in (talk.others, talk.mallorys, talk.alices):
        answer = await call(ask, "run", {"command": "echo hi"}, key=key)
        assert (answer.status_code, answer.json()["code"]) == (503, "no_runtime")
    assert not await db.read(Action.objects.exists)


async def test_a_parent_action_is_ones_own(ask, talk):
    parent = (await call(ask, "run", {"command": "echo hi"}, key=talk.scouts)).json()["id"]
    child = await call(ask, "run", {"command": "echo ho"}, key=talk.scouts, parent_action=parent)
    assert child.json()["parent_action"] == parent
    await db.write(make_sandbox, talk.other, conversation="c")
    for wrong in ("act_made_up", parent):
        answer = await call(ask, "run", {"command": "echo ho"}, key=talk.others, parent_action=wrong)
        assert (answer.status_code, answer.json()["field"]) == (422, "parent_action")


async def test_what_never_asks_is_recorded_and_answered(ask, talk):
    answer = await call(ask, "processes", {}, key=talk.scouts, wait=10)
    assert (answer.status_code, answer.json()["status"], answer.json()["tool"]) == (200, "succeeded", "processes")
    assert answer.json()["outcome"]["result"] == {"text": "Nothing runs in this sandbox.", "items": []}
    assert answer.json()["outcome"]["decided_by"] == "system"


async def put(command, stream, data):
    await outputs.Outputs(command.action_id).put(stream, 0, data)


async def test_follow_reads_from_an_offset_also_when_command_and_sandbox_have_ended(ask, talk):
    await put(talk.command, "stdout", "grün\n".encode())
    await db.write(Command.objects.filter(pk=talk.command.pk).update, stdout_bytes=6, stderr_bytes=0)
    await db.write(Sandbox.objects.filter(pk=talk.sandbox.pk).update, status="ended", ended_reason="idle")
    answer = await call(ask, "follow", {"id": talk.command.pk, "offset": 1, "limit": 4}, key=talk.scouts, wait=10)
    result = answer.json()["outcome"]["result"]
    about = {name: result[name] for name in ("data", "next_offset", "lost_bytes", "status", "exit_code", "total_bytes")}
    assert about == {
        "data": "rün", "next_offset": 5, "lost_bytes": 0, "status": "exited", "exit_code": 0, "total_bytes": 6,
    }  # fmt: skip
    assert result["text"].endswith("go on with offset 5.\nrün")


@pytest.mark.database
async def test_follow_shows_what_a_command_printed_with_its_nuls(ask, talk):
    await put(talk.command, "stdout", b"a\0b\n")
    await db.write(Command.objects.filter(pk=talk.command.pk).update, stdout_bytes=4)
    answer = await call(ask, "follow", {"id": talk.command.pk}, key=talk.scouts, wait=10)
    assert (answer.json()["status"], answer.json()["outcome"]["result"]["data"]) == ("succeeded", "a\0b\n")


async def test_a_command_of_somebody_else_is_not_there(ask, talk):
    for tool, key in (("follow", talk.others), ("stop", talk.others), ("stop", talk.mallorys)):
        answer = await call(ask, tool, {"id": talk.command.pk}, key=key, wait=10)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_stopping_what_has_ended_says_so(ask, talk):
    answer = await call(ask, "stop", {"id": talk.command.pk}, key=talk.scouts, wait=10)
    result = answer.json()["outcome"]["result"]
    assert (result["status"], result["killed"]) == ("exited", 0)


async def test_with_the_sandbox_switched_off_nothing_is_proposed(ask, talk):
    await change(talk, sandbox_enabled=False)
    for tool, arguments in (("run", {"command": "true"}), ("read", {"path": "x"}), ("processes", {})):
        answer = await call(ask, tool, arguments, key=talk.scouts)
        assert (answer.status_code, answer.json()["code"]) == (403, "sandbox_not_enabled")


async def test_one_wait_too_many_proposes_nothing(ask, talk, settings):
    settings.WAITS_PER_KEY = 0
    answer = await call(ask, "run", {"command": "true"}, key=talk.scouts, wait=5)
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many")
    assert not await db.read(Action.objects.exists)
    assert (await call(ask, "run", {"command": "true"}, key=talk.scouts, wait=0)).status_code == 202


@pytest.mark.parametrize("conversation", ["", "a\nb", "x" * 201, 5])
async def test_a_conversation_is_a_name_on_one_line(ask, talk, conversation):
    answer = await call(ask, "run", {"command": "true"}, key=talk.scouts, conversation=conversation)
    assert (answer.status_code, answer.json()["field"]) == (422, "conversation")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", 25), ("wait=0", 0), ("wait=5", 5), ("respond-async, wait=10", 10), ("wait=10; foo", 10), ('wait="7"', 7),
        ("wait=1000", 55), ("wait=-1", 25), ("wait=x", 25), ("nowait=3", 25), ("wait = 3", 3),
    ],
)  # fmt: skip
def test_prefer_is_a_wish(header, seconds):
    assert wait_of(header) == seconds


async def test_a_variable_that_a_setting_forbids_is_named_where_it_stands_beside_a_right_call(ask, talk):
    answer = await call(ask, "run", {"command": "ls", "env": {"PATH": "/x"}}, key=talk.scouts)
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed_by_settings")
    assert answer.json()["field"] == "arguments.env.PATH"
    assert answer.json()["example"] == toolsets.tool(2, "run").example
