"""Proposals as a door would make them."""

from approvals import gate
from approvals.gate import Proposal
from approvals.models import Action
from console.workspaces.keys import Caller


def run(caller: Caller, command: str = "echo hi", **more) -> Proposal:
    agent_version = {"settings_version": 2} if caller.is_agent else {"settings_version": 0}
    fields = {
        "sandbox_id": "sbx_1",
        "tool": "run",
        "tool_version": 1,
        "kind": "command",
        "arguments": {"command": command, "cwd": "/work", "env": {}, "stdin": "", "timeout_s": 120},
        "profile": {"image": "sha256:1", "network": "none", "user": "agent", **agent_version},
    }
    return Proposal(caller=caller, **{**fields, **more})


def pending(caller: Caller, command: str = "echo hi", **more) -> Action:
    answer = gate.submit(run(caller, command, **more))
    assert isinstance(answer, gate.Wait)
    return Action.objects.get(pk=answer.action_id)
