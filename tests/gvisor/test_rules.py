"""Rules in front of a real sandbox: what one allows runs at once, what one denies never does, links lead nowhere."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .served import CHECKOUT, Served

pytestmark = pytest.mark.gvisor
# As a person on the page Rules would.
RULES = """
from approvals.rules import acts, ticking
from console.workspaces.models import Member
alice = Member.objects.with_permission("rules:manage").first()
ticking.tick("read_only_shell", by=alice)
acts.make(by=alice, effect="deny", tool="run", pattern="touch", note="No.")
for tool in ("write", "edit"):
    acts.make(by=alice, effect="allow", tool=tool, pattern="/work/docs/**")
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "var").up()
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-v0", "-c", RULES]
    subprocess.run(command, cwd=CHECKOUT, env=served.environment, check=True, capture_output=True, timeout=60)
    yield served
    served.close()


def test_rules_hold_before_a_real_sandbox(served: Served) -> None:
    agent, member = served.api("agent"), served.api("workspace")
    sandbox = agent.post("/sandboxes", json={}).raise_for_status().json()["id"]

    def people(command: str) -> str:
        answer = member.post(f"/sandboxes/{sandbox}/commands", json={"command": command}).raise_for_status()
        return str(answer.json()["stdout"])

    people("mkdir docs secret; printf one > docs/a; printf kept > secret/b; ln -s ../secret docs/link")
    ran = agent.post(f"/sandboxes/{sandbox}/commands", json={"command": "cat docs/a | wc -c && ls docs"})
    assert (ran.status_code, ran.json()["stdout"]) == (200, "3\na\nlink\n")
    denied = agent.post(f"/sandboxes/{sandbox}/commands", json={"command": "timeout 5 touch made; ls"})
    assert (denied.status_code, denied.json()["code"], denied.json()["reason"]) == (403, "denied", "No.")
    assert "made" not in people("ls")

    def write(path: str) -> int:
        body = {"path": path, "content": "new", "encoding": "utf-8"}
        return agent.post(f"/sandboxes/{sandbox}/files", json=body).status_code

    assert write("/work/docs/a") == 200
    assert write("/work/docs/link/b") == 422
    assert write("/work/docs/link/new") in (403, 409, 422)
    assert people("cat docs/a secret/b; ls secret") == "newkeptb\n"
    actions = agent.get("/actions").json()["items"]
    assert {action["outcome"]["decided_by"] for action in actions if action["outcome"]} <= {"rule"}
