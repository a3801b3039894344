"""A whole console for one test: `manage.py up` in a process of its own, on the engine that `bin/test` brought up, with
its own state directory. Killed and started again at will."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker
import httpx

from console import state
from lib import jail
from lib.place import Place
from sandboxes.engine import EngineConfig
from tests import migrated

from . import leavings
from .engines import CHECKOUT, engine_var


class Served:
    def __init__(self, var: Path, **env: str) -> None:
        self.var, self.env = var, env
        self.process: subprocess.Popen[str] | None = None
        self.printed: list[str] = []
        var.mkdir(mode=0o700, exist_ok=True)
        leavings.note(state.instance(var))
        shutil.copy(engine_var() / "engine.json", var / "engine.json")
        migrated.copy(var)

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "SANDGATE_VAR": str(self.var),
            "SANDGATE_KEY_DECISIONS": "1",
            "SANDGATE_POOL_MOST": "0",  # tests of the pool say otherwise; the others count containers
            "PYTHONUNBUFFERED": "1",
        }
        return {**os.environ, **own, **self.env}

    def up(self) -> "Served":
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", "0"],
            cwd=CHECKOUT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout
        watchdog = threading.Timer(60, self.process.kill)
        watchdog.start()
        for line in self.process.stdout:
            self.printed.append(line.rstrip())
            if line.startswith("ready on "):
                break
        watchdog.cancel()
        assert "ready on " in "".join(self.printed[-1:]), "\n".join(self.printed)
        self.url = self.printed[-1].removeprefix("ready on ")
        threading.Thread(target=self.printed.extend, args=(self.process.stdout,), daemon=True).start()
        return self

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait(timeout=10)

    def stop(self) -> int:
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def close(self) -> None:
        """Ends everything of this instance, however the test left it."""
        if self.process and self.process.poll() is None:
            self.stop()
        elif self.process and self.containers():
            self.up().stop()  # killed in the test: a new start takes its sandboxes up, its stop ends them
        jail.clear(Place(var=self.var, cache=self.var))  # as bin/up does behind a console that was killed without any

    @property
    def first_run(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.var / "first-run.json").read_text())
        return found

    def api(self, key: str, timeout_s: float = 130) -> httpx.Client:
        """`key`: agent, workspace or review."""
        headers = {"X-API-Key": self.first_run[f"{key}_key"]}
        return httpx.Client(base_url=f"{self.url}/v1", headers=headers, timeout=timeout_s, trust_env=False)

    def containers(self) -> list[str]:
        """Ids of this instance's containers, from Docker itself."""
        client = docker.DockerClient(EngineConfig.load(self.var, "").docker_host)
        try:
            mine = {"label": f"sandgate.instance={state.instance(self.var)}"}
            return [found.id for found in client.containers.list(all=True, filters=mine, ignore_removed=True)]
        finally:
            client.close()


def until(true: Callable[[], Any], *, within_s: float = 20) -> Any:
    """What `true` answers once it is truthy; fails when that takes longer than `within_s`."""
    end = time.monotonic() + within_s
    while not (found := true()):
        assert time.monotonic() < end, f"not within {within_s} s"
        time.sleep(0.05)
    return found
