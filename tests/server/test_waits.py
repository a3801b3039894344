"""A hundred calls that wait for a person cost no thread and no database handle each. `tests/bench/waits.py` measures
that they slow nobody."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import CHECKOUT, Client, connect
from .test_up import up

WAITING, PER_KEY = 100, 20

SEED = """
import django, json
django.setup()
from console.workspaces import keys
from console.workspaces.models import Agent
from tests.approvals.proposals import pending
secrets = [keys.make_agent_key(Agent.objects.get(), name="waiter", by=None)[1] for n in range(%d)]
print(json.dumps([pending(keys.authenticate(secrets[0])).pk, secrets]))
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The process, the port and the state directory of one console."""
    state = tmp_path_factory.mktemp("waits")
    with up(state) as (process, url, _):
        yield process, int(url.rpartition(":")[2]), state


def seed(state: Path) -> tuple[str, list[str]]:
    """Made by another process, as `manage.py` would: the server learns of it from the table alone."""
    return json.loads(run(SEED % (WAITING // PER_KEY), state))


def run(script: str, state: Path, *arguments: str) -> bytes:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "console.settings", "SANDGATE_VAR": str(state)}
    return subprocess.check_output([sys.executable, "-c", script, *arguments], cwd=CHECKOUT, env=env)


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def database_handles(pid: int, state: Path) -> int:
    fds = f"/proc/{pid}/fd"
    return sum(os.path.realpath(f"{fds}/{fd}") == str(state / "db.sqlite3") for fd in os.listdir(fds))


def ping(client: Client, key: str) -> None:
    client.send("GET /v1/admin/me HTTP/1.1", key=key)
    assert client.answer().status == 200


def test_a_hundred_waits_hold_few_threads_and_few_handles(running):
    process, port, state = running
    action, secrets = seed(state)
    other = connect(port)
    for _ in range(60):  # from here on each thread and handle that a call ever needs is there
        ping(other, secrets[0])
    before = threads(process.pid)
    clients = [connect(port) for _ in range(WAITING)]
    for number, client in enumerate(clients):
        client.send(f"GET /v1/actions/{action}?wait=50 HTTP/1.1", key=secrets[number // PER_KEY])
    time.sleep(1)
    assert threads(process.pid) - before <= 6
    assert database_handles(process.pid, state) <= 8
    for _ in range(60):
        ping(other, secrets[0])
    assert threads(process.pid) - before <= 6
    other.send(f"POST /v1/actions/{action}/cancel HTTP/1.1", "Content-Length: 0", key=secrets[0])
    assert other.answer().json["status"] == "cancelled"
    assert {client.answer().json["status"] for client in clients} == {"cancelled"}
    for client in [other, *clients]:
        client.sock.close()


CANCEL = """
import django, sys
django.setup()
from approvals import gate
from approvals.models import Action
from console.workspaces import keys
gate.cancel(Action.objects.get(pk=sys.argv[1]), by=keys.authenticate(sys.argv[2]))
"""


def test_a_change_by_another_process_ends_a_wait_long_before_its_time(running):
    _, port, state = running
    action, secrets = seed(state)
    with connect(port) as client:
        client.send(f"GET /v1/actions/{action}?wait=50 HTTP/1.1", key=secrets[0])
        run(CANCEL, state, action, secrets[0])
        began = time.monotonic()
        assert client.answer().json["status"] == "cancelled"
        assert time.monotonic() - began < 20
