"""Claims about `bin/up` as a whole: what it prints and makes, what an orderly end leaves, what a `kill -9` leaves."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from lib import leftovers
from lib.daemon import OwnDaemon
from lib.place import CHECKOUT, Place
from tests import migrated

from .processes import of_instance
from .served import until

pytestmark = pytest.mark.gvisor
START_S = 120
IGNORING_SIGINT = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]


class Console:
    """One `bin/up` with a state directory, like the one a person types."""

    def __init__(self, var: Path) -> None:
        self.place = Place(var=var, cache=Path(os.environ.get("SANDGATE_CACHE", "/var/cache/sandgate")))
        self.port = free_port()
        self.printed: list[str] = []
        self.process: subprocess.Popen[str] | None = None

    def up(self, *, in_background: bool = False) -> float:
        """Seconds until it was ready. In the background of a script, a program starts with SIGINT ignored."""
        began = time.monotonic()
        env = {**os.environ, "SANDGATE_VAR": str(self.place.var), "SANDGATE_PORT": str(self.port)}
        env.pop("DOCKER_HOST", None)
        self.process = subprocess.Popen(
            [*(IGNORING_SIGINT if in_background else []), sys.executable, CHECKOUT / "bin/up", "--own-docker"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout
        timer = threading.Timer(START_S, self.process.kill)
        timer.start()
        self.printed = []
        for line in self.process.stdout:
            self.printed.append(line.rstrip())
            if line.startswith("ready on "):
                break
        timer.cancel()
        assert self.printed[-1:] == [f"ready on {self.url}"], "\n".join(self.printed)
        # Later lines must not fill the pipe.
        threading.Thread(target=self.printed.extend, args=(self.process.stdout,), daemon=True).start()
        return time.monotonic() - began

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def first_run(self) -> dict[str, str]:
        made: dict[str, str] = json.loads((self.place.var / "first-run.json").read_text())
        return made

    def api(self) -> httpx.Client:
        key = self.first_run()["workspace_key"]
        return httpx.Client(base_url=f"{self.url}/v1", headers={"X-API-Key": key}, timeout=60, trust_env=False)

    def end(self, number: int) -> int:
        assert self.process
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def clean_up(self) -> None:
        if self.process and self.process.poll() is None:
            self.end(signal.SIGKILL)
        OwnDaemon(self.place).stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Console]:
    console = Console(tmp_path / "var")
    console.place.var.mkdir()
    yield console
    console.clean_up()


@pytest.fixture
def console(bare: Console) -> Console:
    """One whose first start has no database to migrate."""
    migrated.copy(bare.place.var)
    return bare


def assert_nothing_left(place: Place) -> None:
    assert of_instance(place) == []
    assert leftovers.loops(place.var) == []
    assert str(place.var) not in Path("/proc/mounts").read_text()
    assert not place.run.exists()


def run(api: httpx.Client, sandbox: str, command: str) -> str:
    answer = api.post(f"/sandboxes/{sandbox}/commands", json={"command": command})
    answer.raise_for_status()
    return str(answer.json()["stdout"])


def test_the_first_start_says_how_to_sign_in_and_where_the_keys_are(bare: Console) -> None:
    bare.up()
    path = bare.place.var / "first-run.json"
    made = bare.first_run()
    said = "\n".join(bare.printed)
    assert made["url"] == bare.url
    assert made["admin"]["user"] in said  # type: ignore[index]
    assert str(path) in said
    assert path.stat().st_mode & 0o777 == 0o600
    assert bare.place.var.stat().st_mode & 0o777 == 0o700
    assert made["workspace_key"] not in said
    assert made["agent_key"] not in said


def test_a_second_start_takes_seconds_and_makes_nothing_anew(console: Console) -> None:
    console.up(in_background=True)
    made = console.first_run()
    assert console.end(signal.SIGINT) == 0
    assert console.up() < 15
    assert console.first_run() == made


def test_ctrl_c_ends_sandboxes_and_daemon_and_leaves_no_process(console: Console) -> None:
    console.up()
    with console.api() as api:
        sandbox = api.post("/sandboxes", json={}).raise_for_status().json()["id"]
        assert run(api, sandbox, "echo it runs") == "it runs\n"
    assert of_instance(console.place)
    assert console.end(signal.SIGINT) == 0
    assert_nothing_left(console.place)


def test_ctrl_c_again_and_again_leaves_nothing_either(console: Console) -> None:
    """The second one may kill the console, or fall while the daemon is being stopped."""
    for after_s in (0.1, 0.3, 0.8):
        console.up()
        with console.api() as api:
            api.post("/sandboxes", json={}).raise_for_status()
        assert console.process
        console.process.send_signal(signal.SIGINT)
        for _ in range(3):
            time.sleep(after_s)
            console.process.send_signal(signal.SIGINT)
        console.process.wait(timeout=60)
        assert_nothing_left(console.place)


def test_ctrl_c_while_the_daemon_starts_leaves_nothing(console: Console) -> None:
    env = {**os.environ, "SANDGATE_VAR": str(console.place.var), "SANDGATE_PORT": str(console.port)}
    console.process = subprocess.Popen(
        [sys.executable, CHECKOUT / "bin/up", "--own-docker"], env=env, stdout=subprocess.PIPE, text=True
    )
    assert console.process.stdout
    assert any("starting a Docker daemon" in line for line in iter(console.process.stdout.readline, ""))
    assert console.end(signal.SIGINT) == 130
    assert_nothing_left(console.place)


def test_a_daemon_that_is_killed_is_started_again_and_sandboxes_go_on(console: Console) -> None:
    """And a Ctrl-C into the next death, while the daemon comes up again, still ends everything."""
    console.up()
    with console.api() as api:
        sandbox = api.post("/sandboxes", json={}).raise_for_status().json()["id"]
        run(api, sandbox, "echo kept > /work/note")
        kill_daemon(console)
        until(lambda: api.post("/sandboxes", json={}).status_code == 201, within_s=60)
        until(lambda: api.post(f"/sandboxes/{sandbox}/commands", json={"command": "true"}).is_success)
        assert run(api, sandbox, "cat /work/note") == "kept\n"
    kill_daemon(console)
    until(lambda: said(console, "starting a Docker daemon") == 3)
    assert console.end(signal.SIGINT) == 0
    assert_nothing_left(console.place)


def kill_daemon(console: Console) -> None:
    pid = OwnDaemon(console.place).pid()
    assert pid
    os.kill(pid, signal.SIGKILL)


def said(console: Console, words: str) -> int:
    return sum(words in line for line in console.printed)


def test_kill_9_leaves_sandboxes_and_the_next_start_has_them_with_their_files(console: Console) -> None:
    console.up()
    with console.api() as api:
        sandbox = api.post("/sandboxes", json={}).raise_for_status().json()["id"]
        run(api, sandbox, "echo kept > /work/note; (sleep 1000 & echo $! > /work/pid)")
    console.end(signal.SIGKILL)
    assert any("runsc" in name for name in of_instance(console.place))
    console.up()
    with console.api() as api:
        assert api.get(f"/sandboxes/{sandbox}").json()["status"] == "running"
        assert run(api, sandbox, "cat /work/note") == "kept\n"
    assert console.end(signal.SIGINT) == 0
    assert_nothing_left(console.place)


def test_what_a_killed_console_left_is_all_gone_when_its_daemon_is_stopped(console: Console) -> None:
    console.up()
    with console.api() as api:
        api.post("/sandboxes", json={}).raise_for_status()
    console.end(signal.SIGKILL)
    OwnDaemon(console.place).stop()
    assert_nothing_left(console.place)


def test_two_state_directories_serve_side_by_side_and_one_ends_without_the_other(
    console: Console, tmp_path: Path
) -> None:
    other = Console(tmp_path / "other")
    other.place.var.mkdir()
    migrated.copy(other.place.var)
    try:
        console.up()
        other.up()
        with other.api() as api:
            sandbox = api.post("/sandboxes", json={}).raise_for_status().json()["id"]
            console.end(signal.SIGINT)
            assert run(api, sandbox, "echo still here") == "still here\n"
    finally:
        other.clean_up()


def test_a_second_bin_up_in_the_same_state_directory_is_refused_and_harms_nothing(console: Console) -> None:
    console.up()
    again = Console(console.place.var)
    env = {**os.environ, "SANDGATE_VAR": str(console.place.var), "SANDGATE_PORT": str(again.port)}
    done = subprocess.run([CHECKOUT / "bin/up"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "SANDGATE_VAR" in done.stderr
    with console.api() as api:
        assert api.get("/sandboxes").status_code == 200
