"""Commands by id over REST, on a real console: begun in the background, followed, fed, stopped, and found again."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import docker
import httpx
import pytest

from sandboxes.engine import EngineConfig

from .served import Served, until

LINES = 'for n in $(seq {n}); do echo "line $n ü"; sleep {s}; done; exit 7'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("commands"), SANDGATE_TIMER_DIVISOR="60").up()
    yield console
    console.close()


@pytest.fixture(scope="module")
def sandbox(served: Served) -> str:
    with served.api("workspace") as api:
        made = api.post("/sandboxes", json={"idle_timeout_s": 3600, "max_lifetime_s": 86400}).raise_for_status()
        return f"/sandboxes/{made.json()['id']}"


@pytest.fixture
def api(served: Served) -> Iterator[httpx.Client]:
    with served.api("workspace") as client:
        yield client


def begin(api: httpx.Client, sandbox: str, command: str, **more: Any) -> str:
    """The new command's address."""
    answer = api.post(f"{sandbox}/commands", json={"command": command, "background": True, **more})
    assert answer.status_code == 202, answer.text
    found = answer.json()
    assert (found["background"], answer.headers["location"]) == (True, f"/v1{sandbox}/commands/{found['id']}")
    return f"{sandbox}/commands/{found['id']}"


def run(api: httpx.Client, sandbox: str, command: str) -> dict[str, Any]:
    found: dict[str, Any] = api.post(f"{sandbox}/commands", json={"command": command}).raise_for_status().json()
    return found


def ended(api: httpx.Client, address: str, *, within_s: float = 30) -> dict[str, Any]:
    found: dict[str, Any] = until(
        lambda: (row := api.get(address).raise_for_status().json())["status"] != "running" and row, within_s=within_s
    )
    return found


class Events:
    """What a client gathers over as many connections as it takes."""

    def __init__(self, api: httpx.Client, address: str) -> None:
        self.api, self.address = api, address
        self.last_id = ""
        self.out = {"stdout": b"", "stderr": b""}
        self.seen: list[str] = []
        self.beats = 0
        self.exit: dict[str, Any] = {}

    def read(self, *, until_bytes: int | None = None) -> None:
        """To the end, or cut off by us once there are `until_bytes` of stdout."""
        headers = {"Last-Event-ID": self.last_id} if self.last_id else {}
        with self.api.stream("GET", f"{self.address}/events", headers=headers) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "text/event-stream"
            for block in _blocks(answer):
                self._take(block)
                if until_bytes is not None and len(self.out["stdout"]) >= until_bytes:
                    return

    def _take(self, block: str) -> None:
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        self.beats += block.startswith(": still")
        if not fields:
            return
        self.seen.append(fields["event"])
        self.last_id, data = fields["id"], json.loads(fields["data"])
        if fields["event"] == "exit":
            self.exit = data
            return
        assert data["offset"] == len(self.out[fields["event"]]), "lost or repeated"
        whole = data["data"].encode() if data["encoding"] == "utf-8" else base64.b64decode(data["data"])
        self.out[fields["event"]] += whole


def _blocks(answer: httpx.Response) -> Iterator[str]:
    held = b""
    for piece in answer.iter_raw():
        held += piece
        while b"\n\n" in held:
            block, _, held = held.partition(b"\n\n")
            yield block.decode()


def test_in_the_background_it_is_answered_at_once_listed_and_followed(api: httpx.Client, sandbox: str) -> None:
    address = begin(api, sandbox, LINES.format(n=20, s=0.1))
    assert address.rsplit("/", 1)[1] in {
        row["id"] for row in api.get(f"{sandbox}/commands", params={"status": "running"}).json()["items"]
    }
    text, at = "", 0
    while True:
        found = api.get(address, params={"stdout_from": at, "wait": 20}).raise_for_status().json()
        assert found["lost_bytes"]["stdout"] == 0
        text, at = text + found["stdout"], found["next"]["stdout"]
        if found["status"] != "running" and not found["stdout"]:
            break
    assert text == "".join(f"line {n} ü\n" for n in range(1, 21))
    assert (found["status"], found["exit_code"], found["stdout_bytes"]) == ("exited", 7, len(text.encode()))


