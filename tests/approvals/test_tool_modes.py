"""A tool may have a mode of its own, over that of its kind."""

import pytest

from approvals import gate
from approvals.models import Action
from approvals.rules import acts
from console.workspaces import agents
from console.workspaces.errors import Invalid
from tests.approvals.proposals import run

EDIT = {"kind": "write", "tool": "edit", "arguments": {"path": "/work/x", "edits": []}}


def runs(agent, cast, **more) -> bool:
    return isinstance(gate.submit(run(cast.caller(agent), **more)), gate.Pass)


def test_one_tool_is_loosened_or_tightened_alone(cast):
    agent = agents.change_tools(
        cast.scout, by=cast.alice, command_mode="never", tool_modes={"install": "always", "edit": "never"}
    )
    assert runs(agent, cast)
    assert not runs(agent, cast, tool="install", arguments={"packages": ["gawk"]})
    assert runs(agent, cast, **EDIT)
    assert not runs(agent, cast, **EDIT | {"tool": "write", "arguments": {"path": "/work/x", "content": "x"}})


def test_what_a_tool_always_asks_no_rule_loosens(cast):
    acts.make(by=cast.alice, effect="allow", tool="edit", pattern="/work/**")
    assert runs(cast.scout, cast, **EDIT)
    agent = agents.change_tools(cast.scout, by=cast.alice, tool_modes={"edit": "always"})
    assert not runs(agent, cast, idempotency_key="k", **EDIT)
    assert Action.objects.latest("created_at").why_asked.startswith("Asked because Agent Tools say")


def test_an_unsealing_always_asks_whatever_is_set(cast):
    with pytest.raises(Invalid):
        agents.change_tools(cast.scout, by=cast.alice, tool_modes={"unseal": "never"})
    agent = agents.change_tools(cast.scout, by=cast.alice, write_mode="never")
    assert not runs(agent, cast, kind="write", tool="unseal", arguments={"path": "/work/.env"})


@pytest.mark.parametrize("given", [{"read": "always"}, {"run": "maybe"}, ["run"], {"run": None}])
def test_what_is_no_mode_or_no_such_tool_is_refused(cast, given):
    with pytest.raises(Invalid) as refused:
        agents.change_tools(cast.scout, by=cast.alice, tool_modes=given)
    assert refused.value.fields["field"] == "tool_modes"
