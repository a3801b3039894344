"""Every call of the OpenAPI document that can change a sandbox's inside, tried by an agent on a real sandbox: it
becomes a proposal, nothing has happened, and it happens once a person approves."""

from collections.abc import Iterator

import httpx
import pytest

from .served import Served, until

# A valid body for each gated call, and how to see in the sandbox that it has happened.
CALLS = {
    "run_command": ({"command": "touch /work/by-command"}, "/work/by-command"),
    "write_file": ({"path": "/work/by-write", "content": "x"}, "/work/by-write"),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("doors")).up()
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
    return api.get(f"/sandboxes/{sandbox}/files", params={"path": path}).status_code == 200


def test_no_door_into_a_sandbox_is_open_to_an_agent(served: Served) -> None:
    with served.api("agent", timeout_s=1.5) as impatient, served.api("agent") as api, served.api("review") as reviewer:
        sandbox = api.post("/sandboxes", json={}).raise_for_status().json()["id"]
        found = doors(api)
        assert {name for name, _, _ in found} == set(CALLS), "a new door: add it here, with a call that shows its gate"
        for name, method, path in found:
            body, trace = CALLS[name]
            with pytest.raises(httpx.ReadTimeout):
                impatient.request(method, path.format(sandbox_id=sandbox), json=body)
            (action,) = api.get("/actions", params={"status": "pending"}).json()["items"]
            assert not exists(api, sandbox, trace)
            decision = {"verdict": "approve", "digest": action["digest"]}
            reviewer.post(f"/actions/{action['id']}/decision", json=decision).raise_for_status()
            ended = api.get(f"/actions/{action['id']}", params={"wait": 20}).json()
            assert ended["status"] == "succeeded", ended
            assert until(lambda trace=trace: exists(api, sandbox, trace))