def test_a_wait_ends_with_the_next_output(api: httpx.Client, sandbox: str) -> None:
    address = begin(api, sandbox, "echo a; sleep 2; echo b; sleep 60")
    first = api.get(address, params={"wait": 30}).json()
    second = api.get(address, params={"wait": 30, "stdout_from": 2}).json()
    assert (first["stdout"], second["stdout"], second["status"]) == ("a\n", "b\n", "running")
    api.delete(address, params={"signal": "KILL"}).raise_for_status()


def test_events_are_whole_and_go_on_where_a_client_was_cut_off(api: httpx.Client, sandbox: str) -> None:
    """Three times cut, and once more after the end: nothing is lost, repeated or run again (A19, C13, C17)."""
    address = begin(api, sandbox, "echo ran >> /work/flaky; " + LINES.format(n=40, s=0.05) + "; echo not reached")
    events = Events(api, address)
    for share in (100, 200, 300):
        events.read(until_bytes=share)
    time.sleep(2.5)
    events.read()
    assert events.out["stdout"].decode() == "".join(f"line {n} ü\n" for n in range(1, 41))
    assert (events.seen[-1], events.exit["status"], events.exit["exit_code"]) == ("exit", "exited", 7)
    again = Events(api, address)
    again.read()
    assert (again.out, again.exit) == (events.out, events.exit)
    assert run(api, sandbox, "cat /work/flaky")["stdout"] == "ran\n"


def test_events_keep_characters_whole_and_bytes_as_they_are(api: httpx.Client, sandbox: str) -> None:
    script = (
        "import sys,time\n"
        "out = sys.stdout.buffer\n"
        "out.write(b'x' * 8191)\n"
        "for byte in 'é漢😀'.encode(): out.write(bytes([byte])); out.flush(); time.sleep(0.05)\n"
        "time.sleep(0.3); out.write(b'\\xff\\x00\\n'); out.flush(); sys.stderr.write('err')"
    )
    address = begin(api, sandbox, f"python - <<'EOF'\n{script}\nEOF")
    live, replayed = Events(api, address), Events(api, address)
    live.read()
    replayed.read()
    whole = b"x" * 8191 + "é漢😀".encode() + b"\xff\x00\n"
    assert live.out == replayed.out == {"stdout": whole, "stderr": b"err"}
    polled = api.get(address).json()["stdout"]
    assert polled == "x" * 8191 + "é漢😀" + "�\x00\n"


def test_a_quiet_command_is_activity_and_its_followers_hear_that_it_lives(api: httpx.Client) -> None:
    """Quiet for twice as long as its sandbox may be idle, timers divided by 60 (B11)."""
    sandbox = f"/sandboxes/{api.post('/sandboxes', json={'idle_timeout_s': 150}).raise_for_status().json()['id']}"
    events = Events(api, begin(api, sandbox, "sleep 6; echo late"))
    events.read()
    assert (events.out["stdout"], events.exit["status"], events.beats > 3) == (b"late\n", "exited", True)
    assert until(lambda: api.get(sandbox).json()["ended_reason"]) == "idle"


def test_a_sandbox_that_is_killed_loses_its_command_and_says_so(served: Served, api: httpx.Client) -> None:
    """Followers hear it at once, as no exit code (C6)."""
    before = set(served.containers())
    sandbox = f"/sandboxes/{api.post('/sandboxes', json={'network': 'none'}).raise_for_status().json()['id']}"
    address = begin(api, sandbox, "echo began; sleep 600")
    events = Events(api, address)
    events.read(until_bytes=6)
    client = docker.DockerClient(EngineConfig.load(served.var, "").docker_host)
    for container_id in set(served.containers()) - before:
        client.containers.get(container_id).remove(force=True, v=True)
    events.read()
    assert (events.exit["status"], events.exit["exit_code"], events.out["stdout"]) == ("lost", None, b"began\n")
    gone = api.post(f"{sandbox}/commands", json={"command": "true", "background": True})
    assert (gone.status_code, gone.json()["code"]) == (409, "sandbox_gone")


