"""Proposals as a door would make them."""

from approvals import gate
from approvals.gate import Proposal
from approvals.models import Action
from console.workspaces.keys import Caller
from console.workspaces.models import Agent


def run(caller: Caller, command: str = "echo hi", **more) -> Proposal:
    agent = Agent.objects.filter(pk=caller.agent_id).first()
    version = agent.settings_version if agent else 0
    fields = {
        "sandbox_id": "sbx_1",
        "tool": "run",
        "tool_version": 1,
        "kind": "command",
        "arguments": {"command": command, "cwd": "/work", "env": {}, "stdin": "", "timeout_s": 120},
        "profile": {"image": "sha256:1", "network": "none", "user": "agent", "settings_version": version},
    }
    return Proposal(caller=caller, **{**fields, **more})


def pending(caller: Caller, command: str = "echo hi", **more) -> Action:
    answer = gate.submit(run(caller, command, **more))
    assert isinstance(answer, gate.Wait)
    return Action.objects.get(pk=answer.action_id)
