"""Artifacts: a copy that outlives its sandbox, seen by its agent and workspace alone, gone when it expires."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .served import Served, until

MB = 1 << 20


class Place:
    def __init__(self, served: Served) -> None:
        self.served = served
        self.agent, self.member = served.api("agent"), served.api("workspace")
        self.sandbox = self.new_sandbox()

    def new_sandbox(self) -> str:
        return str(self.agent.post("/sandboxes", json={}).raise_for_status().json()["id"])

    def write(self, path: str, content: bytes) -> str:
        answer = self.member.put(f"/sandboxes/{self.sandbox}/files/raw", params={"path": path}, content=content)
        return str(answer.raise_for_status().json()["action_id"])

    def publish(self, path: str, **more: Any) -> httpx.Response:
        return self.agent.post(f"/sandboxes/{self.sandbox}/artifacts", json={"path": path, **more})

    def run(self, command: str) -> None:
        body = {"command": command}
        answer = self.member.post(f"/sandboxes/{self.sandbox}/commands", json=body).raise_for_status()
        assert answer.json()["exit_code"] == 0, answer.text

    def on_disk(self) -> set[str]:
        return {path.name for path in (self.served.var / "artifacts").glob("*")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    served = Served(tmp_path_factory.mktemp("artifacts")).up()
    yield Place(served)
    served.close()


def test_an_agent_publishes_without_asking_and_gets_the_bytes_back(place: Place) -> None:
    content = os.urandom(3 * MB)
    writes = [place.write("out/report.bin", b"draft"), place.write("out/report.bin", content)]
    place.write("out/other.bin", b"x")
    answer = place.publish("out/report.bin", title="The report")
    made = answer.json()
    assert answer.status_code == 201
    assert made | {"path": "/work/out/report.bin", "title": "The report", "size": 3 * MB} == made
    assert made["sha256"] == hashlib.sha256(content).hexdigest()
    assert (made["sandbox_id"], made["action_ids"]) == (place.sandbox, writes)
    assert place.agent.get(f"/artifacts/{made['id']}").json() == made
    got = place.agent.get(f"/artifacts/{made['id']}/content")
    assert got.content == content
    assert got.headers["etag"] == f'"{made["sha256"]}"'
    (action, *_) = place.member.get("/actions", params={"sandbox": place.sandbox}).json()["items"]
    assert (action["tool"], action["status"]) == ("publish", "succeeded")
    assert action["outcome"]["result"]["artifact_id"] == made["id"]


def test_it_is_the_file_as_it_was_and_outlives_its_sandbox(place: Place) -> None:
    sandbox = place.sandbox
    place.write("kept.txt", b"as it was")
    made = place.publish("kept.txt").json()
    place.write("kept.txt", b"changed")
    place.member.delete(f"/sandboxes/{sandbox}").raise_for_status()
    place.sandbox = place.new_sandbox()
    assert place.agent.get(f"/artifacts/{made['id']}/content").content == b"as it was"
    listed = place.agent.get("/artifacts", params={"sandbox": sandbox}).json()["items"]
    assert made["id"] in [item["id"] for item in listed]


def test_a_part_of_it_and_its_head(place: Place) -> None:
    place.write("digits", b"0123456789")
    url = f"/artifacts/{(made := place.publish('digits').json())['id']}/content"
    part = place.agent.get(url, headers={"Range": "bytes=-3"})
    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"789", "bytes 7-9/10")
    fresh = {"Range": "bytes=0-1", "If-Range": f'"{made["sha256"]}"'}
    assert place.agent.get(url, headers=fresh).content == b"01"
    assert place.agent.get(url, headers=fresh | {"If-Range": '"another"'}).content == b"0123456789"
    assert place.agent.get(url, headers={"Range": "bytes=10-"}).status_code == 416
    head = place.agent.head(url)
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "10", b"")


def test_an_empty_one_and_an_odd_name(place: Place) -> None:
    place.write("отчёт\n.pdf", b"")
    made = place.publish("отчёт\n.pdf").json()
    got = place.agent.get(f"/artifacts/{made['id']}/content")
    assert (got.content, made["size"]) == (b"", 0)
    assert got.headers["content-disposition"].endswith("filename*=UTF-8''%D0%BE%D1%82%D1%87%D1%91%D1%82%0A.pdf")


@pytest.mark.parametrize(
    ("make", "path", "status", "code"),
    [
        ("true", "none", 404, "file_not_found"),
        ("mkdir -p dir", "dir", 422, "is_a_directory"),
        ("true", "/etc/shadow", 403, "permission_denied_in_sandbox"),
        ("ln -sfn /etc/shadow way", "way", 403, "permission_denied_in_sandbox"),
        ("truncate -s 104857601 huge", "huge", 413, "too_large"),
        ("true", "/dev/zero", 422, "not_a_file"),
    ],
)
def test_what_cannot_be_published_is_told_and_leaves_nothing(
    place: Place, make: str, path: str, status: int, code: str
) -> None:
    place.run(make)
    before = place.on_disk()
    answer = place.publish(path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert place.on_disk() == before


def test_one_at_the_limit_is_kept_in_little_memory(place: Place) -> None:
    def resident_mb() -> float:
        assert place.served.process
        status = Path(f"/proc/{place.served.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    place.run("truncate -s 100M most")
    before = resident_mb()
    made = place.publish("most").raise_for_status().json()
    got = 0
    with place.agent.stream("GET", f"/artifacts/{made['id']}/content") as answer:
        for piece in answer.iter_bytes():
            got += len(piece)
    assert (got, made["size"]) == (100 * MB, 100 * MB)
    assert resident_mb() - before < 20


def test_the_same_call_again_makes_no_second_one(place: Place) -> None:
    place.write("once", b"1")
    body, headers = {"path": "once"}, {"Idempotency-Key": "publish-1"}
    url = f"/sandboxes/{place.sandbox}/artifacts"
    first = place.agent.post(url, json=body, headers=headers).raise_for_status()
    assert place.agent.post(url, json=body, headers=headers).raise_for_status().json() == first.json()


def test_a_server_that_dies_while_it_copies_leaves_an_action_that_ends_and_no_half_artifact(tmp_path: Path) -> None:
    served = Served(tmp_path / "var").up()
    try:
        place = Place(served)
        place.run("head -c 100M /dev/urandom > f")
        with served.api("agent", timeout_s=0.5) as impatient, pytest.raises(httpx.ReadTimeout):
            impatient.post(f"/sandboxes/{place.sandbox}/artifacts", json={"path": "f"})
        served.kill()
        served.up()
        (action, *_) = served.api("workspace").get("/actions").json()["items"]
        ended = until(lambda: (found := _action(served, action["id"]))["status"] != "running" and found, within_s=60)
        items = served.api("workspace").get("/artifacts").json()["items"]
        assert (ended["status"], [item["size"] for item in items]) == ("succeeded", [100 * MB])
    finally:
        served.close()


def _action(served: Served, action_id: str) -> dict[str, Any]:
    with served.api("workspace") as api:
        return dict(api.get(f"/actions/{action_id}").raise_for_status().json())
