"""A persistent sandbox is stopped when idle and goes on at the next call; one whose action waits for a person keeps its
files meanwhile. Through the whole console, with its timers divided."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any

import docker
import httpx
import pytest

from sandboxes.engine import EngineConfig

from .engines import loop_files
from .served import Served, until

pytestmark = pytest.mark.gvisor
DIVISOR = 60
IDLE_S = 60  # divided: one second


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("persistent") / "var", SANDGATE_TIMER_DIVISOR=str(DIVISOR)).up()
    yield console
    with console.api("workspace") as api:
        for sandbox in api.get("/sandboxes").json():
            api.delete(f"/sandboxes/{sandbox['id']}").raise_for_status()
    until(lambda: nothing_left(console))  # the row says so a moment before the disk is gone
    console.close()


def nothing_left(served: Served) -> bool:
    disks = list((served.var / "disks").glob("*"))
    return not served.containers() and not disks and not [file for file in loop_files() if str(served.var) in file]


@pytest.fixture
def api(served: Served) -> Iterator[httpx.Client]:
    with served.api("workspace") as client:
        yield client


def make(api: httpx.Client, **body: Any) -> str:
    body = {"idle_timeout_s": IDLE_S, "network": "none", **body}
    return str(api.post("/sandboxes", json=body).raise_for_status().json()["id"])


def run(api: httpx.Client, sandbox: str, command: str) -> str:
    answer = api.post(f"/sandboxes/{sandbox}/commands", json={"command": command})
    return str(answer.raise_for_status().json()["stdout"])


def status(api: httpx.Client, sandbox: str) -> str:
    return str(api.get(f"/sandboxes/{sandbox}").raise_for_status().json()["status"])


def until_stopped(served: Served, api: httpx.Client, sandbox: str) -> None:
    until(lambda: status(api, sandbox) == "stopped")
    until(lambda: not served.containers())
    until(lambda: not [file for file in loop_files() if sandbox in file])


@pytest.fixture(scope="module")
def kept(served: Served) -> str:
    with served.api("workspace") as api:
        sandbox = make(api, persistent=True, env={"MONTH": "3"})
        run(api, sandbox, "echo work > a; echo home > ~/h")
    return sandbox


SEE = "cat /work/a ~/h; echo $MONTH"
SEEN = "work\nhome\n3\n"


def test_idle_it_is_stopped_and_the_next_call_finds_files_and_variables(
    served: Served, api: httpx.Client, kept: str
) -> None:
    until_stopped(served, api, kept)
    assert run(api, kept, SEE) == SEEN
    assert status(api, kept) == "running"
    before = api.get(f"/sandboxes/{kept}").json()
    assert before["expires_at"] > time.strftime("%Y-%m-%d", time.gmtime(time.time() + 13 * 86400))


def test_calls_at_the_same_moment_start_it_once(served: Served, api: httpx.Client, kept: str) -> None:
    until_stopped(served, api, kept)
    with ThreadPoolExecutor(5) as threads:
        said = list(threads.map(lambda _: run(api, kept, "cat /proc/sys/kernel/random/boot_id 2>&1; " + SEE), range(5)))
    assert len(set(said)) == 1
    assert len(served.containers()) == 1


def test_a_call_that_is_refused_does_not_start_it(served: Served, api: httpx.Client, kept: str) -> None:
    until_stopped(served, api, kept)
    refused = api.post(f"/sandboxes/{kept}/commands", json={"command": "true", "env": {"A=B": "x"}})
    assert refused.status_code == 422
    assert api.get(f"/sandboxes/{kept}/commands").status_code == 200
    assert (status(api, kept), served.containers()) == ("stopped", [])


def test_a_command_that_runs_keeps_it_running(api: httpx.Client, kept: str) -> None:
    assert run(api, kept, f"sleep {3 * IDLE_S / DIVISOR}; echo still") == "still\n"


def test_it_outlives_the_console_stopped_by_its_operator_and_killed(served: Served, kept: str) -> None:
    assert served.stop() == 0
    assert (served.var / "disks" / f"{kept}.ext4").exists()
    assert served.containers() == []
    with served.up().api("workspace") as api:
        assert status(api, kept) == "stopped"
        assert run(api, kept, SEE) == SEEN
    served.kill()
    with served.up().api("workspace") as api:
        assert run(api, kept, SEE) == SEEN
        until_stopped(served, api, kept)
    served.kill()
    with served.up().api("workspace") as api:
        assert run(api, kept, SEE) == SEEN


def test_when_it_crashes_what_ran_is_lost_and_its_files_are_not(served: Served, kept: str) -> None:
    with served.api("workspace") as api:
        run(api, kept, "true")
        answers: list[httpx.Response] = []

        def call() -> None:
            answers.append(api.post(f"/sandboxes/{kept}/commands", json={"command": "sleep 600"}))

        caller = threading.Thread(target=call)
        caller.start()
        until(lambda: api.get(f"/sandboxes/{kept}/commands", params={"status": "running"}).json()["items"])
        kill(served)
        caller.join(8)
        assert (answers[0].status_code, answers[0].json()["code"]) == (409, "sandbox_gone")
        assert run(api, kept, SEE) == SEEN
    assert '{"reason": "crashed"}' in audited(served, "sandbox.stopped")


def audited(served: Served, event: str) -> list[str]:
    with closing(sqlite3.connect(f"file:{served.var}/db.sqlite3?mode=ro", uri=True)) as db:
        return [row[0] for row in db.execute("SELECT data FROM workspaces_auditentry WHERE event = ?", (event,))]


def kill(served: Served) -> None:
    client = docker.DockerClient(EngineConfig.load(served.var, "").docker_host)
    for container_id in served.containers():
        client.api.kill(container_id)
    client.close()


def test_while_an_action_waits_its_sandbox_is_stopped_and_runs_it_once_approved(served: Served) -> None:
    with served.api("agent", timeout_s=2) as agent, served.api("review") as reviewer:
        sandbox = make(agent)
        with served.api("workspace") as api:
            run(api, sandbox, "echo before > /work/b")
            with pytest.raises(httpx.ReadTimeout):
                agent.post(f"/sandboxes/{sandbox}/commands", json={"command": "cat /work/b; echo after"})
            until(lambda: status(api, sandbox) == "stopped")
            (action,) = agent.get("/actions", params={"status": "pending"}).json()["items"]
            body = {"verdict": "approve", "digest": action["digest"]}
            reviewer.post(f"/actions/{action['id']}/decision", json=body).raise_for_status()
            ended = api.get(f"/actions/{action['id']}", params={"wait": 30}).json()
            assert ended["outcome"]["result"]["stdout"] == "before\nafter\n"
            until(lambda: status(api, sandbox) == "ended")  # nothing waits any more
            assert api.get(f"/sandboxes/{sandbox}").json()["ended_reason"] == "idle"


def test_deleted_while_it_is_stopped_by_a_client_that_leaves_nothing_is_left_of_it(served: Served) -> None:
    with served.api("workspace") as api:
        sandbox = make(api, persistent=True)
        until(lambda: status(api, sandbox) == "stopped")
        assert (served.var / "disks" / f"{sandbox}.ext4").exists()
        for stays_s in (0.01, 0.03, 0.1, 0.3, 1, 30):  # who leaves too early has not asked for anything
            with served.api("workspace") as leaving, suppress(httpx.ReadTimeout):
                leaving.delete(f"/sandboxes/{sandbox}", timeout=httpx.Timeout(30, read=stays_s))
            if api.get(f"/sandboxes/{sandbox}").status_code == 404:
                break
        until(lambda: not (served.var / "disks" / f"{sandbox}.ext4").exists())
        assert api.delete(f"/sandboxes/{sandbox}").status_code == 404


def test_one_whose_disk_was_taken_away_ends_and_says_so(served: Served) -> None:
    with served.api("workspace") as api:
        sandbox = make(api, persistent=True)
        until(lambda: status(api, sandbox) == "stopped")
        (served.var / "disks" / f"{sandbox}.ext4").unlink()
        until(lambda: status(api, sandbox) == "ended")
        assert api.get(f"/sandboxes/{sandbox}").json()["ended_reason"] == "host_lost"
