"""The server dies by `kill -9` at each point of an action's life: one decision, at most one run, no result lost."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
import httpx
import pytest

from sandboxes.engine import EngineConfig

from .served import CHECKOUT, Served, until

pytestmark = pytest.mark.gvisor
# Each run of it leaves one more line: how often it ran is a fact in the sandbox, not a claim of ours.
COUNT = "echo run >> /work/runs; "


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    console = Served(tmp_path / "var").up()
    yield console
    console.close()


@pytest.fixture
def sandbox(served: Served) -> str:
    with served.api("agent") as api:
        return str(api.post("/sandboxes", json={}).raise_for_status().json()["id"])


def propose(served: Served, sandbox: str, command: str) -> str:
    """The action's id. The call itself is left behind, as by an agent that gave up waiting."""
    path = f"/sandboxes/{sandbox}/commands"

    def call() -> None:
        # The server is killed under it: that is the test.
        with served.api("agent") as api, suppress(httpx.HTTPError):
            api.post(path, json={"command": command})

    before = set(action_ids(served))
    threading.Thread(target=call, daemon=True).start()
    return str(until(lambda: set(action_ids(served)) - before).pop())


def action_ids(served: Served) -> list[str]:
    with served.api("agent") as api:
        items = api.get("/actions").raise_for_status().json()["items"]
        return [item["id"] for item in items if item["tool"] == "run"]


def action(served: Served, action_id: str, *, wait: int = 0) -> dict[str, Any]:
    with served.api("agent") as api:
        found: dict[str, Any] = api.get(f"/actions/{action_id}", params={"wait": wait}).raise_for_status().json()
        return found


def decide(served: Served, action_id: str, verdict: str = "approve") -> httpx.Response:
    digest = action(served, action_id)["digest"]
    with served.api("review") as api:
        body = {"verdict": verdict, "digest": digest, "reason": "because"}
        return api.post(f"/actions/{action_id}/decision", json=body)


def ran(served: Served, sandbox: str) -> int:
    """How often COUNT ran, read by a member's key, which is not gated."""
    with served.api("workspace") as api:
        answer = api.get(f"/sandboxes/{sandbox}/files", params={"path": "/work/runs", "encoding": "utf-8"})
        return 0 if answer.status_code == 404 else len(answer.raise_for_status().json()["content"].splitlines())


def test_killed_while_pending_the_proposal_waits_on_and_runs_once(served: Served, sandbox: str) -> None:
    action_id = propose(served, sandbox, COUNT + "echo done")
    served.kill()
    served.up()
    assert action(served, action_id)["status"] == "pending"
    assert ran(served, sandbox) == 0
    assert decide(served, action_id).status_code == 200
    found = action(served, action_id, wait=30)
    assert (found["status"], found["outcome"]["result"]["stdout"]) == ("succeeded", "done\n")
    assert ran(served, sandbox) == 1
    assert decide(served, action_id, "deny").status_code == 409
    assert [decision["verdict"] for decision in action(served, action_id)["decisions"]] == ["approve"]


@pytest.mark.parametrize("moment", ["0", "0.01", "0.1"])
def test_killed_between_approval_and_start_it_runs_once(served: Served, sandbox: str, moment: str) -> None:
    action_id = propose(served, sandbox, COUNT + "sleep 1; echo done")
    # The decision's answer and the start race: killing after it at several moments hits before, during and after it.
    assert decide(served, action_id).status_code == 200
    threading.Event().wait(float(moment))
    served.kill()
    served.up()
    found = action(served, action_id, wait=30)
    assert (found["status"], found["outcome"]["result"]["stdout"]) == ("succeeded", "done\n")
    assert ran(served, sandbox) == 1


def test_dead_right_after_the_approval_was_committed_it_runs_once(served: Served, sandbox: str) -> None:
    action_id = propose(served, sandbox, COUNT + "echo done")
    served.kill()
    while_dead(served, action_id, APPROVE)
    served.up()
    found = action(served, action_id, wait=30)
    assert (found["status"], found["outcome"]["result"]["stdout"]) == ("succeeded", "done\n")
    assert ran(served, sandbox) == 1


