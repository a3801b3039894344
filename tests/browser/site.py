"""One real console for the browser tests, with people and agents in it, and an agent's side of each story."""

import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import Any

import httpx

from tests.gvisor.served import CHECKOUT, Served
from tests.people import PASSWORD

# As an operator would, from a shell: the pages make no workspaces yet.
CAST = f"""
from console.workspaces import agents, keys, members, permissions
from console.workspaces.models import Workspace
from tests import people
home = Workspace.objects.get()
people.member(home, "bob", "approvals:review", "sandboxes:read")
people.member(home, "ines", "approvals:review", "sandboxes:read")
people.member(Workspace.objects.create(name="Elsewhere"), "mallory", *permissions.PRESETS["admin"])
other = people.agent(home, "other")
print("other_key=" + keys.make_agent_key(other, name="other", by=None)[1])
print("home=" + home.pk)
print("elsewhere=" + Workspace.objects.get(name="Elsewhere").pk)
assert {PASSWORD!r}
"""


class Site:
    def __init__(self, served: Served) -> None:
        self.served = served
        self.known: dict[str, str] = {}

    def furnish(self) -> None:
        for line in self.shell(CAST).splitlines():
            name, found, value = line.partition("=")
            if found:
                self.known[name] = value

    def shell(self, code: str) -> str:
        command = [sys.executable, "manage.py", "shell", "--no-imports", "-v0", "-c", code]
        done = subprocess.run(
            command, cwd=CHECKOUT, env=self.served.environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def url(self) -> str:
        return self.served.url

    def page(self, *parts: str, workspace: str = "home") -> str:
        return "/".join([self.url, "w", self.known[workspace], *parts])

    def agent(self) -> "AgentSide":
        return AgentSide(self.served.api("agent"))


class AgentSide:
    """Calls that wait for a person run on threads, as an agent's own process would."""

    def __init__(self, api: httpx.Client) -> None:
        self.api = api
        answer = api.post("/sandboxes", json={"label": "browser"})
        assert answer.status_code == 201, answer.text
        self.sandbox: str = answer.json()["id"]

    def run(self, command: str, **more: Any) -> "Future[httpx.Response]":
        return self._later("commands", {"command": command, **more})

    def write(self, path: str, content: str) -> "Future[httpx.Response]":
        return self._later("files", {"path": path, "content": content, "encoding": "utf-8"})

    def _later(self, door: str, body: dict[str, Any]) -> "Future[httpx.Response]":
        answer: Future[httpx.Response] = Future()

        def call() -> None:
            try:
                answer.set_result(self.api.post(f"/sandboxes/{self.sandbox}/{door}", json=body))
            except Exception as error:
                answer.set_exception(error)

        threading.Thread(target=call, daemon=True).start()
        return answer

    def close(self) -> None:
        self.api.delete(f"/sandboxes/{self.sandbox}")
        self.api.close()
