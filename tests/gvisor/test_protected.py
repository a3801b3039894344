"""Protected files through the whole console: people put them there, agents read them, nobody's command changes them;
what was found, unsealed or exempted is told and recorded."""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from .served import CHECKOUT, Served, until

SETTINGS = """
import datetime
from django.utils import timezone
from console.workspaces import agents
from console.workspaces.models import Agent
until = timezone.now() + datetime.timedelta(hours=1)
agents.change_tools(Agent.objects.get(), by=None, **{settings})
"""


class Desk:
    """An agent, a member and a reviewer at one sandbox of the agent's."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.agent, self.people, self.review = (served.api(key) for key in ("agent", "workspace", "review"))
        self.sandbox = str(self.agent.post("/sandboxes", json={"network": "none"}).raise_for_status().json()["id"])

    def at(self, rest: str) -> str:
        return f"/sandboxes/{self.sandbox}/{rest}"

    def put(self, path: str, content: str = "A=1\n", **more: Any) -> Any:
        return self.people.post(self.at("files"), json={"path": path, "content": content, **more})

    def run(self, command: str) -> dict[str, Any]:
        """The action of a member's command."""
        ran = self.people.post(self.at("commands"), json={"command": command}).raise_for_status().json()
        return dict(self.people.get(f"/actions/{ran['action_id']}").json()) | {"stdout": ran["stdout"]}

    def approved(self, path: str, body: dict[str, Any], *, meanwhile: str = "") -> Any:
        """An agent's call, with a reviewer who approves what it waits for; `meanwhile`: a command that ran before."""
        answers: list[Any] = []
        call = threading.Thread(target=lambda: answers.append(self.agent.post(self.at(path), json=body)))
        call.start()
        find = {"status": "pending"}
        (action,) = until(lambda: answers or self.agent.get("/actions", params=find).json()["items"])
        if not answers:
            if meanwhile:
                self.run(meanwhile)
            decision = {"verdict": "approve", "digest": action["digest"]}
            self.review.post(f"/actions/{action['id']}/decision", json=decision).raise_for_status()
            self.last = action
        call.join(60)
        return answers[0]

    def audit(self, event: str) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(f"file:{self.served.var}/db.sqlite3?mode=ro", uri=True)) as db:
            found = db.execute("select data from workspaces_auditentry where event = ? order by seq", (event,))
            return [json.loads(data) for (data,) in found]

    def settings(self, words: str) -> None:
        command = [sys.executable, "manage.py", "shell", "-v", "0", "-c", SETTINGS.replace("{settings}", words)]
        subprocess.run(command, cwd=CHECKOUT, env=self.served.environment, check=True)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    console = Served(tmp_path_factory.mktemp("protected")).up()
    yield Desk(console)
    console.close()


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code", "")


def test_a_person_puts_a_secret_in_and_no_command_changes_it(desk: Desk) -> None:
    assert code_of(desk.put("/work/.env")) == (403, "protected_path")
    written = desk.put("/work/.env", protected=True)
    assert written.status_code == 200, written.text
    assert written.json()["protected"] == [{"path": "/work/.env", "sealed": True}]
    assert desk.run("echo B >> /work/.env; rm -f /work/.env; cat /work/.env")["stdout"] == "A=1\n"
    read = desk.agent.get(desk.at("files"), params={"path": "/work/.env"}).json()
    assert read["content"] == "A=1\n"
    assert desk.audit("sandbox.protected_read")[0]["path"] == "/work/.env"
    assert desk.audit("sandbox.protected_written")[0]["files"] == [{"path": "/work/.env", "sealed": True}]


