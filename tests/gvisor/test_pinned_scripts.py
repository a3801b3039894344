"""Scripts over REST on the real engine: what a reviewer saw of a file is what of it runs, or nothing does."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from .served import Served, until
from .test_gated_writes import Desk

pytestmark = pytest.mark.gvisor


class Runs(Desk):
    def run_gated(self, command: str, **more: Any) -> "tuple[Future[httpx.Response], dict[str, Any]]":
        body = {"command": command, **more}
        call = self.pool.submit(self.agent.post, f"/sandboxes/{self.sandbox}/commands", json=body)
        return call, until(lambda: call.done() or self.pending())

    def last(self) -> dict[str, Any]:
        items: list[dict[str, Any]] = self.agent.get("/actions", params={"limit": 1}).json()["items"]
        return items[0]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(Path(tmp_path_factory.mktemp("scripts")) / "var").up()
    yield console
    console.close()


@pytest.fixture
def desk(served: Served) -> Iterator[Runs]:
    desk = Runs(served)
    yield desk
    desk.agent.delete(f"/sandboxes/{desk.sandbox}")


def test_what_was_seen_is_bound_and_runs(desk: Runs) -> None:
    text = "import sys\nprint(sys.argv, open(__file__).read() != '')\n"
    desk.run(f"mkdir -p a; cat > a/x.py <<'E'\n{text}E")
    call, action = desk.run_gated("python3 -u x.py 'a b'", cwd="/work/a")
    assert action["script"] == {"path": "/work/a/x.py", "sha256": sha256(text.encode()).hexdigest(), "size": len(text)}
    assert "unpinned_code" not in action["flags"]
    desk.approve(action)
    assert call.result().json()["stdout"] == "['x.py', 'a b'] True\n"
    assert desk.run("echo >> a/x.py; echo free") == "free\n"


def test_changed_while_it_waits_it_ends_superseded_and_a_new_proposal_shows_what_it_is(desk: Runs) -> None:
    desk.run("echo 'echo one >> out' > x.sh; chmod +x x.sh")
    for turn in ("echo 'echo two >> out' >> x.sh", "rm x.sh", "mv x.sh y.sh; ln -s y.sh x.sh"):
        desk.run("rm -f x.sh y.sh; echo 'echo one >> out' > x.sh; chmod +x x.sh")
        call, action = desk.run_gated("./x.sh")
        desk.run(turn)
        desk.approve(action)
        assert (call.result().status_code, call.result().json()["code"]) == (409, "script_changed"), turn
        ended = desk.agent.get(f"/actions/{action['id']}").json()
        assert (ended["status"], ended["outcome"]["executed"], ended["outcome"]["may_retry"]) == (
            "superseded",
            False,
            True,
        )
    assert desk.run("cat out 2>/dev/null; true") == ""
    call, again = desk.run_gated("./x.sh")
    assert again["script"]["path"] == "/work/y.sh"
    desk.approve(again)
    assert call.result().json()["exit_code"] == 0
    assert desk.run("cat out") == "one\n"


def test_rewritten_without_end_from_the_approval_on_nothing_else_ever_runs(desk: Runs) -> None:
    good, evil = "echo good\\n", "echo evil\\n"
    loop = f"while :; do printf '{evil}' > x.sh; printf '{good}' > x.sh; done"
    desk.run(f"printf '{good}' > x.sh")
    results = []
    for _ in range(8):
        desk.run(f"printf '{good}' > x.sh")
        call, action = desk.run_gated("bash x.sh")
        background = {"command": loop, "background": True}
        writer = desk.member.post(f"/sandboxes/{desk.sandbox}/commands", json=background).raise_for_status().json()
        desk.approve(action)
        answer = call.result()
        results.append(answer.json()["stdout"] if answer.status_code == 200 else answer.json()["code"])
        desk.member.delete(f"/sandboxes/{desk.sandbox}/commands/{writer['id']}").raise_for_status()
    assert set(results) <= {"good\n", "script_changed"}


def test_a_link_that_is_turned_after_the_look_runs_what_was_seen(desk: Runs) -> None:
    desk.run("echo 'sleep 1; echo seen' > real.sh; echo 'echo other' > other.sh; ln -s real.sh link.sh")
    call, action = desk.run_gated("bash link.sh")
    assert action["script"]["path"] == "/work/real.sh"
    desk.approve(action)
    assert call.result().json()["stdout"] == "seen\n"


def test_in_the_background_it_is_held_until_it_is_stopped(desk: Runs) -> None:
    desk.run("echo 'sleep 100' > serve.sh")
    call, action = desk.run_gated("bash serve.sh", background=True)
    desk.approve(action)
    command = call.result().json()["id"]
    refused = desk.member.post(
        f"/sandboxes/{desk.sandbox}/files", json={"path": "/work/serve.sh", "content": "x", "encoding": "utf-8"}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "busy"), refused.text
    assert desk.run("echo x >> serve.sh || echo held") == "held\n"
    desk.agent.delete(f"/sandboxes/{desk.sandbox}/commands/{command}").raise_for_status()
    until(lambda: desk.run("echo x >> serve.sh && echo free || true") == "free\n")


@pytest.mark.parametrize(
    "command", ["bash x.sh && true", "env bash x.sh", "python3 -m x", "bash /tmp/x.sh", "bash big.sh", "python3 binary"]
)
def test_whatever_else_runs_a_file_is_flagged_and_bound_to_none(desk: Runs, command: str) -> None:
    desk.run(
        "echo true > x.sh; cp x.sh /tmp; head -c 300000 /dev/zero | tr '\\0' '#' > big.sh; head -c 9 /dev/zero > binary"
    )
    _, action = desk.run_gated(command)
    assert (action["script"], "unpinned_code" in action["flags"]) == (None, True), action["flags"]
    desk.agent.post(f"/actions/{action['id']}/cancel").raise_for_status()


def test_a_line_that_names_no_script_takes_no_longer(desk: Runs) -> None:
    began = time.monotonic()
    _, action = desk.run_gated("true")
    assert (action["script"], time.monotonic() - began < 5) == (None, True)
    desk.agent.post(f"/actions/{action['id']}/cancel").raise_for_status()


def test_in_a_plan_it_is_what_the_plan_writes(desk: Runs) -> None:
    calls = [
        {"tool": "write", "arguments": {"path": "job.sh", "content": "echo planned > out\n"}},
        {"tool": "run", "arguments": {"command": "bash job.sh"}},
    ]
    sent = {"conversation": "plan", "calls": calls}
    plan = desk.agent.post("/plans", json=sent, headers={"Prefer": "wait=0"}).json()
    assert plan["items"][1]["script"]["sha256"] == sha256(b"echo planned > out\n").hexdigest()
    desk.review.post(
        f"/plans/{plan['id']}/decision", json={"verdict": "approve", "digest": plan["digest"]}
    ).raise_for_status()
    ended = desk.agent.get(f"/plans/{plan['id']}", params={"wait": 50}).json()
    assert [item["status"] for item in ended["items"]] == ["succeeded", "succeeded"]
