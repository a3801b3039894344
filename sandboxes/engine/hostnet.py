"""The host's own network tools: `nft`, `ip`, and the per-interface switches under /proc/sys. Owns how they are called.

Must never be given a word of a sandbox's or a caller's, and never change a switch that holds for the whole host.
"""

import errno
import json
import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

TOOL_S = 20
PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
SWITCHES = Path("/proc/sys/net/ipv4/conf")


_NETFILTER, _TABLES = 12, 7
"""The kernel's protocol and its group that tell of every change to any nftables table. Python has no names for them."""


class NetworkFault(Exception):
    """The kernel did not do as asked. The text says which tool said what."""


def tool(*argv: str, told: str = "") -> str:
    env = {**os.environ, "PATH": PATH, "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, input=told, capture_output=True, text=True, timeout=TOOL_S, env=env, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetworkFault(f"{argv[0]}: {error}") from error
    if done.returncode:
        raise NetworkFault(f"{' '.join(argv[:3])}: {done.stderr.strip()[:300] or f'exit {done.returncode}'}")
    return done.stdout


def asked(*argv: str) -> list[dict[str, Any]]:
    """What `ip -j …` prints."""
    try:
        found: list[dict[str, Any]] = json.loads(tool("ip", "-j", *argv) or "[]")
    except ValueError as error:
        raise NetworkFault(f"ip {' '.join(argv)}: {error}") from error
    return found


def changes() -> socket.socket:
    """Readable when somebody, maybe we, changed one. What it says is not worth reading; `heard` throws it away."""
    told = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETFILTER)
    told.setblocking(False)
    told.bind((0, 1 << (_TABLES - 1)))
    return told


def heard(told: socket.socket) -> None:
    with suppress(BlockingIOError):
        while True:
            try:
                told.recv(65536)
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # more than it holds: then there was something, and that is all we ask
                    raise


def switch(interface: str, name: str = "forwarding") -> bool:
    return (SWITCHES / interface / name).read_text().strip() == "1"


def turn(interface: str, *, on: bool, name: str = "forwarding") -> None:
    try:
        (SWITCHES / interface / name).write_text("1" if on else "0")
    except OSError as error:
        raise NetworkFault(f"net.ipv4.conf.{interface}.{name}: {error.strerror}") from error