def test_no_door_writes_to_a_protected_path(desk: Desk) -> None:
    for who in (desk.agent, desk.people):
        body = {"path": "/work/id_rsa", "content": "x"}
        assert code_of(who.post(desk.at("files"), json=body)) == (403, "protected_path")
        raw = who.put(desk.at("files/raw"), params={"path": "/work/id_rsa"}, content=b"x")
        assert code_of(raw) == (403, "protected_path")
    for tool, more in (("write", {"content": "x"}), ("edit", {"version": "0" * 12, "edits": []})):
        body = {"conversation": "c", "arguments": {"path": "/work/id_rsa", **more}}
        assert desk.agent.post(f"/tools/{tool}", json=body).status_code in (403, 422)
    desk.run("mkdir -p /work/.ssh /work/plain; ln -sfn /work/.ssh /work/plain/way")
    linked = desk.put("/work/plain/way/config")
    assert code_of(linked) == (403, "protected_path")
    agents = desk.agent.post(desk.at("files"), json={"path": "/work/x.env", "content": "x", "protected": True})
    assert code_of(agents) == (403, "protected_path")
    assert desk.agent.get("/actions", params={"status": "pending"}).json()["items"] == []


def test_what_a_command_makes_is_in_its_outcome_and_in_the_audit_log(desk: Desk) -> None:
    action = desk.run("echo k > /work/new.key; mkdir -p /work/node_modules/a; echo k > /work/node_modules/a/b.pem")
    told = sorted(action["outcome"]["result"]["protected"], key=lambda each: each["path"])
    wanted = [{"path": "/work/new.key", "sealed": True}, {"path": "/work/node_modules/a/b.pem", "sealed": False}]
    assert told == sorted(wanted, key=lambda each: str(each["path"]))
    assert "protected" not in desk.run("true")["outcome"]["result"]
    desk.agent.get(desk.at("files"), params={"path": "/work/new.key"})
    assert [row["path"] for row in desk.audit("sandbox.protected_read")] == ["/work/.env", "/work/new.key"]
    assert any(row["action"] == action["id"] for row in desk.audit("sandbox.protected_found"))


