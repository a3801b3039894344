"""An agent's tools over HTTP on a real sandbox: what a model is told, and what a reviewer is shown."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from .served import CHECKOUT, Served, until

SET = """
from console.workspaces import agents
from console.workspaces.models import Agent
agents.change_tools(Agent.objects.get(), by=None, **{settings})
"""


class Desk:
    """An agent that calls its tools in one conversation, a reviewer, and a member who changes things meanwhile."""

    def __init__(self, served: Served) -> None:
        self.served, self.conversation = served, "first"
        self.agent, self.member, self.review = (served.api(key) for key in ("agent", "workspace", "review"))
        self.pool = ThreadPoolExecutor(4)

    def set(self, **settings: Any) -> None:
        command = [sys.executable, "manage.py", "shell", "-c", SET.replace("{settings}", repr(settings))]
        subprocess.run(command, cwd=CHECKOUT, env=self.served.environment, check=True)

    def post(self, tool: str, wait: int = 55, **arguments: Any) -> httpx.Response:
        body = {"conversation": self.conversation, "arguments": arguments}
        return self.agent.post(f"/tools/{tool}", json=body, headers={"Prefer": f"wait={wait}"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of one that nobody is asked about, or that has been."""
        action = self.post(tool, **arguments).raise_for_status().json()
        assert action["status"] == "succeeded", action
        return action["outcome"]["result"]

    def proposed(self, tool: str, **arguments: Any) -> "tuple[Future[httpx.Response], dict[str, Any]]":
        call = self.pool.submit(lambda: self.post(tool, **arguments))
        return call, until(lambda: self.pending() or (call.done() and pytest.fail(call.result().text)))

    def approved(self, tool: str, **arguments: Any) -> dict[str, Any]:
        call, action = self.proposed(tool, **arguments)
        self.approve(action)
        ended = call.result().json()
        assert ended["status"] == "succeeded", ended
        return ended["outcome"]["result"]

    def pending(self) -> dict[str, Any] | None:
        items = self.agent.get("/actions", params={"status": "pending"}).json()["items"]
        return items[0] if items else None

    def approve(self, action: dict[str, Any]) -> None:
        body = {"verdict": "approve", "digest": action["digest"]}
        self.review.post(f"/actions/{action['id']}/decision", json=body).raise_for_status()

    @property
    def sandbox(self) -> str:
        found = {one["conversation"]: one["id"] for one in self.agent.get("/sandboxes").json()}
        return str(found[self.conversation])

    def run(self, command: str) -> str:
        """As a member, whom nobody asks."""
        answer = self.member.post(f"/sandboxes/{self.sandbox}/commands", json={"command": command})
        assert answer.raise_for_status().json()["exit_code"] == 0, answer.text
        return str(answer.json()["stdout"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("tools")).up()
    yield console
    console.close()


@pytest.fixture
def desk(served: Served) -> Iterator[Desk]:
    """Asked about everything, with the newest toolset."""
    desk = Desk(served)
    desk.call("processes")
    yield desk
    for action in desk.agent.get("/actions", params={"status": "pending"}).json()["items"]:
        desk.agent.post(f"/actions/{action['id']}/cancel").raise_for_status()


TEN = "".join(f"line {n}\n" for n in range(1, 11))


def anchors(result: dict[str, Any]) -> dict[int, str]:
    return {number: f"{number}{tag}" for number, tag, _ in result["lines"]}


def test_a_file_is_written_read_and_edited_and_each_change_is_asked_about(desk: Desk) -> None:
    written = desk.approved("write", path="a/ten.txt", content=TEN)
    assert desk.run("cat a/ten.txt") == TEN
    read = desk.call("read", path="a/ten.txt")
    assert read["version"] == written["version"]
    assert read["text"].splitlines()[0].endswith(f"version {read['version']}  lines 1-10 of 10  LF  final newline yes")
    assert read["text"].splitlines()[2] == f"{anchors(read)[2]}|line 2"
    edits = [{"do": "replace", "from": anchors(read)[2], "lines": ["two"]}]
    edited = desk.approved("edit", path="a/ten.txt", version=read["version"], edits=edits)
    assert desk.run("cat a/ten.txt") == TEN.replace("line 2", "two")
    assert edited["changed"] is True
    assert edited["version"] in edited["text"]
    assert "|two" in edited["text"]
    assert desk.call("read", path="a/ten.txt")["version"] == edited["version"]


NEVER_ASK = {"read", "glob", "grep", "follow", "stop", "processes", "publish", "read_file", "list_files"}


@pytest.mark.parametrize("toolset", [1, 2])
def test_no_tool_that_changes_anything_does_so_before_a_person_has_approved(desk: Desk, toolset: int) -> None:
    desk.run("printf 'one\\n' > asked.txt")
    read = desk.call("read", path="asked.txt")
    edits = [{"do": "replace", "from": anchors(read)[1], "lines": ["by-edit"]}]
    calls = {
        "run": {"command": "touch by-run"},
        "write": {"path": "by-write", "content": "x"},
        "edit": {"path": "asked.txt", "version": read["version"], "edits": edits},
        "run_command": {"command": "touch by-run"},
        "write_file": {"path": "by-write", "content": "x"},
    }
    desk.set(toolset=toolset)
    try:
        names = {tool["name"] for tool in desk.agent.get("/tools").json()["tools"]}
        assert names <= set(calls) | NEVER_ASK, "a new tool: add it here, with a call that shows its gate"
        for name in sorted(names - NEVER_ASK):
            answer = desk.post(name, wait=0, **calls[name])
            assert (answer.status_code, answer.json()["status"]) == (202, "pending"), name
            assert desk.run("ls by-run by-write 2>/dev/null || true; cat asked.txt") == "one\n"
            desk.agent.post(f"/actions/{answer.json()['id']}/cancel").raise_for_status()
    finally:
        desk.set(toolset=2)


def test_reading_and_searching_ask_nobody(desk: Desk) -> None:
    desk.call("read", path="/etc/passwd", limit=1)
    desk.run("mkdir -p src && printf 'def load():\\n    pass\\n' > src/app.py && touch src/other.txt")
    found = desk.call("glob", pattern="*.py")
    assert found["paths"] == ["src/app.py"]
    assert found["text"].splitlines()[0] == "src/app.py"
    matched = desk.call("grep", pattern=r"def \w+", glob="*.py")
    assert matched["matches"][0] | {"path": "src/app.py", "line": 1, "column": 1} == matched["matches"][0]
    assert matched["text"].splitlines()[0] == "src/app.py:1:1:def load():"
    nothing = desk.call("grep", pattern="no such thing")
    assert nothing["matches"] == []
    assert "0 of 0 matches" in nothing["text"]
    assert "files searched" in nothing["text"]


def test_an_edit_of_lines_that_a_command_changed_meanwhile_is_refused_with_the_lines_as_they_are(desk: Desk) -> None:
    desk.approved("write", path="stale.txt", content=TEN)
    read = desk.call("read", path="stale.txt")
    edits = [{"do": "replace", "from": anchors(read)[5], "lines": ["five"]}]
    call, action = desk.proposed("edit", path="stale.txt", version=read["version"], edits=edits)
    desk.run("sed -i 's/line 5/somebody else/' stale.txt")
    desk.approve(action)
    ended = call.result().json()
    assert (ended["status"], ended["outcome"]["error"]["code"]) == ("superseded", "stale_edit")
    assert ended["outcome"]["executed"] is False
    assert ended["outcome"]["text"].startswith("Nothing was written.")
    assert "|somebody else" in ended["outcome"]["text"]
    now = desk.call("read", path="stale.txt")
    assert ended["outcome"]["error"]["version"] == now["version"]
    assert desk.run("cat stale.txt") == TEN.replace("line 5", "somebody else")
    # Proposed again, it is refused before anybody is asked.
    again = desk.post("edit", path="stale.txt", version=read["version"], edits=edits)
    assert (again.status_code, again.json()["code"]) == (409, "stale_edit")
    assert again.json()["version"] == now["version"]
    assert again.json()["text"].startswith("Nothing was written.")
    assert "|somebody else" in again.json()["text"]
    assert [5, anchors(now)[5][1:], "somebody else"] in again.json()["lines"]
    assert desk.pending() is None
    print(f"> edit stale.txt {edits}\n{ended['outcome']['text']}")


def test_an_edit_whose_file_changed_elsewhere_comes_back_to_its_reviewer(desk: Desk) -> None:
    desk.approved("write", path="carried.txt", content=TEN)
    read = desk.call("read", path="carried.txt")
    edits = [{"do": "replace", "from": anchors(read)[2], "lines": ["two"]}]
    call, action = desk.proposed("edit", path="carried.txt", version=read["version"], edits=edits)
    desk.run("sed -i 's/line 9/nine/' carried.txt")
    desk.approve(action)
    ended = call.result().json()
    assert (ended["status"], ended["outcome"]["error"]["code"]) == ("superseded", "stale_edit")
    assert desk.run("cat carried.txt") == TEN.replace("line 9", "nine"), "under the first approval nothing is written"
    back = desk.pending()
    assert back is not None
    assert back["id"] == ended["outcome"]["error"]["next_action"]
    assert back["id"] in ended["outcome"]["text"]
    assert back["parent_action"] == action["id"]
    assert back["digest"] != action["digest"]
    assert "carried_over" in back["flags"]
    desk.approve(back)
    done = desk.agent.get(f"/actions/{back['id']}", params={"wait": 30}).json()
    assert done["status"] == "succeeded", done
    assert desk.run("cat carried.txt") == TEN.replace("line 9", "nine").replace("line 2", "two")


def test_the_same_edit_again_after_it_was_done_gets_its_outcome(desk: Desk) -> None:
    """Its caller left before: drafted again it would be refused, as an edit of what it has itself made."""
    desk.approved("write", path="again.txt", content=TEN)
    read = desk.call("read", path="again.txt")
    sent = {
        "path": "again.txt",
        "version": read["version"],
        "edits": [{"do": "delete", "from": anchors(read)[1]}],
    }
    first = desk.post("edit", wait=0, **sent)
    assert (first.status_code, first.json()["status"]) == (202, "pending")
    assert first.headers["location"] == f"/v1/actions/{first.json()['id']}"
    desk.approve(first.json())
    # Looked at with the member's key: the agent itself has not been given the outcome yet.
    until(lambda: desk.member.get(f"/actions/{first.json()['id']}").json()["status"] == "succeeded")
    again = desk.post("edit", **sent)
    assert (again.status_code, again.json()["id"], again.json()["joined"]) == (200, first.json()["id"], True)


def test_the_same_write_again_after_it_was_done_gets_its_outcome(desk: Desk) -> None:
    sent = {"path": "again-written.txt", "content": "one\n"}
    first = desk.post("write", wait=0, **sent).json()
    desk.approve(first)
    until(lambda: desk.member.get(f"/actions/{first['id']}").json()["status"] == "succeeded")
    again = desk.post("write", **sent)
    assert (again.status_code, again.json()["id"], again.json()["joined"]) == (200, first["id"], True)


def test_an_edit_that_changes_nothing_asks_nobody(desk: Desk) -> None:
    desk.approved("write", path="same.txt", content=TEN)
    read = desk.call("read", path="same.txt")
    edits = [{"do": "replace", "from": anchors(read)[1], "lines": ["line 1"]}]
    result = desk.call("edit", path="same.txt", version=read["version"], edits=edits)
    assert (result["changed"], result["version"]) == (False, read["version"])


def test_a_write_over_a_file_needs_its_version(desk: Desk) -> None:
    desk.approved("write", path="there.txt", content="one\n")
    blind = desk.post("write", path="there.txt", content="two\n")
    assert (blind.status_code, blind.json()["code"]) == (409, "stale_edit")
    assert desk.pending() is None
    version = blind.json()["version"]
    assert desk.approved("write", path="there.txt", content="two\n", version=version, mode="755")["changed"]
    assert desk.run("cat there.txt; stat -c %a there.txt") == "two\n755\n"


def test_where_nobody_is_asked_the_sandbox_itself_refuses_and_carries_over(desk: Desk) -> None:
    desk.set(write_mode="never")
    try:
        desk.call("write", path="free.txt", content=TEN)
        read = desk.call("read", path="free.txt")
        desk.run("sed -i 's/line 9/nine/' free.txt")
        edits = [{"do": "replace", "from": anchors(read)[2], "lines": ["two"]}]
        result = desk.call("edit", path="free.txt", version=read["version"], edits=edits)
        assert result["carried"] is True
        assert desk.run("cat free.txt") == TEN.replace("line 9", "nine").replace("line 2", "two")
        refused = desk.post("edit", path="free.txt", version=read["version"], edits=edits).json()
        assert (refused["status"], refused["outcome"]["error"]["code"]) == ("failed", "stale_edit")
        assert refused["outcome"]["text"].startswith("Nothing was written.")
        assert "|two" in refused["outcome"]["text"]
    finally:
        desk.set(write_mode="rules")


def test_a_command_is_run_followed_stopped_and_its_file_kept(desk: Desk) -> None:
    ended = desk.approved("run", command="echo out; echo err >&2; exit 3")
    assert (ended["exit_code"], ended["stdout"], ended["stderr"]) == (3, "out\n", "err\n")
    assert "exit code 3" in ended["text"]
    assert "out\n" in ended["text"]
    begun = desk.approved("run", command="echo started; sleep 600 & sleep 600", background=True)
    assert begun["id"] in begun["text"]
    followed = desk.call("follow", id=begun["id"], wait_s=20)
    assert (followed["data"], followed["next_offset"], followed["status"]) == ("started\n", 8, "running")
    assert [item["id"] for item in desk.call("processes")["items"]] == [begun["id"]]
    stopped = desk.call("stop", id=begun["id"], signal="KILL")
    assert stopped["status"] == "stopped"
    assert desk.call("processes")["items"] == []
    assert desk.call("follow", id=begun["id"], offset=0)["data"] == "started\n"
    desk.run("printf report > report.txt")
    kept = desk.call("publish", path="report.txt", title="The report")
    assert desk.agent.get(f"/artifacts/{kept['artifact_id']}/content").text == "report"


def test_a_conversation_keeps_its_sandbox_and_another_has_its_own(desk: Desk) -> None:
    desk.run("echo mine > mine.txt")
    assert desk.call("read", path="mine.txt")["lines"][0][2] == "mine"
    first, desk.conversation = desk.sandbox, "second"
    missing = desk.post("read", path="mine.txt").json()
    assert (missing["status"], missing["outcome"]["error"]["code"]) == ("failed", "file_not_found")
    assert desk.sandbox != first
    desk.agent.delete(f"/sandboxes/{desk.sandbox}").raise_for_status()


def test_an_agent_pinned_to_toolset_1_has_those_tools_under_the_same_gate(desk: Desk) -> None:
    desk.set(toolset=1)
    try:
        listed = desk.agent.get("/tools", params={"format": "anthropic"}).json()
        assert listed["toolset"] == 1
        assert {tool["name"] for tool in listed["tools"]} == {"list_files", "read_file", "run_command", "write_file"}
        assert desk.post("edit", path="x").status_code == 404
        desk.approved("write_file", path="one/plain.txt", content="a\nb\n")
        desk.approved("write_file", path="one/plain.txt", content="c\nd\n")
        assert desk.call("read_file", path="one/plain.txt")["text"] == "c\nd"
        assert desk.call("list_files", path="one")["text"] == "plain.txt"
        assert "exit code 0" in desk.approved("run_command", command="true")["text"]
    finally:
        desk.set(toolset=2)
