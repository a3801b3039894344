"""A sandbox that somebody pauses: who waits is told in time, and it is not ended for it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker
import httpx
import pytest

from sandboxes.engine import EngineConfig

from .served import Served, until


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "var").up()
    yield served
    served.close()


def run(api: httpx.Client, sandbox: str, command: str) -> Any:
    return api.post(f"/sandboxes/{sandbox}/commands", json={"command": command}).json()


def test_it_is_told_in_time_and_goes_on_when_it_is_let(served: Served) -> None:
    api = served.api("workspace")
    sandbox = served.api("agent").post("/sandboxes", json={"network": "none"}).raise_for_status().json()["id"]
    client = docker.DockerClient(EngineConfig.load(served.var, "").docker_host)
    (container,) = client.containers.list(filters={"label": f"sandgate.sandbox={sandbox}"})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run, api, sandbox, "sleep 60")
        time.sleep(1)
        container.pause()
        began = time.monotonic()
        said = waiting.result(timeout=30)
        took_s = time.monotonic() - began
    assert (said["code"], said["ended_reason"]) == ("sandbox_gone", "host_lost"), said
    assert took_s < 9  # 5 to 6, and a busy machine
    time.sleep(12)  # longer than one try to reach it again takes
    container.unpause()
    until(lambda: run(api, sandbox, "echo here").get("stdout") == "here\n", within_s=30)
    row = api.get(f"/sandboxes/{sandbox}").json()
    assert (row["status"], row["ended_reason"]) == ("running", None)
    client.close()
