"""What happens to a sandbox by itself stands in the log as nobody's request."""

from pathlib import Path

import docker

from sandboxes.engine import EngineConfig
from tests.gvisor.served import Served, until


def test_a_sandbox_that_dies_is_not_logged_under_the_request_that_made_it(tmp_path: Path) -> None:
    served = Served(tmp_path / "var").up()
    try:
        with served.api("workspace") as api:
            named = {"X-Request-Id": "made-by-me"}
            sandbox = api.post("/sandboxes", json={}, headers=named).raise_for_status().json()["id"]
            api.post(f"/sandboxes/{sandbox}/commands", json={"command": "true"}, headers=named).raise_for_status()
        client = docker.DockerClient(EngineConfig.load(served.var, "").docker_host)
        for container_id in served.containers():
            client.api.kill(container_id)
        client.close()
        (line,) = until(lambda: [line for line in served.printed if f"{sandbox} is lost" in line])
        assert "request_id" not in line
        assert "made-by-me" not in line
    finally:
        served.close()