def test_bad_and_unknown_places_to_go_on_from(api: httpx.Client, sandbox: str) -> None:
    address = begin(api, sandbox, "echo hi")
    ended(api, address)
    bad = api.get(f"{address}/events", headers={"Last-Event-ID": "x"})
    assert (bad.status_code, bad.json()["code"]) == (422, "validation")
    beyond = api.get(f"{address}/events", headers={"Last-Event-ID": "1000-0"}).text
    assert [line for line in beyond.splitlines() if line.startswith(("event", "id"))] == [
        "event: reset", "id: 3-0", "event: exit", "id: 3-0",
    ]  # fmt: skip


def test_input_is_fed_and_ended(api: httpx.Client, sandbox: str) -> None:
    address = begin(api, sandbox, "cat; echo end", stdin="one\n")
    for body in ({"data": "twö\n"}, {"data": base64.b64encode(b"\xff\n").decode(), "encoding": "base64"}):
        assert api.post(f"{address}/stdin", json=body).json() == {"success": True}
    assert api.post(f"{address}/stdin", json={"eof": True}).status_code == 200
    assert ended(api, address)["stdout"] == "one\ntwö\n\ufffd\nend\n"
    late = api.post(f"{address}/stdin", json={"data": "x"})
    assert (late.status_code, late.json()["code"]) == (409, "command_ended")


def test_stop_ends_the_whole_tree_and_a_second_stop_says_that_it_has_ended(api: httpx.Client, sandbox: str) -> None:
    address = begin(api, sandbox, "setsid sleep 951 & (sleep 952 &) ; sleep 953 | cat; wait")
    until(lambda: run(api, sandbox, "pgrep -fcx 'sleep 95[123]'")["stdout"] == "3\n")
    stopped = api.delete(address).raise_for_status().json()
    assert (stopped["status"], stopped["exit_code"]) == ("stopped", 143)
    assert run(api, sandbox, "pgrep -fx 'sleep 95[123]'")["exit_code"] == 1
    again = api.delete(address)
    assert (again.status_code, again.json()["code"]) == (409, "command_ended")


def test_a_foreground_command_is_stopped_by_its_id_and_its_caller_is_told(
    served: Served, api: httpx.Client, sandbox: str
) -> None:
    answers: list[dict[str, Any]] = []

    def call() -> None:
        with served.api("workspace") as other:
            answers.append(run(other, sandbox, "echo began; sleep 961"))

    caller = threading.Thread(target=call)
    caller.start()
    listed = partial(api.get, f"{sandbox}/commands", params={"status": "running"})
    row = until(lambda: next((each for each in listed().json()["items"] if each["stdout_bytes"]), None))
    stopped = api.delete(f"{sandbox}/commands/{row['id']}", params={"signal": "INT"}).raise_for_status().json()
    caller.join(20)
    assert stopped["status"] == answers[0]["status"] == "stopped"
    assert (answers[0]["stdout"], answers[0]["exit_code"]) == ("began\n", stopped["exit_code"])


def test_what_a_foreground_command_leaves_is_named_listed_and_stopped_by_its_id(
    api: httpx.Client, sandbox: str
) -> None:
    began = time.monotonic()
    left = run(api, sandbox, "setsid sleep 971 & echo started")
    assert time.monotonic() - began < 30
    assert (left["stdout"], left["status"], left["left_running"]) == ("started\n", "exited", [left["id"]])
    address = f"{sandbox}/commands/{left['id']}"
    assert api.get(address).json()["left_running"] == [left["id"]]
    gone = api.delete(address).raise_for_status().json()
    assert (gone["status"], gone["exit_code"], gone["left_running"]) == ("exited", 0, [])
    assert run(api, sandbox, "pgrep -fx 'sleep 971'")["exit_code"] == 1
    short = run(api, sandbox, "(sleep 1 &)")
    assert until(lambda: not api.get(f"{sandbox}/commands/{short['id']}").json()["left_running"])


