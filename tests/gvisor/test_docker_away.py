"""A console whose Docker dies and comes back. On a daemon of the test's own, which leaves sandboxes running."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lib import leftovers
from lib.daemon import OwnDaemon

from .served import Served, until
from .test_daemon_restart import daemon, restart  # noqa: F401  (a fixture)

pytestmark = pytest.mark.gvisor
AWAY_S = 7  # longer than a caller is kept waiting


@pytest.fixture
def served(daemon: OwnDaemon, tmp_path: Path) -> Iterator[Served]:  # noqa: F811
    console = Served(tmp_path / "var")
    found = json.loads((console.var / "engine.json").read_text())
    (console.var / "engine.json").write_text(json.dumps({**found, "docker_host": daemon.address}))
    yield console.up()
    console.close()


def run(api: httpx.Client, sandbox: str, **body: Any) -> httpx.Response:
    return api.post(f"/sandboxes/{sandbox}/commands", json=body)


def test_sandboxes_go_on_when_docker_is_back_and_end_or_stop_when_they_are_gone(
    served: Served,
    daemon: OwnDaemon,  # noqa: F811
) -> None:
    with served.api("workspace") as api:
        bodies = {"plain": {}, "gone": {}, "kept": {"persistent": True}}
        made = {name: make(api, **body) for name, body in bodies.items()}
        for sandbox in made.values():
            run(api, sandbox, command=f"echo {sandbox} > /work/name").raise_for_status()
        line = "for n in $(seq 40); do echo $n; sleep 0.5; done"
        background = run(api, made["plain"], command=line, background=True).json()["id"]
        told: list[tuple[float, httpx.Response]] = []

        def call() -> None:
            answer = run(api, made["plain"], command="sleep 20; echo late > /work/late")
            told.append((time.monotonic(), answer))

        caller = threading.Thread(target=call)
        caller.start()
        until(lambda: len(running(api, made["plain"])) == 2)
        containers = {name: container_of(daemon, sandbox) for name, sandbox in made.items()}
        back = threading.Thread(target=restart, args=(daemon, signal.SIGKILL), kwargs={"away_s": AWAY_S})
        struck_at = time.monotonic()
        back.start()
        for name in ("gone", "kept"):
            leftovers.end(containers[name], quiet_s=0.2)
        caller.join(AWAY_S)
        ((told_at, answer),) = told
        assert told_at - struck_at < 6
        assert (answer.status_code, answer.json()["code"]) == (409, "sandbox_gone")
        answer = run(api, made["plain"], command="true")
        assert (answer.status_code, answer.json()["code"]) == (503, "no_runtime")
        back.join(60)

        until(lambda: run(api, made["plain"], command="true").status_code == 200)
        assert run(api, made["plain"], command="cat /work/name").json()["stdout"] == f"{made['plain']}\n"
        assert run(api, made["plain"], command="pgrep -cx sleep").json()["stdout"] <= "1\n"  # only the background's
        until(lambda: state(api, made["gone"]) == ("ended", "host_lost"))
        until(lambda: state(api, made["kept"])[0] == "stopped")
        assert run(api, made["kept"], command="cat /work/name").json()["stdout"] == f"{made['kept']}\n"
        ended = api.get(f"/sandboxes/{made['plain']}/commands/{background}", params={"wait": 40}).json()
        while ended["status"] == "running":
            ended = api.get(f"/sandboxes/{made['plain']}/commands/{background}", params={"wait": 40}).json()
        ended = api.get(f"/sandboxes/{made['plain']}/commands/{background}").json()
        assert (ended["status"], ended["stdout"].split()) == ("exited", [str(n) for n in range(1, 41)])
        assert run(api, made["plain"], command="ls /work").json()["stdout"] == "name\n"
    assert served.stop() == 0
    assert served.containers() == []


def make(api: httpx.Client, **body: Any) -> str:
    return str(api.post("/sandboxes", json={"network": "none", **body}).raise_for_status().json()["id"])


def running(api: httpx.Client, sandbox: str) -> list[Any]:
    return list(api.get(f"/sandboxes/{sandbox}/commands", params={"status": "running"}).json()["items"])


def state(api: httpx.Client, sandbox: str) -> tuple[str, str | None]:
    found = api.get(f"/sandboxes/{sandbox}").json()
    return found["status"], found["ended_reason"]


def container_of(daemon: OwnDaemon, sandbox: str) -> str:  # noqa: F811
    import docker

    client = docker.DockerClient(daemon.address)
    (found,) = client.containers.list(filters={"label": f"sandgate.sandbox={sandbox}"})
    client.close()
    return str(found.id)
