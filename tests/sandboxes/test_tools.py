"""The tools as agents know them: their schemas are promises, and what a model sends is checked against them."""

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.workspaces.models import Agent
from sandboxes import toolsets
from sandboxes.toolsets import BadArguments, schemas

ALL = [tool for number in (1, 2) for tool in toolsets.toolset(number).values()]
named = pytest.mark.parametrize("tool", ALL, ids=lambda tool: f"{tool.toolset}-{tool.name}")
PROMISED = Path(__file__).parents[1] / "data"


def published(number: int) -> str:
    """A toolset as its agents are given it: the order counts, too, of tools and of arguments."""
    tools = toolsets.toolset(number).values()
    found = [{"name": tool.name, "description": tool.description, "inputSchema": tool.schema} for tool in tools]
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def test_each_toolset_has_the_tools_that_its_agents_were_promised():
    assert set(toolsets.toolset(1)) == {"list_files", "read_file", "run_command", "write_file"}
    assert set(toolsets.toolset(2)) == {
        "read", "edit", "write", "glob", "grep", "run", "follow", "stop", "processes", "publish",
    }  # fmt: skip


def test_what_can_change_a_sandbox_is_asked_about_and_nothing_else_is():
    """Adding a tool means saying here whether it asks."""
    asks = {tool.name for tool in ALL if tool.act.KIND != "read"}
    assert asks == {"run", "write", "edit", "run_command", "write_file"}


@pytest.mark.parametrize("number", [1, 2])
def test_a_pinned_agent_keeps_its_very_descriptions_and_schemas(number):
    promised = PROMISED / f"toolset-{number}.json"
    assert published(number).encode() == promised.read_bytes(), (
        f"Agents pinned to toolset {number} were built and tested with what is in {promised.name}. Leave that file and "
        "put the tools back as they were; what is to be different goes into a toolset with the next number."
    )


def test_every_toolset_is_promised():
    assert sorted(PROMISED.glob("toolset-*.json")) == [
        PROMISED / f"toolset-{number}.json" for number in range(1, toolsets.NEWEST + 1)
    ]


@named
def test_a_schema_is_strict_and_every_argument_is_described(tool):
    jsonschema.Draft202012Validator.check_schema(tool.schema)
    assert tool.schema["additionalProperties"] is False
    for name, schema in tool.schema["properties"].items():
        assert len(schema["description"]) > 10, name
    assert 20 < len(tool.description) < 1024


@named
def test_its_schema_has_no_choice_at_the_top_which_some_models_refuse(tool):
    assert not {"anyOf", "oneOf", "allOf"} & set(tool.schema)


@named
def test_its_own_example_is_a_right_call(tool):
    jsonschema.validate(tool.example, tool.schema)
    tool.act.validate(tool.arguments(tool.example), Agent())


@named
def test_what_is_left_null_is_left_out(tool):
    everything = {name: tool.example.get(name) for name in tool.schema["properties"]}
    assert tool.arguments(everything) == tool.arguments(tool.example)


@named
def test_a_stranger_among_its_arguments_is_named_beside_those_there_are(tool):
    with pytest.raises(BadArguments) as refusal:
        tool.arguments({**tool.example, "stranger": 1})
    assert refusal.value.fields["field"] == "arguments.stranger"
    assert refusal.value.fields["example"] == tool.example


@named
def test_a_missing_argument_is_named(tool):
    for name in tool.schema["required"]:
        with pytest.raises(BadArguments, match="is missing") as refusal:
            tool.arguments({key: value for key, value in tool.example.items() if key != name})
        assert refusal.value.fields["field"] == f"arguments.{name}"


