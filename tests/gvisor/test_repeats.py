"""Calls sent again under one Idempotency-Key, on the real server: nothing is made, run or written twice."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from .served import Served

pytestmark = pytest.mark.gvisor
ONCE = {"Idempotency-Key": "a"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("repeats") / "var").up()
    yield console
    console.close()


@pytest.fixture
def member(served: Served) -> Iterator[httpx.Client]:
    with served.api("workspace") as api:
        yield api


def test_six_creates_at_once_make_one_sandbox(served: Served, member: httpx.Client) -> None:
    before = len(served.containers())
    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(member.post, "/sandboxes", json={"label": "one"}, headers=ONCE) for _ in range(6)]
        answers = [call.result() for call in calls]
    assert [answer.status_code for answer in answers] == [201] * 6
    assert [answer.json() for answer in answers] == [answers[0].json()] * 6
    assert len(served.containers()) == before + 1
    # A client that gives up in the middle finds, with the same call, the sandbox that was made for it.
    with served.api("workspace", timeout_s=0.2) as hasty, pytest.raises(httpx.ReadTimeout):
        hasty.post("/sandboxes", json={"label": "two"}, headers={"Idempotency-Key": "b"})
    again = member.post("/sandboxes", json={"label": "two"}, headers={"Idempotency-Key": "b"})
    assert again.status_code == 201
    assert len(served.containers()) == before + 2
    assert [item["label"] for item in member.get("/sandboxes").json()] == ["two", "one"]


def test_a_command_and_a_write_sent_again_are_done_once(served: Served, member: httpx.Client) -> None:
    sandbox = member.post("/sandboxes", json={}).raise_for_status().json()["id"]
    path = f"/sandboxes/{sandbox}"
    line = {"command": "echo x >> /work/log; wc -l < /work/log"}
    with ThreadPoolExecutor(5) as pool:
        calls = [pool.submit(member.post, f"{path}/commands", json=line, headers=ONCE) for _ in range(5)]
        answers = [call.result().raise_for_status().json() for call in calls]
    assert [answer["stdout"] for answer in answers] == ["1\n"] * 5
    assert len({answer["action_id"] for answer in answers}) == 1
    file = {"path": "/work/a", "content": "first"}
    written = member.post(f"{path}/files", json=file, headers=ONCE).raise_for_status().json()
    member.post(f"{path}/commands", json={"command": "echo changed since > /work/a"}).raise_for_status()
    assert member.post(f"{path}/files", json=file, headers=ONCE).raise_for_status().json() == written
    assert member.get(f"{path}/files", params={"path": "/work/a"}).json()["content"] == "changed since\n"


def test_an_answer_outlives_its_server(tmp_path: Path) -> None:
    console = Served(tmp_path / "var").up()
    try:
        with console.api("workspace") as api:
            made = api.post("/sandboxes", json={}, headers=ONCE).raise_for_status().json()
            commands = f"/sandboxes/{made['id']}/commands"
            ran = api.post(commands, json={"command": "date +%N"}, headers=ONCE).raise_for_status().json()
        console.kill()
        console.up()
        with console.api("workspace") as api:
            assert api.post("/sandboxes", json={}, headers=ONCE).raise_for_status().json() == made
            assert api.post(commands, json={"command": "date +%N"}, headers=ONCE).raise_for_status().json() == ran
    finally:
        console.close()
