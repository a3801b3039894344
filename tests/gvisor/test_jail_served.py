"""The jail as a whole console keeps it: over REST, through `kill -9` of the server, and gone with it in the end."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from console import state
from console.state import table_name
from sandboxes.engine.hostnet import tool

from . import hosts
from .hosts import PORT, PUBLIC, RANGES, RESOLVER
from .netspaces import PROBES
from .served import CHECKOUT, Served, until
from .test_jail import left_on_host

pytestmark = pytest.mark.gvisor
PRIVATE = RANGES["10/8"]
MORE = """
from console.workspaces import agents, keys, members, permissions
from console.workspaces.models import Member, Workspace
workspace, admin = Workspace.objects.get(), Member.objects.get()
second = agents.make(workspace, name="second", by=None)
members.give(second, permissions.SANDBOXES_RUN, by=None)
agents.change_tools(second, by=None, sandbox_enabled=True)
manages = keys.make_member_key(admin, name="manages", may=[permissions.AGENTS_MANAGE], by=None)[1]
print(manages, keys.make_agent_key(second, name="second", by=None)[1])
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with hosts.beyond() as space:
        far = [[space, address, port] for address in (PUBLIC, PRIVATE) for port in (PORT, PORT + 1)]
        with hosts.running("serve", far):
            console = Served(tmp_path_factory.mktemp("jail") / "var", SANDGATE_RESOLVERS=RESOLVER).up()
            yield console
            console.close()


@pytest.fixture(scope="module")
def keys(served: Served) -> tuple[str, str]:
    """Of a member who manages agents, and of a second agent."""
    command = [sys.executable, "manage.py", "shell", "-c", MORE]
    done = subprocess.run(command, cwd=CHECKOUT, env=served.environment, capture_output=True, text=True, check=True)
    manages, second = done.stdout.split()[-2:]
    return manages, second


class Inside:
    """A sandbox of an agent's, and a member who looks around in it without asking."""

    def __init__(self, served: Served, agent: httpx.Client) -> None:
        self.served = served
        made = agent.post("/sandboxes", json={}).raise_for_status().json()
        self.id, self.agent_id, self.network = made["id"], made["agent_id"], made["network"]
        body = {"path": "/work/probes.py", "content": PROBES.read_text(), "encoding": "utf-8"}
        with served.api("workspace") as member:
            member.post(f"/sandboxes/{self.id}/files", json=body).raise_for_status()

    def opened(self, *targets: tuple[str, str, int]) -> set[str]:
        body = {"argv": ["python3", "/work/probes.py", "probe", json.dumps(targets)]}
        with self.served.api("workspace") as member:
            ran = member.post(f"/sandboxes/{self.id}/commands", json=body).raise_for_status().json()
        return {name for name, answered in json.loads(ran["stdout"]).items() if answered}


def client(served: Served, key: str) -> httpx.Client:
    return httpx.Client(base_url=f"{served.url}/v1", headers={"X-API-Key": key}, timeout=60, trust_env=False)


def test_an_exception_over_rest_opens_and_closes_running_sandboxes_of_that_agent_alone(
    served: Served, keys: tuple[str, str]
) -> None:
    with served.api("agent") as first, client(served, keys[1]) as second, client(served, keys[0]) as manager:
        mine, others = Inside(served, first), Inside(served, second)
        assert (mine.network, others.network) == ("public", "public")
        tried = [("tcp", PRIVATE, PORT), ("tcp", PRIVATE, PORT + 1), ("udp", PRIVATE, PORT)]
        assert mine.opened(*tried, ("tcp", PUBLIC, PORT)) == {f"tcp {PUBLIC} {PORT}"}
        path = f"/agents/{mine.agent_id}/network-exceptions"
        body = {"address": PRIVATE, "protocol": "tcp", "port": PORT, "reason": "reports"}
        made = manager.post(path, json=body).raise_for_status().json()
        until(lambda: mine.opened(*tried) == {f"tcp {PRIVATE} {PORT}"})
        assert others.opened(*tried) == set()
        late = Inside(served, first)
        assert late.opened(*tried) == {f"tcp {PRIVATE} {PORT}"}, "made while it is open: from its first command on"
        manager.delete(f"{path}/{made['id']}").raise_for_status()
        until(lambda: mine.opened(*tried) == set())
        for agent, inside in ((first, mine), (first, late), (second, others)):
            agent.delete(f"/sandboxes/{inside.id}").raise_for_status()


def test_a_killed_server_leaves_its_sandboxes_jailed_and_the_next_one_keeps_the_jail(served: Served) -> None:
    instance = state.instance(served.var)
    with served.api("agent") as agent:
        inside = Inside(served, agent)
    served.kill()
    before = tool("nft", "-s", "list", "table", "inet", table_name(instance))
    assert len(served.containers()) >= 1
    time.sleep(3)  # nobody looks after it, and nothing changes it
    assert tool("nft", "-s", "list", "table", "inet", table_name(instance)) == before
    served.up()
    assert inside.opened(("tcp", PRIVATE, PORT), ("tcp", PUBLIC, PORT)) == {f"tcp {PUBLIC} {PORT}"}
    tool("nft", "flush", "table", "inet", table_name(instance))
    until(lambda: "goto refused" in tool("nft", "list", "table", "inet", table_name(instance)))
    assert inside.opened(("tcp", PRIVATE, PORT), ("tcp", PUBLIC, PORT)) == {f"tcp {PUBLIC} {PORT}"}


def test_a_stop_leaves_no_table_and_no_bridge(served: Served) -> None:
    assert left_on_host(state.instance(served.var)) != []
    assert served.stop() == 0
    assert served.containers() == []
    assert left_on_host(state.instance(served.var)) == []


def test_where_no_sandbox_can_have_a_network_creating_says_why_and_none_still_works(tmp_path: Path) -> None:
    console = Served(tmp_path / "var", SANDGATE_RESOLVERS="127.0.0.1").up()
    try:
        with console.api("workspace") as api:
            refused = api.post("/sandboxes", json={})
            assert (refused.status_code, refused.json()["code"]) == (503, "no_runtime")
            assert "SANDGATE_RESOLVERS" in refused.json()["detail"]
            assert console.containers() == []
            assert api.post("/sandboxes", json={"network": "none"}).status_code == 201
    finally:
        console.close()