def test_unsealing_waits_for_a_person_and_is_recorded(desk: Desk) -> None:
    desk.put("/work/un/.env", protected=True)
    answer = desk.approved("unseal", {"path": "/work/un/.env"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["was_sealed"] is True
    assert desk.last["tool"] == "unseal"
    assert desk.run("echo B >> /work/un/.env; cat /work/un/.env")["stdout"] == "A=1\nB\n"
    assert code_of(desk.put("/work/un/.env")) == (403, "protected_path")
    assert desk.audit("sandbox.unsealed")[-1]["path"] == "/work/un/.env"
    assert code_of(desk.people.post(desk.at("unseal"), json={"path": "/work/no"})) == (404, "file_not_found")


def test_an_unsealing_is_of_the_file_that_was_on_the_card(desk: Desk) -> None:
    for path in ("/work/l/a/.env", "/work/l/b/.env"):
        desk.put(path, protected=True)
    desk.run("cd /work/l; ln -sfn a/.env link; ln -sfn a way; echo plain > turned; mkdir in; echo plain > in/x")
    for path, real in (("/work/l/link", "/work/l/a/.env"), ("/work/l/way/.env", "/work/l/a/.env")):
        answer = desk.agent.post(desk.at("unseal"), json={"path": path})
        assert answer.status_code == 422, answer.text
        assert real in answer.json()["detail"]
    assert code_of(desk.agent.post(desk.at("unseal"), json={"path": "/work/l/no"})) == (404, "file_not_found")
    assert desk.agent.get("/actions", params={"status": "pending"}).json()["items"] == []
    for path, turn in (("/work/l/turned", "ln -sfn b/.env turned"), ("/work/l/in/x", "rm -r in; ln -s b in; ls in")):
        answer = desk.approved("unseal", {"path": path}, meanwhile=f"cd /work/l; {turn}")
        assert code_of(answer) == (409, "superseded"), answer.text
        assert desk.agent.get(f"/actions/{desk.last['id']}").json()["status"] == "superseded"
    member = desk.people.post(desk.at("unseal"), json={"path": "/work/l/turned"})
    assert code_of(member) == (422, "bad_path"), member.text
    assert desk.run("cd /work/l; for f in a b; do echo x >> $f/.env; cat $f/.env; done")["stdout"] == "A=1\nA=1\n"


def test_settings_add_names_and_exempt_a_path_from_the_next_call_on(desk: Desk) -> None:
    desk.put("/work/ex/.env", protected=True)
    desk.settings(
        """{"protected_more": ["*.crypt"],
        "protected_exempt": [{"path": "/work/ex/.env", "expires_at": until, "reason": "x"}]}"""
    )
    refused = desk.agent.post(desk.at("files"), json={"path": "/work/a.crypt", "content": "x"})
    assert code_of(refused) == (403, "protected_path")
    written = desk.approved("files", {"path": "/work/ex/.env", "content": "NEW\n"})
    assert written.status_code == 200, written.text
    assert "exempt_path" in desk.last["flags"]
    assert desk.run("echo x >> /work/ex/.env; echo k > /work/b.crypt; cat /work/ex/.env")["stdout"] == "NEW\nx\n"
    desk.settings("""{"protected_exempt": []}""")
    assert code_of(desk.agent.post(desk.at("files"), json={"path": "/work/ex/.env", "content": "x"}))[0] == 403


def test_nobody_is_asked_for_what_the_sandbox_would_refuse(desk: Desk) -> None:
    """A file that is sealed under a name that nothing protects; one with another name, which a write would part."""
    desk.put("/work/ask/token.txt", protected=True)
    refused = desk.agent.post(desk.at("files"), json={"path": "/work/ask/token.txt", "content": "x"})
    assert code_of(refused) == (403, "protected_path")
    assert "unseal" in refused.json()["detail"]
    found = desk.agent.post("/tools/read", json={"conversation": "linked", "arguments": {"path": "."}}).json()
    linked = {"command": "echo one > one; ln one two; sha256sum < one"}
    ran = desk.people.post(f"/sandboxes/{found['sandbox_id']}/commands", json=linked).json()
    arguments = {"path": "one", "content": "x", "version": ran["stdout"][:12]}
    written = desk.agent.post("/tools/write", json={"conversation": "linked", "arguments": arguments})
    assert code_of(written) == (409, "hard_link"), written.text
    assert desk.agent.get("/actions", params={"status": "pending"}).json()["items"] == []


def test_an_approved_write_whose_exemption_has_ended_is_not_executed(desk: Desk) -> None:
    desk.put("/work/over/.env", protected=True)
    soon = "timezone.now() + datetime.timedelta(seconds=15)"
    exempt = f"""{{"path": "/work/over/.env", "expires_at": {soon}, "reason": "x"}}"""
    desk.settings(f"""{{"protected_exempt": [{exempt}]}}""")
    answer = desk.approved("files", {"path": "/work/over/.env", "content": "NEW\n"}, meanwhile="sleep 16")
    assert code_of(answer) == (403, "protected_path"), answer.text
    outcome = desk.agent.get(f"/actions/{desk.last['id']}").json()["outcome"]
    assert (outcome["executed"], outcome["may_retry"]) == (False, False)
    assert desk.run("cat /work/over/.env")["stdout"] == "A=1\n"


def test_an_edit_that_is_refused_in_the_sandbox_is_not_executed(desk: Desk) -> None:
    desk.settings("""{"write_mode": "never"}""")
    body = {"path": "e.txt", "content": "one\n"}
    assert desk.agent.post("/tools/write", json={"conversation": "e", "arguments": body}).status_code == 200
    edits = [{"do": "replace", "from": "1bcdf", "lines": ["two"]}]
    stale = {"conversation": "e", "arguments": {"path": "e.txt", "version": "0" * 12, "edits": edits}}
    outcome = desk.agent.post("/tools/edit", json=stale).json()["outcome"]
    assert (outcome["executed"], outcome["error"]["code"]) == (False, "stale_edit")
    desk.settings("""{"write_mode": "always"}""")
