"""A client that leaves takes nothing with it: what it proposed waits, runs once, and its result is there to join."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from .served import Served

pytestmark = pytest.mark.gvisor


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    console = Served(tmp_path / "var").up()
    yield console
    console.close()


def test_a_client_that_leaves_takes_nothing_with_it(served: Served) -> None:
    with served.api("agent", timeout_s=2) as api:
        sandbox = api.post("/sandboxes", json={}).raise_for_status().json()["id"]
        with pytest.raises(httpx.ReadTimeout):
            api.post(f"/sandboxes/{sandbox}/commands", json={"command": "echo kept"})
    with served.api("agent") as api:
        action = api.get("/actions", params={"status": "pending"}).json()["items"][0]
        with served.api("review") as reviewer:
            body = {"verdict": "approve", "digest": action["digest"]}
            reviewer.post(f"/actions/{action['id']}/decision", json=body).raise_for_status()
        # The same call again joins what waits: it is not proposed twice, and the result is there.
        again = api.post(f"/sandboxes/{sandbox}/commands", json={"command": "echo kept"}).raise_for_status().json()
        assert (again["stdout"], again["joined"], again["action_id"]) == ("kept\n", True, action["id"])
        runs = [item for item in api.get("/actions").json()["items"] if item["tool"] == "run"]
        assert len(runs) == 1