@pytest.mark.parametrize(
    ("name", "sent", "field", "word"),
    [
        ("run", {"command": 5}, "command", "a text, not a whole number"),
        ("run", {"command": "ls", "timeout_s": 601}, "timeout_s", "at most 600"),
        ("run", {"command": "ls", "timeout_s": True}, "timeout_s", "not true or false"),
        ("run", {"command": "ls", "env": {"A": 1}}, "env.A", "a text"),
        ("run", {"argv": ["ls", 1]}, "argv.1", "a text"),
        ("edit", {"path": "a", "version": "3f9", "edits": [{"do": "delete"}]}, "version", "does not match"),
        ("edit", {"path": "a", "version": "3f9c0b71d2ae", "edits": []}, "edits", "the least is 1"),
        ("edit", {"path": "a", "version": "3f9c0b71d2ae", "edits": [{"do": "swap"}]}, "edits.0.do", "one of replace"),
        ("edit", {"path": "a", "version": "3f9c0b71d2ae", "edits": [{"from": "1"}]}, "edits.0.do", "missing"),
        ("edit", {"path": "a", "version": "3f9c0b71d2ae", "edits": ["x"]}, "edits.0", "an object, not a text"),
        ("write", {"path": "", "content": ""}, "path", "empty"),
        ("stop", {"id": "cmd_1", "signal": "STOP"}, "signal", "one of TERM"),
        ("follow", {"id": "cmd_1", "wait_s": 56}, "wait_s", "at most 55"),
    ],
)
def test_a_wrong_argument_is_told_by_its_place_and_what_would_be_right(name, sent, field, word):
    with pytest.raises(BadArguments, match=word) as refusal:
        toolsets.tool(2, name).arguments(sent)
    assert refusal.value.fields["field"] == f"arguments.{field}"


@pytest.mark.parametrize("sent", [None, [], "x", 1])
def test_arguments_that_are_no_object_are_refused(sent):
    with pytest.raises(BadArguments) as refusal:
        toolsets.tool(2, "run").arguments(sent)
    assert refusal.value.fields["field"] == "arguments"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=15) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(data=st.data(), tool=st.sampled_from(ALL))
def test_what_is_let_through_is_what_the_standard_says_the_schema_lets_through(data, tool):
    """Against the reference, but for whole numbers written as 1.0, which the standard takes for integers."""
    sent = dict(tool.example)
    for name in data.draw(st.lists(st.sampled_from([*tool.schema["properties"], "x"]), max_size=3)):
        sent[name] = data.draw(JSON)
    without_nulls = schemas._without_nulls(sent, tool.schema)
    right = jsonschema.Draft202012Validator(tool.schema).is_valid(without_nulls)
    try:
        assert schemas.checked(sent, tool.schema, example={}) == without_nulls
        ours = True
    except BadArguments:
        ours = False
    assert ours == right or _has_whole_float(sent)


def _has_whole_float(value) -> bool:
    if isinstance(value, dict):
        return any(map(_has_whole_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_whole_float, value))
    return isinstance(value, float) and value.is_integer()


@pytest.mark.parametrize(("killed", "says"), [(0, ""), (1, " This ended 1 process."), (3, " This ended 3 processes.")])
def test_a_stop_says_how_many_processes_it_ended(killed, says):
    result = {"id": "cmd_1", "status": "stopped", "exit_code": 143, "killed": killed}
    told = toolsets.tool(2, "stop").text(result, {})
    assert told == f"cmd_1: stopped, exit code 143, and nothing of it runs.{says}"


@pytest.mark.parametrize(
    ("number", "name", "says"),
    [(1, "read_file", "There is no line 9: the file has 3."), (2, "read", "  there is no line 9: it has 3  LF  ")],
)
def test_a_read_beyond_the_end_says_where_that_is_and_not_that_nothing_is_there(number, name, says):
    facts = {"path": "/work/x", "version": "0" * 12, "newline": "LF", "final_newline": True, "truncated": False}
    tool = toolsets.tool(number, name)
    beyond = tool.text({**facts, "line_count": 3, "from": 0, "to": 0, "lines": []}, {"path": "/work/x", "offset": 9})
    assert says in beyond
    empty = tool.text({**facts, "line_count": 0, "from": 0, "to": 0, "lines": []}, {"path": "/work/x", "offset": 9})
    assert "no line" not in empty.replace("no lines", "")


@pytest.mark.parametrize("number", [1, 2])
def test_a_write_by_another_door_reads_as_one(number):
    """Over REST: its result names no version, and its action is shown all the same."""
    tool = toolsets.shown_by(number, "write", 1)
    result = {"path": "/work/x", "size": 1, "sha256": "ab" * 32}
    assert "Wrote /work/x, 1 bytes" in tool.text(result, {"path": "/work/x", "content": "x", "mode": None})
