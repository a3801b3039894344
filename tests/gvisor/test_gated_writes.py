"""What was approved for a file is written only over what the reviewer saw there, and only where they saw it."""

import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from random import randbytes

import httpx
import pytest

from .served import Served, until

pytestmark = pytest.mark.gvisor


class Desk:
    """An agent that writes, a reviewer, and a member who changes things meanwhile."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.agent, self.member, self.review = (served.api(key) for key in ("agent", "workspace", "review"))
        self.sandbox = self.agent.post("/sandboxes", json={}).raise_for_status().json()["id"]
        self.pool = ThreadPoolExecutor(4)

    def propose(self, path: str, content: str) -> "tuple[Future[httpx.Response], dict]":
        body = {"path": path, "content": content, "encoding": "utf-8"}
        call = self.pool.submit(self.agent.post, f"/sandboxes/{self.sandbox}/files", json=body)
        return call, until(lambda: call.done() or self.pending())

    def post_file(self, body: dict) -> httpx.Response:
        return self.agent.post(f"/sandboxes/{self.sandbox}/files", json=body)

    def pending(self) -> dict | None:
        items = self.agent.get("/actions", params={"status": "pending"}).json()["items"]
        return next((item for item in items if item["sandbox_id"] == self.sandbox), None)

    def approve(self, action: dict) -> None:
        body = {"verdict": "approve", "digest": action["digest"]}
        self.review.post(f"/actions/{action['id']}/decision", json=body).raise_for_status()

    def run(self, command: str) -> str:
        answer = self.member.post(f"/sandboxes/{self.sandbox}/commands", json={"command": command})
        assert answer.raise_for_status().json()["exit_code"] == 0, answer.text
        return str(answer.json()["stdout"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("writes") / "var").up()
    yield console
    console.close()


@pytest.fixture
def desk(served: Served) -> Iterator[Desk]:
    desk = Desk(served)
    yield desk
    desk.member.delete(f"/sandboxes/{desk.sandbox}").raise_for_status()


def test_an_approved_write_replaces_exactly_what_was_there(desk: Desk) -> None:
    desk.run("printf old > a.txt; chmod 640 a.txt")
    call, action = desk.propose("/work/a.txt", "new")
    desk.approve(action)
    assert call.result().status_code == 200
    assert call.result().json()["sha256"] == sha256(b"new").hexdigest()
    assert desk.run("cat a.txt; stat -c %a a.txt") == "new640\n"


def test_a_file_that_changed_meanwhile_is_not_overwritten(desk: Desk) -> None:
    desk.run("printf old > a.txt")
    call, action = desk.propose("/work/a.txt", "new")
    desk.run("printf 'somebody else' > a.txt")
    desk.approve(action)
    assert (call.result().status_code, call.result().json()["code"]) == (409, "stale_edit")
    assert desk.agent.get(f"/actions/{action['id']}").json()["status"] == "superseded"
    assert desk.run("cat a.txt") == "somebody else"


def test_what_has_become_a_link_meanwhile_is_no_longer_what_was_asked_for(desk: Desk) -> None:
    """Also when it leads to the same bytes, or to nothing yet."""
    desk.run("mkdir d d2; printf old > d/a.txt; printf old > d2/a.txt; printf old > b.txt")
    for path, turn in (
        ("/work/d/a.txt", "mv d dx; ln -s d2 d"),
        ("/work/b.txt", "ln -sfn d2/a.txt b.txt"),
        ("/work/new.txt", "ln -s /home/agent/target new.txt"),
        ("/work/e/new.txt", "ln -s /home/agent e"),
    ):
        call, action = desk.propose(path, "new")
        desk.run(turn)
        desk.approve(action)
        assert call.result().json()["code"] == "stale_edit"
        assert desk.agent.get(f"/actions/{action['id']}").json()["status"] == "superseded"
    assert desk.run("cat d2/a.txt dx/a.txt; ls /home/agent") == "oldold"


def test_nobody_is_asked_for_what_a_link_leads_to_where_nothing_is(desk: Desk) -> None:
    desk.run("mkdir -p /home/agent/.ssh; ln -s /home/agent/.ssh s; ln -s .netrc to")
    for path, real in (("s/config", "/home/agent/.ssh/config"), ("/work/to", "/work/.netrc")):
        answer = desk.post_file({"path": path, "content": "x", "encoding": "utf-8"})
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_path"), answer.text
        assert real in answer.json()["detail"]
        read = desk.agent.get(f"/sandboxes/{desk.sandbox}/files", params={"path": path})
        assert (read.status_code, read.json()["code"]) == (404, "file_not_found")
    assert desk.pending() is None


def test_a_file_that_appeared_meanwhile_is_not_overwritten(desk: Desk) -> None:
    call, action = desk.propose("/work/new/a.txt", "new")
    desk.run("mkdir new; printf first > new/a.txt")
    desk.approve(action)
    assert call.result().json()["code"] == "stale_edit"
    assert desk.run("cat new/a.txt") == "first"


def test_a_directory_that_took_its_place_is_not_what_was_approved(desk: Desk) -> None:
    call, action = desk.propose("/work/a", "new")
    desk.run("mkdir a")
    desk.approve(action)
    assert call.result().json()["code"] == "stale_edit"


def test_a_link_put_in_its_way_after_the_approval_was_asked_leads_nowhere(desk: Desk) -> None:
    call, action = desk.propose("/work/x/f", "new")
    desk.run("mkdir elsewhere; ln -s elsewhere x")
    desk.approve(action)
    assert call.result().status_code >= 400
    assert "link" in call.result().json()["detail"]
    assert desk.run("ls -A elsewhere") == ""


def test_a_path_through_a_link_is_refused_at_once_and_names_where_it_leads(desk: Desk) -> None:
    desk.run("printf old > real.txt; ln -s real.txt link.txt")
    call, _ = desk.propose("/work/link.txt", "new")
    assert (call.result().status_code, call.result().json()["field"]) == (422, "path")
    assert "/work/real.txt" in call.result().json()["detail"]
    assert desk.pending() is None


def test_a_huge_file_in_the_way_is_named_at_once_with_the_way_out(desk: Desk) -> None:
    desk.run("truncate -s 3G huge")
    began = time.monotonic()
    call, _ = desk.propose("/work/huge", "new")
    assert (call.result().status_code, call.result().json()["code"]) == (413, "too_large")
    assert time.monotonic() - began < 2
    for word in ("/work/huge", "3221225472", "104857600", "remove"):
        assert word in call.result().json()["detail"]
    assert desk.pending() is None
    desk.run("rm huge")
    call, action = desk.propose("/work/huge", "new")
    desk.approve(action)
    assert call.result().status_code == 200


def test_refused_writes_leave_nothing_on_the_host(desk: Desk) -> None:
    """One waits with a content of its own; those over 200 MB are refused, and so is what they would replace."""

    def on_disk() -> int:
        return sum(path.stat().st_size for path in (desk.served.var / "blobs").rglob("*") if path.is_file())

    body = {"path": "/work/big", "encoding": "base64"}
    first = b64encode(randbytes(90 << 20)).decode()
    other = on_disk()  # of tests before
    waiting = [desk.pool.submit(desk.post_file, body | {"content": first, "path": f"/work/{n}"}) for n in "ab"]
    until(lambda: len(desk.agent.get("/actions", params={"status": "pending"}).json()["items"]) == 2, within_s=60)
    desk.run("printf %5000s old > big")
    before = on_disk()
    refused = desk.post_file(body | {"content": b64encode(randbytes(21 << 20)).decode()})
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    assert "188743680 bytes" in refused.json()["detail"]
    assert on_disk() == before == other + (90 << 20)
    for item in desk.agent.get("/actions", params={"status": "pending"}).json()["items"]:
        desk.agent.post(f"/actions/{item['id']}/cancel").raise_for_status()
    assert {call.result().json()["code"] for call in waiting} == {"cancelled"}


def test_the_same_write_again_after_it_was_done_gets_its_outcome_and_writes_nothing_twice(desk: Desk) -> None:
    body = {"path": "/work/a.txt", "content": "new", "encoding": "utf-8"}
    with desk.served.api("agent", timeout_s=1) as impatient, pytest.raises(httpx.ReadTimeout):
        impatient.post(f"/sandboxes/{desk.sandbox}/files", json=body)
    action = desk.pending()
    assert action is not None
    desk.approve(action)
    # Looked at with the member's key: the agent itself has not been given the outcome yet.
    until(lambda: desk.member.get(f"/actions/{action['id']}").json()["status"] == "succeeded")
    again = desk.agent.post(f"/sandboxes/{desk.sandbox}/files", json=body)
    writes = [
        item
        for item in desk.agent.get("/actions").json()["items"]
        if (item["tool"], item["sandbox_id"]) == ("write", desk.sandbox)
    ]
    assert (again.status_code, len(writes)) == (200, 1)


def test_while_a_large_write_waits_its_content_is_on_disk_alone(desk: Desk) -> None:
    """50 MiB, sent as 70 MB of JSON. What stays is less than either: the memory allocator's own leavings."""

    def resident_mb() -> float:
        status = Path(f"/proc/{desk.served.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    content = b64encode(randbytes(50 << 20)).decode()
    before = resident_mb()
    body = {"path": "/work/big", "content": content, "encoding": "base64"}
    call = desk.pool.submit(desk.agent.post, f"/sandboxes/{desk.sandbox}/files", json=body)
    action = until(lambda: call.done() or desk.pending())
    held = resident_mb() - before
    print(f"{held:.0f} MB are held while it waits")
    desk.approve(action)
    assert call.result().json()["size"] == 50 << 20
    assert held < 35


@pytest.mark.parametrize(
    ("old", "new", "flags"),
    [
        ("a\r\nb\r\n", "a\r\nc\r\n", []),
        ("a\nb\n", "a\r\nb\r\n", ["hidden_characters"]),
        ("a\r\n", "a\r\nb\n", ["hidden_characters"]),
        ("a\0\n", "a\0b\n", ["hidden_characters"]),
    ],
)
def test_line_endings_are_flagged_where_they_change(desk: Desk, old: str, new: str, flags: list[str]) -> None:
    body = {"path": "/work/ends.txt", "content": old, "encoding": "utf-8"}
    desk.member.post(f"/sandboxes/{desk.sandbox}/files", json=body).raise_for_status()
    call, action = desk.propose("/work/ends.txt", new)
    assert action["flags"] == flags
    desk.approve(action)
    assert call.result().json()["sha256"] == sha256(new.encode()).hexdigest()
