"""A plan on the real engine: approved in one act, run in order, ended by the first item that fails."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .served import Served, until

pytestmark = pytest.mark.gvisor


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(Path(tmp_path_factory.mktemp("plans")) / "var").up()
    yield console
    console.close()


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def propose(agent: httpx.Client, *calls: dict[str, Any]) -> dict[str, Any]:
    sent = {"conversation": "c", "calls": list(calls)}
    answer = agent.post("/plans", json=sent, headers={"Prefer": "wait=0"})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def decide(served: Served, plan: dict[str, Any], verdict: str = "approve", **more: Any) -> None:
    with served.api("review") as reviewer:
        sent = {"verdict": verdict, "digest": plan["digest"], **more}
        reviewer.post(f"/plans/{plan['id']}/decision", json=sent).raise_for_status()


def ended(agent: httpx.Client, plan: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = agent.get(f"/plans/{plan['id']}", params={"wait": 50}).raise_for_status().json()
    return found


def look(served: Served, sandbox: str, command: str) -> str:
    with served.api("workspace") as member:
        answer = member.post(f"/sandboxes/{sandbox}/commands", json={"command": command})
        return str(answer.raise_for_status().json()["stdout"])


def test_the_second_of_three_fails_and_the_third_does_not_run(served: Served) -> None:
    with served.api("agent") as agent:
        steps = ("sleep 1; echo one >> /work/log", "echo two >> /work/log; exit 3", "echo three >> /work/log")
        plan = propose(agent, *(call("run", command=step) for step in steps))
        assert look(served, plan["sandbox_id"], "cat /work/log 2>/dev/null") == ""
        decide(served, plan)
        found = ended(agent, plan)
        assert [item["status"] for item in found["items"]] == ["succeeded", "succeeded", "cancelled"]
        assert (found["status"], found["stopped_by"]) == ("failed", found["items"][1]["id"])
        assert found["items"][1]["outcome"]["result"]["exit_code"] == 3
        assert "Item 2 of its plan" in found["items"][2]["outcome"]["reason"]
        assert look(served, plan["sandbox_id"], "sleep 2; cat /work/log") == "one\ntwo\n"


def test_what_is_ticked_runs_in_order_writes_and_commands_alike(served: Served) -> None:
    with served.api("agent") as agent:
        plan = propose(
            agent,
            call("write", path="a.sh", content="echo from a file > /work/out\n"),
            call("run", command="touch /work/left-out"),
            call("run", command="bash /work/a.sh"),
        )
        decide(served, plan, left_out=[plan["items"][1]["id"]], reason="Not needed")
        found = ended(agent, plan)
        assert [item["status"] for item in found["items"]] == ["succeeded", "denied", "succeeded"], found
        assert found["status"] == "succeeded"
        assert look(served, plan["sandbox_id"], "cat /work/out; ls /work/left-out 2>&1 | wc -l") == "from a file\n1\n"
        assert "No such file" in look(served, plan["sandbox_id"], "ls /work/left-out 2>&1")


def test_a_file_that_an_earlier_item_changed_ends_the_plan_where_it_is(served: Served) -> None:
    with served.api("agent") as agent:
        plan = propose(
            agent,
            call("run", command="echo mine > /work/b.txt"),
            call("write", path="b.txt", content="theirs"),
            call("run", command="touch /work/after"),
        )
        decide(served, plan)
        found = ended(agent, plan)
        assert [item["status"] for item in found["items"]] == ["succeeded", "superseded", "cancelled"]
        assert found["items"][1]["outcome"]["error"]["code"] == "stale_edit"
        assert look(served, plan["sandbox_id"], "cat /work/b.txt; ls /work/after 2>/dev/null") == "mine\n"


def test_a_server_that_dies_between_two_items_goes_on_where_it_was(served: Served) -> None:
    with served.api("agent") as agent:
        plan = propose(agent, *(call("run", command=f"sleep 2; echo {n} >> /work/order") for n in range(3)))
        decide(served, plan)
        until(lambda: agent.get(f"/plans/{plan['id']}").json()["items"][0]["status"] == "succeeded")
    served.kill()
    served.up()
    with served.api("agent") as agent:
        found = ended(agent, plan)
        assert [item["status"] for item in found["items"]] == ["succeeded"] * 3, found
        assert look(served, plan["sandbox_id"], "cat /work/order") == "0\n1\n2\n"
