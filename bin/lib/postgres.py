"""A PostgreSQL of our own for tests: made in a temporary folder, run by an unprivileged user, gone afterwards.

Reached by a socket in that folder alone. Must never touch, start or stop a cluster of the machine's.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lib import debian
from lib.say import Stop, say

INSTALLED = Path("/usr/lib/postgresql")
USER = "nobody"  # when we are root, as whom PostgreSQL refuses to run
START_S, STOP_S = 30, 10
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "listen_addresses=", "max_connections=60")


@contextmanager
def cluster() -> Iterator[str]:
    """The address of its database, for SANDGATE_DATABASE_URL."""
    programs = found()
    folder = Path(tempfile.mkdtemp(prefix="sandgate-pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        made(programs, folder)
        server = started(programs, folder)
        try:
            wait_until_up(programs, folder, server)
            yield f"postgresql://sandgate@/postgres?host={folder}"
        finally:
            stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def found() -> Path:
    """Where initdb and postgres lie, the newest ones; Debian's, installed when there are none."""
    if not list(INSTALLED.glob("*/bin/initdb")):
        debian.install(["postgresql"], why="tests of the gate on PostgreSQL; its own service stays off")
    return max(INSTALLED.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3])).parent


def made(programs: Path, folder: Path) -> None:
    command: list[str | Path] = [
        programs / "initdb",
        "-D",
        folder / "data",
        "-U",
        "sandgate",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
    ]
    command.append("--locale=C.UTF-8")
    done = subprocess.run(as_nobody(command), cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Stop(f"initdb made no cluster for the tests: {done.stderr.strip()}")


def started(programs: Path, folder: Path) -> subprocess.Popen[bytes]:
    command: list[str | Path] = [programs / "postgres", "-D", folder / "data", "-k", folder]
    for setting in QUICK:
        command += ["-c", setting]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            as_nobody(command), cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )  # fmt: skip


def as_nobody(command: list[str | Path]) -> list[str]:
    """It stops when we are killed: INT is its fast shutdown."""
    nobody = [f"--reuid={USER}", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    return ["setpriv", *nobody, "--pdeathsig=INT", *(str(word) for word in command)]


def wait_until_up(programs: Path, folder: Path, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_S
    while subprocess.run([programs / "pg_isready", "-q", "-h", folder]).returncode:
        if server.poll() is not None or time.monotonic() > until:
            raise Stop(f"the tests' PostgreSQL did not start: {(folder / 'log').read_text()[-2000:]}")
        time.sleep(0.1)


def stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGINT)
    try:
        server.wait(STOP_S)
    except subprocess.TimeoutExpired:
        say("the tests' PostgreSQL did not stop in time, so it was killed")
        server.kill()
        server.wait()
