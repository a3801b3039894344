"""A halt on a real console with real sandboxes: what of the agent runs is dead and cut off within seconds, its files
are kept, and whoever was not named goes on."""

import hashlib
import io
import json
import os
import select
import shlex
import sqlite3
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import docker
import httpx
import pytest

from console import state
from sandboxes.engine import EngineConfig
from sandboxes.engine.hostnet import tool
from sandboxes.engine.killing import GROUPS, PROGRAMS
from sandboxes.engine.names import LABEL_SANDBOX
from tests.people import PASSWORD

from . import hosts
from .hosts import PORT, PUBLIC
from .served import CHECKOUT, Served, until

pytestmark = pytest.mark.gvisor
WITHIN_S = 5.0
FORKS = "while true; do (setsid sleep 20 &); (sleep 20 & sleep 20 &); sleep 0.3; done"
LOOP = f"""
import socket
while True:
    print("hi", flush=True)
    try:
        with socket.create_connection(({PUBLIC!r}, {PORT}), 0.2) as far:
            far.sendall(b"GET /")
            far.recv(65536)
    except OSError:
        pass
"""
PEOPLE = """
import json
from console.workspaces import agents, keys, members, permissions
from console.workspaces.models import Member, Workspace
from tests.people import agent, member
workspace = Workspace.objects.get()
alice = member(workspace, "alice", *permissions.PRESETS["admin"])
found = {"workspace": workspace.pk}
for name in ("scout", "other"):
    one = agents.change_tools(agent(workspace, name), by=None, command_mode="never", write_mode="never")
    found[name] = {"id": one.pk, "key": keys.make_agent_key(one, name="test", by=None)[1]}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with hosts.beyond() as space, hosts.running("serve", [[space, PUBLIC, PORT]]):
        console = Served(tmp_path_factory.mktemp("halt") / "var").up()
        yield console
        console.close()


@pytest.fixture(scope="module")
def people(served: Served) -> Any:
    command = [sys.executable, "manage.py", "shell", "-v", "0", "-c", PEOPLE]
    done = subprocess.run(command, cwd=CHECKOUT, env=served.environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


class Agents:
    """An agent's client, which never has to ask."""

    def __init__(self, served: Served, agent: dict[str, str]) -> None:
        self.id = agent["id"]
        headers = {"X-API-Key": agent["key"]}
        self.api = httpx.Client(base_url=f"{served.url}/v1", headers=headers, timeout=130, trust_env=False)

    def sandbox(self, **body: Any) -> str:
        return str(self.api.post("/sandboxes", json=body).raise_for_status().json()["id"])

    def run(self, sandbox: str, command: str, **more: Any) -> httpx.Response:
        return self.api.post(f"/sandboxes/{sandbox}/commands", json={"command": command, **more})

    def begin(self, sandbox: str, command: str) -> str:
        return str(self.run(sandbox, command, background=True).raise_for_status().json()["id"])


@pytest.fixture
def scout(served: Served, people: Any) -> Agents:
    return Agents(served, people["scout"])


@pytest.fixture
def other(served: Served, people: Any) -> Agents:
    return Agents(served, people["other"])


def halt(served: Served, path: str) -> dict[str, Any]:
    with served.api("review") as reviewer:
        found: dict[str, Any] = reviewer.post(path, json={"reason": "Unknown uploads"}).raise_for_status().json()
    return found


class Browser:
    """Alice's, without scripts."""

    def __init__(self, served: Served, workspace: str) -> None:
        self.client = httpx.Client(base_url=served.url, timeout=60, trust_env=False)
        self.workspace = f"/w/{workspace}"
        self.post("/sign-in", "/sign-in", email="alice@example.test", password=PASSWORD)

    def post(self, page: str, path: str, **data: str) -> httpx.Response:
        """A form of that page, sent as a browser sends it."""
        token = self.client.get(page).text.partition('csrfmiddlewaretoken" value="')[2].partition('"')[0]
        answer = self.client.post(path, data={**data, "csrfmiddlewaretoken": token})
        assert answer.status_code == 302, answer.text
        return answer

    def lift_all(self, served: Served) -> None:
        """She has signed in a moment ago, so no password is asked for."""
        for (halt_id,) in rows(served, "SELECT id FROM workspaces_halt WHERE lifted_at IS NULL"):
            address = f"{self.workspace}/halts/{halt_id}/lift"
            self.post(address, address, reason="Looked at")


@pytest.fixture
def alice(served: Served, people: Any) -> Browser:
    return Browser(served, people["workspace"])


def containers(served: Served) -> dict[str, str]:
    """Ids by sandbox, from Docker itself."""
    client = docker.DockerClient(EngineConfig.load(served.var, "").docker_host)
    try:
        mine = {"label": f"sandgate.instance={state.instance(served.var)}"}
        listed = client.api.containers(all=True, filters=mine)
        return {each["Labels"][LABEL_SANDBOX]: each["Id"] for each in listed}
    finally:
        client.close()


