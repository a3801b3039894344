"""Fifty creates at once: each is ready or was cleanly refused, the rows are what Docker has, and nothing is left."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest

from .engines import loop_files
from .served import Served, until

pytestmark = pytest.mark.gvisor
MOST = 30  # live ones of a workspace
BODY = {"memory_mb": 128, "disk_mb": 64}


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("storm") / "var", SANDGATE_POOL_MOST="1").up()
    yield console
    console.close()


def create(api: httpx.Client) -> httpx.Response:
    return api.post("/sandboxes", json=BODY)


def test_fifty_creates_at_once(served: Served) -> None:
    with served.api("workspace", timeout_s=170) as api, ThreadPoolExecutor(50) as threads:
        leaving = [threads.submit(leave, served) for _ in range(5)]
        answers = list(threads.map(lambda _: create(api), range(50)))
        assert [each.result() for each in leaving] == [True] * 5
        said = Counter((answer.status_code, answer.json().get("code")) for answer in answers)
        assert set(said) == {(201, None), (429, "too_many")}
        assert all(answer.headers.get("Retry-After") for answer in answers if answer.status_code == 429)

        def live() -> set[str]:
            return {sandbox["id"] for sandbox in api.get("/sandboxes").json() if sandbox["status"] == "running"}

        until(lambda: len(live()) == MOST, within_s=60)  # with those whose client left
        ready = {answer.json()["id"] for answer in answers if answer.status_code == 201}
        assert ready <= live()
        until(lambda: len(served.containers()) == MOST + 1)  # and one in the pool
        ran = threads.map(lambda id: api.post(f"/sandboxes/{id}/commands", json={"command": "echo $0"}), live())
        assert {answer.json()["stdout"] for answer in ran} == {"bash\n"}
        gone = Counter(threads.map(lambda id: api.delete(f"/sandboxes/{id}").status_code, [*live()] * 2))
        assert gone == {200: MOST, 404: MOST}
    stop_in_the_middle(served)
    kill_in_the_middle(served)


def nothing_left(served: Served) -> bool:
    disks = [*(served.var / "disks").glob("*"), *(file for file in loop_files() if str(served.var) in file)]
    return not served.containers() and not disks


def begin(served: Served, threads: ThreadPoolExecutor) -> None:
    """Creates that are under way when this returns."""

    def call() -> None:
        with suppress(httpx.HTTPError), served.api("workspace") as api:
            create(api)

    for _ in range(8):
        threads.submit(call)
    until(served.containers)


def stop_in_the_middle(served: Served) -> None:
    with ThreadPoolExecutor(8) as threads:
        begin(served, threads)
        assert served.stop() == 0
    assert nothing_left(served)


def kill_in_the_middle(served: Served) -> None:
    with ThreadPoolExecutor(8) as threads, served.up().api("workspace") as api:
        begin(served, threads)
        served.kill()
    with served.up().api("workspace") as api:
        for sandbox in api.get("/sandboxes").raise_for_status().json():  # made before the blow: they go on
            assert sandbox["status"] == "running"
            api.delete(f"/sandboxes/{sandbox['id']}").raise_for_status()
    assert served.stop() == 0
    assert nothing_left(served)


def leave(served: Served) -> bool:
    """A client that hangs up in the middle: its sandbox is made all the same, or was refused."""
    with served.api("workspace", timeout_s=0.5) as api:
        try:
            return create(api).status_code == 429
        except httpx.ReadTimeout:
            return True
