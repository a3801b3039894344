"""Every call of the OpenAPI document that can change a sandbox's inside, tried by an agent on a real sandbox: it
becomes a proposal, nothing has happened, and it happens once a person approves."""

import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from .served import CHECKOUT, Served, until

# What each gated call sends, and how to see in the sandbox that it has happened.
CALLS = {
    "run_command": ({"json": {"command": "touch /work/by-command"}}, "/work/by-command"),
    "install_packages": ({"json": {"packages": ["hello"]}}, "/var/lib/sandgate-apt/lists"),
    "send_input": ({"json": {"data": "go\n"}}, "/work/by-input"),
    "write_file": ({"json": {"path": "/work/by-write", "content": "x"}}, "/work/by-write"),
    "unseal_file": ({"json": {"path": "/work/.env"}}, ""),  # gvisor/test_protected shows that it has not happened yet
    "write_raw_file": ({"params": {"path": "/work/by-bytes"}, "content": b"x"}, "/work/by-bytes"),
}
ALLOW = """
from console.workspaces import agents
from console.workspaces.models import Agent
agents.change_tools(Agent.objects.get(), by=None, writable_root_allowed=True)
"""
# What never asks, because it only takes back what a Pass began, or copies out and leaves all in there as it is.
NEVER_ASK = {"stop_command", "publish_artifact"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("doors")).up()
    command = [sys.executable, "manage.py", "shell", "-c", ALLOW]
    subprocess.run(command, cwd=CHECKOUT, env=console.environment, check=True)
    yield console
    console.close()


def doors(api: httpx.Client) -> list[tuple[str, str, str]]:
    """(operation, method, path) of all that is not a read below a sandbox, whatever it says of its gate."""
    document = api.get("/openapi.json").raise_for_status().json()
    return [
        (operation["operationId"], method.upper(), path.removeprefix("/v1"))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if "{sandbox_id}/" in path and method != "get"
    ]


def exists(api: httpx.Client, sandbox: str, path: str) -> bool:
    answer = api.get(f"/sandboxes/{sandbox}/files", params={"path": path})
    return answer.status_code == 200 or answer.json()["code"] == "is_a_directory"


def reads_a_line(served: Served, sandbox: str) -> str:
    """The id of a command in the background that waits for input."""
    body = {"command": "read line; touch /work/by-input", "background": True}
    with served.api("workspace") as api:
        return str(api.post(f"/sandboxes/{sandbox}/commands", json=body).raise_for_status().json()["id"])


def test_no_door_into_a_sandbox_is_open_to_an_agent(served: Served) -> None:
    with served.api("agent", timeout_s=1.5) as impatient, served.api("agent") as api, served.api("review") as reviewer:
        wanted = {"writable_root": True, "network": "none"}
        sandbox = api.post("/sandboxes", json=wanted).raise_for_status().json()["id"]
        with served.api("workspace") as people:
            secret = {"path": "/work/.env", "content": "A=1", "protected": True}
            people.post(f"/sandboxes/{sandbox}/files", json=secret).raise_for_status()
        ids = {"sandbox_id": sandbox, "command_id": reads_a_line(served, sandbox)}
        found = [door for door in doors(api) if door[0] not in NEVER_ASK]
        assert {name for name, _, _ in found} == set(CALLS), "a new door: add it here, with a call that shows its gate"
        for name, method, path in found:
            sent, trace = CALLS[name]
            with pytest.raises(httpx.ReadTimeout):
                impatient.request(method, path.format(**ids), **sent)
            (action,) = api.get("/actions", params={"status": "pending"}).json()["items"]
            assert not trace or not exists(api, sandbox, trace)
            decision = {"verdict": "approve", "digest": action["digest"]}
            reviewer.post(f"/actions/{action['id']}/decision", json=decision).raise_for_status()
            ended = api.get(f"/actions/{action['id']}", params={"wait": 20}).json()
            assert ended["status"] == "succeeded", ended
            assert not trace or until(lambda trace=trace: exists(api, sandbox, trace))


def test_stopping_asks_nobody_and_begins_nothing(served: Served) -> None:
    with served.api("agent") as api:
        sandbox = api.post("/sandboxes", json={}).raise_for_status().json()["id"]
        command = reads_a_line(served, sandbox)
        stopped = api.delete(f"/sandboxes/{sandbox}/commands/{command}").raise_for_status().json()
        assert stopped["status"] == "stopped"
        assert api.get("/actions", params={"status": "pending"}).json()["items"] == []