def on_this_machine(*container_ids: str) -> dict[int, str]:
    """Sentries and gofers of those containers: what runs inside is threads of theirs. A zombie has no command. In one
    look, which takes its time: a busy machine has thousands of processes."""
    found = {}
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", number, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        name = os.path.basename(words[0]).decode("ascii", "replace")
        if name in PROGRAMS and any(each.encode() in word for each in container_ids for word in words):
            found[int(number)] = name
    return found


def in_groups(*container_ids: str) -> list[str]:
    """All processes of those containers that the kernel still counts, the least helper of a sentry too."""
    top = Path("/sys/fs/cgroup")
    places = [top / place.format(each) for each in container_ids for place in GROUPS]
    return [pid for each in places for pid in _read(each / "cgroup.procs").split()]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # its group went with it
        return ""


class Deaths:
    """Of the processes of some containers, told by the kernel: asking for them again and again would slow down what is
    measured, and be slow itself."""

    def __init__(self, *container_ids: str) -> None:
        self.container_ids = container_ids
        assert all(map(in_groups, container_ids))
        self.handles = [os.pidfd_open(pid) for pid in on_this_machine(*container_ids)]
        assert len(self.handles) >= 2 * len(container_ids)  # a sentry and a gofer each

    def wait(self, *, within_s: float) -> None:
        """Until all are dead, and nothing that came meanwhile is there."""
        end = time.monotonic() + within_s
        for handle in self.handles:
            assert select.select([handle], [], [], max(0.0, end - time.monotonic()))[0], f"not within {within_s} s"
            os.close(handle)
        until(lambda: not in_groups(*self.container_ids), within_s=max(0.0, end - time.monotonic()))
        self.dead_at, self.dead_time = time.monotonic(), time.time()
        assert not on_this_machine(*self.container_ids)


def bridges(served: Served) -> set[str]:
    """Of this console, that packets can pass."""
    listed = tool("ip", "-o", "link", "show", "up", "type", "bridge").splitlines()
    names = {line.split(":")[1].strip() for line in listed}
    return {name for name in names if name.startswith(state.bridge_prefix(state.instance(served.var)))}


def rows(served: Served, question: str, *values: str) -> list[Any]:
    with closing(sqlite3.connect(served.var / "db.sqlite3")) as database:
        return database.execute(question, values).fetchall()


def said(agent: Agents, sandbox: str, command: str) -> str:
    found = agent.api.get(f"/sandboxes/{sandbox}/commands/{command}").raise_for_status().json()
    assert not found["stderr"], found["stderr"]
    return str(found["stdout"])


def change(served: Served, statement: str, *values: str) -> None:
    """Time passes: what a clock looks at is moved."""
    with closing(sqlite3.connect(served.var / "db.sqlite3", timeout=20)) as database, database:
        database.execute(statement, values)


def test_all_that_runs_is_dead_and_cut_off_and_another_agent_goes_on(
    served: Served, scout: Agents, other: Agents, capsys: pytest.CaptureFixture[str]
) -> None:
    before = bridges(served)
    first, second = scout.sandbox(), scout.sandbox()
    own_bridges = bridges(served) - before
    assert len(own_bridges) == 2
    elsewhere = other.sandbox()
    loop = scout.begin(second, f"python3 -u -c {shlex.quote(LOOP)}")
    until(lambda: "hi" in said(scout, second, loop), within_s=60)
    long, forks = scout.begin(first, "sleep 1000"), scout.begin(first, FORKS)
    theirs = other.begin(elsewhere, "sleep 1000")
    waited: list[httpx.Response] = []
    waiting = threading.Thread(target=lambda: waited.append(scout.run(first, "sleep 999")))
    waiting.start()
    until(lambda: len(scout.api.get(f"/sandboxes/{first}/commands").json()["items"]) == 3, within_s=60)
    ids = containers(served)
    assert all(on_this_machine(ids[each]) for each in (first, second, elsewhere))

    deaths = Deaths(ids[first], ids[second])
    began_at = time.monotonic()
    halt(served, f"/agents/{scout.id}/halt")
    answered_s = time.monotonic() - began_at
    deaths.wait(within_s=30)
    dead_s = deaths.dead_at - began_at
    until(lambda: not own_bridges & bridges(served), within_s=30)
    cut_s = time.monotonic() - began_at
    with capsys.disabled():
        print(f"\nhalt: answered {answered_s:.2f} s, all dead {dead_s:.2f} s, cut off {cut_s:.2f} s")
    assert max(dead_s, cut_s) <= WITHIN_S

    waiting.join(10)
    assert (waited[0].status_code, waited[0].json()["code"]) == (423, "halted"), waited[0].text
    action = scout.api.get(f"/actions/{waited[0].json()['action_id']}").json()
    assert (action["status"], action["outcome"]["error"]["code"]) == ("failed", "halted")
    for sandbox, command in ((first, long), (first, forks), (second, loop)):
        until(lambda at=f"/sandboxes/{sandbox}/commands/{command}": scout.api.get(at).json()["status"] != "running")
    assert on_this_machine(ids[elsewhere])
    assert other.run(elsewhere, "echo on").json()["stdout"] == "on\n"
    assert other.api.get(f"/sandboxes/{elsewhere}/commands/{theirs}").json()["status"] == "running"
    for refused in (scout.run(first, "true"), scout.api.post("/sandboxes", json={})):
        assert (refused.status_code, refused.json()["code"]) == (423, "halted")