def test_each_way_to_end_has_its_status(api: httpx.Client, sandbox: str) -> None:
    ends = {
        "exit 3": ("exited", 3),
        "kill -TERM $$": ("signalled", 143),
        "no-such-program": ("exited", 127),
        "sleep 60": ("timed_out", 124),
    }
    for command, expected in ends.items():
        row = ended(api, begin(api, sandbox, command, timeout=1.5 if command == "sleep 60" else 60))
        assert (row["status"], row["exit_code"]) == expected
    lost = api.post(f"{sandbox}/commands", json={"command": "true", "background": True, "cwd": "/nowhere"})
    assert (lost.status_code, lost.json()["code"]) == (404, "file_not_found")
    assert api.get(f"{sandbox}/commands", params={"status": "running"}).json()["items"] == []


def test_a_flood_that_nobody_reads_is_bounded(served: Served, api: httpx.Client, sandbox: str) -> None:
    """`yes`, its only follower gone (C2): memory and disk of the server stay small, a new follower gets both ends."""
    before = _memory(served)
    address = begin(api, sandbox, "echo first; yes")
    Events(api, address).read(until_bytes=1000)
    time.sleep(6)
    with api.stream("GET", f"{address}/events") as unread:  # held open, and never read
        time.sleep(1)
        assert _memory(served) - before < 60 << 20
        row = api.get(address, params={"stdout_from": 0}).json()
        assert row["stdout"].startswith("first\ny\ny\n")
        assert row["stdout_bytes"] > 20 << 20
        assert run(api, sandbox, "echo still")["stdout"] == "still\n"
        unread.close()
    stopped = api.delete(address).raise_for_status().json()
    assert stopped["status"] == "stopped"
    kept = sum(file.stat().st_size for file in (served.var / "outputs" / stopped["action_id"]).iterdir())
    assert kept < 20 << 20
    tail = api.get(address, params={"stdout_from": stopped["stdout_bytes"] - 100}).json()
    assert (tail["lost_bytes"]["stdout"], tail["stdout"]) == (0, "y\n" * 50)


def _memory(served: Served) -> int:
    assert served.process
    with open(f"/proc/{served.process.pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))


def test_a_client_that_leaves_takes_no_command_with_it(served: Served, api: httpx.Client, sandbox: str) -> None:
    """Neither the call that began it nor one that follows it (B8, B9)."""
    with served.api("workspace", timeout_s=0.5) as hasty, suppress(httpx.TimeoutException):
        address = begin(hasty, sandbox, "sleep 3; echo done")
        hasty.get(address, params={"wait": 30})
    assert ended(api, address)["stdout"] == "done\n"


def test_a_killed_server_finds_its_commands_again(served: Served, api: httpx.Client, sandbox: str) -> None:
    """`kill -9` while one prints, one has ended and one is left: all three are told of after the restart (A11)."""
    printing = begin(api, sandbox, LINES.format(n=120, s=0.05))
    ending = begin(api, sandbox, "sleep 1; echo over; exit 5")
    left = run(api, sandbox, "(sleep 2 &)")
    events = Events(api, printing)
    events.read(until_bytes=200)
    served.kill()
    time.sleep(2)  # it prints on while nobody listens
    served.up()
    with served.api("workspace") as after:
        events.api = after
        events.read()
        assert events.out["stdout"].decode() == "".join(f"line {n} ü\n" for n in range(1, 121))
        assert events.exit["exit_code"] == 7
        row = ended(after, ending)
        assert (row["stdout"], row["exit_code"], row["status"]) == ("over\n", 5, "exited")
        assert until(lambda: not after.get(f"{sandbox}/commands/{left['id']}").json()["left_running"])
        running = begin(after, sandbox, "sleep 60")
        after.delete(sandbox).raise_for_status()
        assert after.get(running).status_code == 404
