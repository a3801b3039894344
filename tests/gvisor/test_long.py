"""What takes longer than a minute, in real time: no layer between an agent and its command may cut at 60 s. It runs
beside the short tests here, which share its console, and is looked at last."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import docker
import httpx
import pytest

from sandboxes.engine import EngineConfig
from tests.gvisor.served import Served, until

LONG_S = 66


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("long") / "var").up()
    yield console
    console.close()


@pytest.fixture(scope="module")
def api(served: Served) -> Iterator[httpx.Client]:
    with served.api("workspace", timeout_s=300) as client:
        yield client


def run(api: httpx.Client, sandbox: str, command: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = (
        api.post(f"/sandboxes/{sandbox}/commands", json={"command": command, **more}).raise_for_status().json()
    )
    return found


@dataclass
class Long:
    sandbox: str
    quiet: str
    printer: str
    waiter: threading.Thread
    answers: list[dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def long(api: httpx.Client, served: Served) -> Long:
    """Begun before the first test: a call that waits, one that prints, and one that says nothing."""
    made = api.post("/sandboxes", json={"idle_timeout_s": 60}).raise_for_status().json()
    answers: list[dict[str, Any]] = []

    def wait() -> None:
        with served.api("workspace", timeout_s=300) as own:
            answers.append(run(own, made["id"], f"sleep {LONG_S}; echo ok", timeout=900))

    waiter = threading.Thread(target=wait)
    waiter.start()
    printing = f"for n in $(seq {2 * LONG_S - 10}); do echo line $n; sleep 0.5; done"
    printer = run(api, made["id"], printing, background=True)["id"]
    quiet = run(api, made["id"], "sleep 3600", background=True)["id"]
    return Long(made["id"], quiet, printer, waiter, answers)


@pytest.fixture
def sandbox(long: Long) -> str:
    return long.sandbox


def test_blank_lines_and_odd_bytes_come_as_they_were_printed(api: httpx.Client, sandbox: str) -> None:
    assert run(api, sandbox, r"printf 'a\n\nb\n\n\nc\n'")["stdout"] == "a\n\nb\n\n\nc\n"
    assert run(api, sandbox, r"printf 'a\0b'")["stdout"] == "a\0b"
    assert run(api, sandbox, r"printf '\r\n\t\033[31m'")["stdout"] == "\r\n\t\033[31m"


def test_a_command_may_be_long_and_a_file_longer_than_an_argument(api: httpx.Client, sandbox: str) -> None:
    script = "\n".join(f": {n:095}" for n in range(2000)) + "\necho end"
    assert len(script) > 190_000
    assert run(api, sandbox, script)["stdout"] == "end\n"


def counted(metrics: str, series: str) -> float:
    (value,) = (line.removeprefix(f"{series} ") for line in metrics.splitlines() if line.startswith(f"{series} "))
    return float(value)


def test_a_secret_in_a_command_is_in_no_log_and_no_metric(api: httpx.Client, served: Served, sandbox: str) -> None:
    told = "S3CR3T" + "0123456789"
    run(
        api,
        sandbox,
        f"curl -s -H 'Authorization: Bearer {told}' http://127.0.0.1:1/ ; echo {told} >&2",
        env={"T": told},
    )
    run(api, sandbox, f"exit 3 # {told}")
    api.post(f"/sandboxes/{sandbox}/commands", json={"command": told, "cwd": f"/{told}"})
    metrics = httpx.get(f"{served.url}/metrics", trust_env=False).raise_for_status().text
    assert counted(metrics, 'sandgate_commands_total{end="exited"}') >= 2
    assert counted(metrics, "sandgate_command_overhead_seconds_count") >= 2
    assert counted(metrics, 'sandgate_creates_total{how="cold",outcome="ready"}') >= 1
    assert counted(metrics, 'sandgate_sandboxes{status="running"}') >= 1
    assert counted(metrics, "sandgate_commands_running") >= 3  # those that take long
    assert sandbox not in metrics
    assert told not in metrics
    assert told not in "\n".join(served.printed)


def test_whatever_a_caller_calls_a_sandbox_its_labels_are_the_engines(
    api: httpx.Client, served: Served, long: Long
) -> None:
    """A label is text of the caller's; in Docker stand only the ids that the engine knows it by."""
    spoofed = f"sandgate.sandbox={long.sandbox}"
    made = api.post("/sandboxes", json={"label": spoofed}).raise_for_status().json()
    assert made["label"] == spoofed
    for stranger in ("labels", "metadata", "name", "id", "container_id"):
        refused = api.post("/sandboxes", json={stranger: {"sandgate.sandbox": long.sandbox}})
        assert refused.status_code == 422, stranger
    client = docker.DockerClient(EngineConfig.load(served.var, "").docker_host)
    try:
        mine = [client.containers.get(each) for each in served.containers()]
        carried = [each.labels["sandgate.sandbox"] for each in mine if "sandgate.sandbox" in each.labels]
        assert sorted(carried) == sorted([long.sandbox, made["id"]])
        assert not [each.name for each in mine if spoofed in str(each.attrs["Config"])]
    finally:
        client.close()
    api.delete(f"/sandboxes/{made['id']}").raise_for_status()
    assert run(api, long.sandbox, "echo here")["stdout"] == "here\n"


def test_ten_deletes_at_once_have_one_effect_and_no_fault(api: httpx.Client, served: Served) -> None:
    made = api.post("/sandboxes", json={}).raise_for_status().json()["id"]

    def delete(_: int) -> int:
        with served.api("workspace") as own:
            return own.delete(f"/sandboxes/{made}").status_code

    with ThreadPoolExecutor(10) as threads:
        told = Counter(threads.map(delete, range(10)))
    assert set(told) <= {200, 404}
    assert told[200] >= 1
    assert len(served.containers()) == 1  # the long one
    gone = api.post(f"/sandboxes/{made}/commands", json={"command": "true"})
    assert gone.status_code in (404, 410)


def test_more_than_a_minute_is_cut_by_nobody(api: httpx.Client, long: Long) -> None:
    long.waiter.join(LONG_S + 60)
    (answer,) = long.answers
    assert (answer["stdout"], answer["exit_code"], answer["timed_out"]) == ("ok\n", 0, False)
    assert answer["duration_ms"] >= LONG_S * 1000


def test_what_printed_for_a_minute_without_a_listener_is_whole_and_can_be_read_from_any_place(
    api: httpx.Client, long: Long
) -> None:
    address = f"/sandboxes/{long.sandbox}/commands/{long.printer}"
    until(lambda: api.get(address).json()["status"] == "exited", within_s=60)
    whole = "".join(f"line {n}\n" for n in range(1, 2 * LONG_S - 9))
    assert api.get(address).json()["stdout"] == whole
    assert api.get(address, params={"stdout_from": 700}).json()["stdout"] == whole[700:]


def test_a_command_that_says_nothing_keeps_its_sandbox_past_the_idle_time(api: httpx.Client, long: Long) -> None:
    found = api.get(f"/sandboxes/{long.sandbox}/commands/{long.quiet}").raise_for_status().json()
    assert (found["status"], found["exit_code"]) == ("running", None)
    listed = api.get(f"/sandboxes/{long.sandbox}/commands", params={"status": "running"}).json()["items"]
    assert long.quiet in [each["id"] for each in listed]
    stopped = api.delete(f"/sandboxes/{long.sandbox}/commands/{long.quiet}").raise_for_status().json()
    assert stopped["status"] == "stopped"