def test_its_files_can_be_had_as_a_tar_and_nothing_of_it_is_started(
    served: Served, scout: Agents, alice: Browser
) -> None:
    alice.lift_all(served)
    sandbox = scout.sandbox(network="none", label="evidence")
    made = "mkdir -p deep && echo evidence > deep/file && ln -s /etc/passwd link && head -c 3000000 /dev/urandom > big"
    wanted = scout.run(sandbox, f"{made} && sha256sum big | cut -d' ' -f1").json()["stdout"].strip()
    halt(served, f"/agents/{scout.id}/halt")
    until(lambda: sandbox not in containers(served))
    answer = alice.client.get(f"{alice.workspace}/sandboxes/{sandbox}/quarantine")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == f'attachment; filename="{sandbox}.tar"'
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        assert tar.extractfile("work/deep/file").read() == b"evidence\n"
        assert hashlib.sha256(tar.extractfile("work/big").read()).hexdigest() == wanted
        assert tar.getmember("work/link").linkname == "/etc/passwd"
    until(lambda: sandbox not in containers(served))
    assert (served.var / "disks" / f"{sandbox}.ext4").exists()
    assert rows(served, "SELECT 1 FROM workspaces_auditentry WHERE event = 'sandbox.quarantine_downloaded'")

    alice.lift_all(served)
    gone = scout.run(sandbox, "true")
    assert (gone.status_code, gone.json()["code"], gone.json()["ended_reason"]) == (409, "sandbox_gone", "halted")
    refused = scout.api.delete(f"/sandboxes/{sandbox}")
    assert (refused.status_code, refused.json()["code"]) == (423, "halted"), "kept, whoever wants it gone"
    change(served, "UPDATE sandboxes_sandbox SET quarantined_until = '2020-01-01 00:00:00' WHERE id = ?", sandbox)
    until(lambda: not (served.var / "disks" / f"{sandbox}.ext4").exists())


def test_a_server_killed_in_the_middle_of_it_finishes_it_when_it_is_back(
    served: Served, scout: Agents, alice: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    alice.lift_all(served)
    sandbox = scout.sandbox(network="none")
    scout.run(sandbox, "echo kept > /work/kept")
    scout.begin(sandbox, FORKS)
    container = containers(served)[sandbox]
    halt(served, f"/agents/{scout.id}/halt")
    served.kill()
    left = "it still ran" if on_this_machine(container) else "it was down"
    began_at = time.monotonic()
    served.up()
    until(lambda: not on_this_machine(container), within_s=30)
    with capsys.disabled():
        print(f"\nkilled mid-halt ({left}): down {time.monotonic() - began_at:.2f} s after the start")
    unfinished = "SELECT 1 FROM sandboxes_sandbox WHERE ended_reason = 'halted' AND container_id != ''"
    until(lambda: not rows(served, unfinished))
    assert (served.var / "disks" / f"{sandbox}.ext4").exists()
    assert not rows(served, "SELECT 1 FROM approvals_action WHERE status IN ('pending', 'approved', 'running')")


def test_a_workspace_of_many_sandboxes_is_down_in_time(
    served: Served, people: Any, alice: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the halt's own time on. What the least request takes at that moment, on whatever else this machine does
    beside eight sandboxes that burn all its processors, comes on top."""
    alice.lift_all(served)
    for name in ("scout", "other"):
        agent = Agents(served, people[name])
        for _ in range(4):
            agent.begin(agent.sandbox(network="none"), FORKS)
    ids = list(containers(served).values())
    assert len(ids) >= 8
    deaths = Deaths(*ids)
    with served.api("review") as reviewer:
        began_at = time.monotonic()
        reviewer.get("/halts", params={"limit": 1}).raise_for_status()
        least_s = time.monotonic() - began_at
    began_at = time.monotonic()
    halted_at = datetime.fromisoformat(halt(served, "/workspace/halt")["halted_at"]).timestamp()
    answered_s = time.monotonic() - began_at
    deaths.wait(within_s=60)
    took_s = deaths.dead_time - halted_at
    with capsys.disabled():
        print(f"\nworkspace halt: {len(ids)} sandboxes dead {took_s:.2f} s after it,")
        print(f"answered after {answered_s:.2f} s, the least request after {least_s:.2f} s")
        print(*(line for line in served.printed if "all is dead" in line), f"load {os.getloadavg()[0]:.0f}", sep="\n")
    assert took_s <= WITHIN_S + least_s
