"""The warm pool of a whole console: claimed without a wait, clean, invisible, refilled, and never in anybody's way."""

import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import docker
import httpx
import pytest

from sandboxes.engine import EngineConfig

from .engines import loop_files
from .served import Served, until

pytestmark = pytest.mark.gvisor


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("pool") / "var", SANDGATE_POOL_MOST="4").up()
    yield console
    console.close()
    assert console.containers() == []
    assert list((console.var / "disks").glob("*")) == []
    assert not [file for file in loop_files() if str(console.var) in file]


@pytest.fixture
def api(served: Served) -> Iterator[httpx.Client]:
    with served.api("workspace") as client:
        yield client


def make(api: httpx.Client, **body: Any) -> str:
    answer = api.post("/sandboxes", json=body)
    return str(answer.raise_for_status().json()["id"])


def run(api: httpx.Client, sandbox: str, command: str) -> str:
    answer = api.post(f"/sandboxes/{sandbox}/commands", json={"command": command})
    return str(answer.raise_for_status().json()["stdout"])


def rows(served: Served, sql: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(served.var / "db.sqlite3", timeout=20)) as db, db:
        return db.execute(sql, values).fetchall()


def in_pool(served: Served) -> list[str]:
    """Those that can be claimed."""
    return [row[0] for row in rows(served, "SELECT id FROM sandboxes_pooledsandbox WHERE ready_at IS NOT NULL")]


def filled(served: Served, api: httpx.Client) -> str:
    """The one in the pool. The first sandbox ever is what starts it."""
    if not rows(served, "SELECT 1 FROM sandboxes_sandbox"):
        api.delete(f"/sandboxes/{make(api)}").raise_for_status()
    (found,) = until(lambda: in_pool(served), within_s=30)
    return str(found)


def was_pooled(served: Served, sandbox: str) -> bool:
    return bool(rows(served, "SELECT pooled FROM sandboxes_sandbox WHERE id = ?", sandbox)[0][0])


@contextmanager
def container_of(served: Served, sandbox: str) -> Iterator[Any]:
    client = docker.DockerClient(EngineConfig.load(served.var, "").docker_host)
    (found,) = client.containers.list(all=True, filters={"label": f"sandgate.sandbox={sandbox}"})
    yield found
    client.close()


def test_the_default_is_claimed_from_the_pool_clean_and_with_its_own_variables(
    served: Served, api: httpx.Client
) -> None:
    waiting = filled(served, api)
    sandbox = make(api, env={"MONTH": "3"}, label="report")
    assert (sandbox, was_pooled(served, sandbox)) == (waiting, True)
    assert run(api, sandbox, "echo $MONTH; find /work /home/agent /tmp /var/tmp -mindepth 1; ps -u agent -o comm=") == (
        "3\nps\n"
    )
    assert metric(served, 'sandgate_creates_total{how="pooled",outcome="ready"}') >= 1
    assert filled(served, api) != sandbox
    api.delete(f"/sandboxes/{sandbox}").raise_for_status()


def metric(served: Served, name: str) -> float:
    text = httpx.get(f"{served.url}/metrics", trust_env=False).raise_for_status().text
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_what_is_in_the_pool_is_nobodys(served: Served, api: httpx.Client) -> None:
    waiting = filled(served, api)
    assert waiting not in {sandbox["id"] for sandbox in api.get("/sandboxes").json()}
    assert api.get(f"/sandboxes/{waiting}").status_code == 404
    assert api.delete(f"/sandboxes/{waiting}").status_code == 404
    assert api.post(f"/sandboxes/{waiting}/commands", json={"command": "true"}).status_code == 404
    assert in_pool(served) == [waiting]


def test_who_asks_for_something_else_gets_it_cold(served: Served, api: httpx.Client) -> None:
    waiting = filled(served, api)
    sandbox = make(api, disk_mb=64)
    assert (was_pooled(served, sandbox), in_pool(served)) == (False, [waiting])
    api.delete(f"/sandboxes/{sandbox}").raise_for_status()


def test_three_at_once_get_one_each(served: Served, api: httpx.Client) -> None:
    waiting = filled(served, api)
    with ThreadPoolExecutor(3) as threads:
        made = list(threads.map(lambda _: make(api), range(3)))
    assert len(set(made)) == 3
    assert [sandbox for sandbox in made if was_pooled(served, sandbox)] == [waiting]
    for sandbox in made:
        assert run(api, sandbox, "echo here") == "here\n"
        api.delete(f"/sandboxes/{sandbox}").raise_for_status()


def test_one_that_died_is_replaced(served: Served, api: httpx.Client) -> None:
    waiting = filled(served, api)
    with container_of(served, waiting) as container:
        container.kill()
    until(lambda: in_pool(served) not in ([], [waiting]), within_s=30)


def test_one_that_does_not_answer_costs_a_moment_and_no_failure(served: Served, api: httpx.Client) -> None:
    waiting = filled(served, api)
    with container_of(served, waiting) as container:
        container.pause()
        sandbox = make(api)
        assert (sandbox, was_pooled(served, sandbox)) == (waiting, False)
    assert run(api, sandbox, "echo here") == "here\n"
    api.delete(f"/sandboxes/{sandbox}").raise_for_status()


def test_killed_the_console_takes_its_pool_up_again(served: Served) -> None:
    with served.api("workspace") as api:
        waiting = filled(served, api)
    served.kill()
    with served.up().api("workspace") as api:
        assert in_pool(served) == [waiting]
        sandbox = make(api)
        assert (sandbox, was_pooled(served, sandbox)) == (waiting, True)
        assert run(api, sandbox, "echo here") == "here\n"
        filled(served, api)
    served.kill()
    rows(served, "UPDATE sandboxes_pooledsandbox SET ready_at = NULL")  # as if killed while it was made
    half = rows(served, "SELECT id FROM sandboxes_pooledsandbox")[0][0]
    with served.up().api("workspace") as api:
        assert filled(served, api) != half
        assert run(api, sandbox, "echo here") == "here\n"
        api.delete(f"/sandboxes/{sandbox}").raise_for_status()


def test_changed_settings_change_what_is_in_it(served: Served) -> None:
    with served.api("workspace") as api:
        waiting = filled(served, api)
        rows(served, "UPDATE workspaces_workspace SET limits = ?", '{"memory_mb": {"default": 256}}')
        until(lambda: in_pool(served) not in ([], [waiting]), within_s=30)
        sandbox = make(api)
        assert was_pooled(served, sandbox)
        with container_of(served, sandbox) as container:
            assert container.attrs["HostConfig"]["Memory"] == 256 << 20
        api.delete(f"/sandboxes/{sandbox}").raise_for_status()
        rows(served, "UPDATE workspaces_workspace SET pool_size = 0")
        until(lambda: not served.containers(), within_s=30)


def test_an_orderly_end_leaves_nothing_of_it(served: Served) -> None:
    rows(served, "UPDATE workspaces_workspace SET pool_size = 1")
    with served.api("workspace") as api:
        filled(served, api)
    assert served.stop() == 0
    assert (served.containers(), in_pool(served)) == ([], [])