def test_dead_between_the_committed_start_and_the_sending_it_runs_once(served: Served, sandbox: str) -> None:
    action_id = propose(served, sandbox, COUNT + "echo done")
    served.kill()
    while_dead(served, action_id, APPROVE + START)
    served.up()
    found = action(served, action_id, wait=30)
    assert (found["status"], found["outcome"]["result"]["stdout"]) == ("succeeded", "done\n")
    assert ran(served, sandbox) == 1


# What the dead server had committed last, written by the same acts.
APPROVE = """
from approvals.decisions import decide
from approvals.models import Action
from console.workspaces.models import Member
action = Action.objects.get(pk="{id}")
decide(action, "approve", by=Member.objects.get(), digest=action.digest)
"""
START = """
from sandboxes.dispatch import begin
assert begin("{id}")
"""


def while_dead(served: Served, action_id: str, code: str) -> None:
    command = [sys.executable, "manage.py", "shell", "-c", code.format(id=action_id)]
    subprocess.run(command, cwd=CHECKOUT, env=served.environment, check=True, capture_output=True, timeout=60)


def test_killed_while_running_nothing_is_run_again_and_no_output_is_lost(served: Served, sandbox: str) -> None:
    lines = 200
    action_id = propose(served, sandbox, COUNT + f"for n in $(seq {lines}); do echo line $n; sleep 0.02; done; exit 7")
    decide(served, action_id)
    until(lambda: action(served, action_id)["status"] == "running")
    threading.Event().wait(1)
    served.kill()
    threading.Event().wait(1)  # it prints on while nobody listens
    served.up()
    found = action(served, action_id, wait=30)
    result = found["outcome"]["result"]
    assert (found["status"], result["exit_code"], result["truncated"]) == ("succeeded", 7, False)
    assert result["stdout"] == "".join(f"line {n}\n" for n in range(1, lines + 1))
    assert ran(served, sandbox) == 1


def test_what_ended_while_the_server_was_dead_has_its_result_after_the_restart(served: Served, sandbox: str) -> None:
    action_id = propose(served, sandbox, COUNT + "sleep 1; echo out; echo err >&2")
    decide(served, action_id)
    until(lambda: action(served, action_id)["status"] == "running")
    served.kill()
    threading.Event().wait(2.5)
    served.up()
    result = action(served, action_id, wait=30)["outcome"]["result"]
    assert (result["stdout"], result["stderr"], result["exit_code"]) == ("out\n", "err\n", 0)
    assert ran(served, sandbox) == 1


def test_a_sandbox_lost_with_the_server_leaves_an_unknown_end_and_no_second_run(served: Served, sandbox: str) -> None:
    action_id = propose(served, sandbox, COUNT + "sleep 60")
    decide(served, action_id)
    until(lambda: action(served, action_id)["status"] == "running")
    served.kill()
    remove_containers(served)
    served.up()
    found = action(served, action_id, wait=10)
    assert (found["status"], found["outcome"]["executed"], found["outcome"]["may_retry"]) == ("unknown", None, False)
    with served.api("agent") as api:
        assert api.get(f"/sandboxes/{sandbox}").json()["ended_reason"] == "host_lost"


def remove_containers(served: Served) -> None:
    client = docker.DockerClient(EngineConfig.load(served.var, "").docker_host)
    for container_id in served.containers():
        client.containers.get(container_id).remove(force=True, v=True)
    client.close()


def test_a_sandbox_killed_under_a_command_tells_its_caller_at_once(served: Served, sandbox: str) -> None:
    action_id = propose(served, sandbox, "sleep 60")
    decide(served, action_id)
    until(lambda: action(served, action_id)["status"] == "running")
    remove_containers(served)
    found = action(served, action_id, wait=8)
    assert (found["status"], found["outcome"]["error"]["code"]) == ("failed", "sandbox_gone")
    assert found["outcome"]["result"] is None


def test_strays_of_this_instance_are_removed_and_those_of_others_are_not(
    served: Served, sandbox: str, tmp_path: Path
) -> None:
    other = Served(tmp_path / "other").up()
    try:
        with other.api("workspace") as api:
            api.post("/sandboxes", json={}).raise_for_status()
        kept = other.containers()
        served.kill()
        (served.var / "db.sqlite3").unlink()
        (served.var / "first-run.json").unlink()
        served.up()
        until(lambda: not served.containers())
        assert other.containers() == kept
    finally:
        other.close()
