"""`manage.py up`: one per state directory, ready when it says so, and gone without a trace on every way out."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from tests import migrated

from .conftest import CHECKOUT


def start(state, *arguments, code=None, **env):
    command = [sys.executable, "-c", code] if code else [sys.executable, "manage.py", "up"]
    return subprocess.Popen(
        [*command, *arguments], cwd=CHECKOUT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "console.settings", "SANDGATE_VAR": str(state), **env},
    )  # fmt: skip


@contextmanager
def up(state, *arguments, **kwargs):
    """A running console: its process, its address, and what it said before."""
    process = start(state, *(arguments or ("--port", "0")), **kwargs)
    try:
        said = []
        while line := process.stdout.readline().strip():
            if line.startswith("ready on "):
                break
            said.append(line)
        else:
            raise AssertionError(process.communicate()[1])
        yield process, line.removeprefix("ready on "), said
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def status(url):
    try:
        return urllib.request.urlopen(url, timeout=5).status
    except urllib.error.HTTPError as error:
        return error.code


def ended(process, within_s=30):
    """What it said; a test that fails here leaves nothing running."""
    try:
        return process.communicate(timeout=within_s)
    finally:
        process.kill()


def refused(process, within_s=30):
    out, err = ended(process, within_s)
    assert process.returncode == 1, (out, err)
    assert err.count("\n") == 1, err
    return err


@pytest.fixture
def state(tmp_path):
    """A state directory whose database needs no migrating."""
    migrated.copy(tmp_path)
    return tmp_path


def is_free(state):
    with (state / "up.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True


def test_it_serves_says_where_and_stops_in_order(tmp_path):
    with up(tmp_path) as (process, url, said):
        assert status(f"{url}/sign-in") == 200
        assert status(f"{url}/v1/sandboxes") == 401
        first = json.loads((tmp_path / "first-run.json").read_text())
        assert first["url"] == url
        assert first["admin"]["password"] in said[0]
        assert str(tmp_path / "first-run.json") in said[1]
        request = urllib.request.Request(f"{url}/v1/sandboxes", headers={"X-API-Key": first["agent_key"]})
        assert json.load(urllib.request.urlopen(request)) == []
        process.send_signal(signal.SIGTERM)
        out, err = ended(process)
    assert (process.returncode, out) == (0, "stopped\n"), err
    assert is_free(tmp_path)
    assert not list(tmp_path.glob("db.sqlite3-*")), "the last handle closed and folded the log in"
    with up(tmp_path) as (_, url, said_again):
        assert json.loads((tmp_path / "first-run.json").read_text()) == {**first, "url": url}
        assert first["admin"]["password"] not in "".join(said_again)


def test_what_was_written_at_the_first_start_names_the_address_of_this_one(state):
    path = state / "first-run.json"
    with up(state):
        first = json.loads(path.read_text())
    with up(state) as (_, url, _):
        assert url != first["url"], "port 0 gives another each time"
        assert json.loads(path.read_text()) == {**first, "url": url}
        assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    with up(state):
        assert not path.exists(), "forgotten is forgotten"


def test_a_second_one_on_the_same_state_says_so_and_harms_nothing(state):
    with up(state) as (process, url, _):
        error = refused(start(state, "--port", "0"))
        assert f"process {process.pid}" in error
        assert str(state) in error
        assert status(f"{url}/sign-in") == 200


def test_a_taken_port_is_told_before_anything_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        error = refused(start(tmp_path, SANDGATE_PORT=str(other.getsockname()[1])))
    assert "is taken by another program" in error
    assert "SANDGATE_PORT" in error
    assert not (tmp_path / "db.sqlite3").exists()


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", "0"), ("127.0.0.1", "70000")])
def test_an_address_that_cannot_be_served_is_told(tmp_path, host, port):
    assert "cannot be served" in refused(start(tmp_path, "--host", host, "--port", port), within_s=30)


def test_after_a_kill_the_next_start_just_starts(state):
    with up(state) as (process, *_):
        process.kill()
        process.wait()
    with up(state) as (_, url, _):
        assert status(f"{url}/sign-in") == 200


@pytest.mark.parametrize("after_s", [0.3, 1.0, 1.7])
def test_a_signal_while_it_starts_ends_it(tmp_path, after_s):
    process = start(tmp_path, "--port", "0")
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    ended(process)
    assert process.returncode in (0, 130, -signal.SIGINT), "stopped, unwound, or before it had a handler"


TOLD_IN_A_FINALIZER = """
import os, signal, weakref
import django
django.setup()
from console import first_run

class Thing:
    pass

ensure = first_run.ensure

def told(url):
    thing = Thing()
    weakref.finalize(thing, os.kill, os.getpid(), signal.SIGINT)
    del thing
    return ensure(url)

first_run.ensure = told
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "up", "--port", "0"])
"""


def test_a_signal_in_the_middle_of_a_finalizer_is_not_lost(state):
    """Python drops what its handler raises there."""
    process = start(state, code=TOLD_IN_A_FINALIZER)
    out, err = ended(process)
    assert process.returncode == 130, (out, err)
    assert "Exception ignored in" in err
    assert "ready on" not in out


DYING = """
import asyncio, sys
import django
django.setup()
from sandboxes import host

async def dies(hub):
    hub._loop, hub._main_task = asyncio.get_running_loop(), asyncio.current_task()
    hub._ready.set()
    await asyncio.sleep(float(sys.argv.pop()))
    raise RuntimeError("the loop broke")

host.Hub._main = dies
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "up", "--port", "0"])
"""


def test_the_server_does_not_go_on_without_its_host(state):
    process = start(state, "0.5", code=DYING)
    out, err = ended(process)
    assert process.returncode == 1
    assert "ready on" in out
    assert err.endswith("The sandbox host died; the log above says why, and `manage.py up` starts it again.\n")


IMPORTED = """
import sys, threading
import console.asgi
assert threading.active_count() == 1, threading.enumerate()
assert "twisted.internet.reactor" not in sys.modules and "daphne" not in sys.modules
"""


def test_importing_the_doors_starts_nothing(tmp_path):
    process = start(tmp_path, code=IMPORTED)
    _, err = ended(process)
    assert process.returncode == 0, err


def test_runserver_points_here(tmp_path):
    process = start(tmp_path, code="import sys; from django.core.management import execute_from_command_line as run; "
                    "run(['manage.py', 'runserver', '127.0.0.1:9'])")  # fmt: skip
    assert "manage.py up" in refused(process)


def test_bound_to_all_addresses_it_says_that_others_need_a_name(state):
    with up(state, "--host", "0.0.0.0", "--port", "0") as (_, url, said):
        assert url.startswith("http://127.0.0.1:")
        assert any("SANDGATE_ORIGINS" in line for line in said)
        request = urllib.request.Request(f"{url}/sign-in", headers={"Host": "192.168.1.5"})
        assert status(request) == 400
    with up(state, "--host", "0.0.0.0", "--port", "0", SANDGATE_ORIGINS="http://192.168.1.5") as (_, url, said):
        assert not any("SANDGATE_ORIGINS" in line for line in said)
        request = urllib.request.Request(f"{url}/sign-in", headers={"Host": "192.168.1.5"})
        assert status(request) == 200
