"""Machines to be reached, or not, from real sandboxes: one network namespace that has an address of every range, behind
this machine, and services on this machine itself. Made for a test module and gone after it; nothing leaves the machine.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandboxes.engine import hostnet
from sandboxes.engine.hostnet import tool

from .netspaces import PROBES

PORT, OTHER_PORT = 18080, 18081
HERE, PUBLIC, RESOLVER = "11.0.0.1", "11.0.0.2", "10.255.0.53"
RANGES = {
    "10/8": "10.9.0.2",
    "172.16/12": "172.20.5.2",
    "192.168/16": "192.168.77.2",
    "metadata": "169.254.169.254",
    "link-local": "169.254.7.7",
    "carrier-grade": "100.64.5.2",
    "192.0.0/24": "192.0.0.8",
    "TEST-NET-1": "192.0.2.200",
    "TEST-NET-2": "198.51.100.7",
    "TEST-NET-3": "203.0.113.7",
    "6to4 relays": "192.88.99.7",
    "benchmarks": "198.18.0.7",
    "240/4": "240.0.0.7",
}
LOCK = Path("/run/sandgate-test-hosts.lock")
ZONE = {
    "public.test": [PUBLIC],
    "private.test": ["10.9.0.2"],
    "metadata.test": ["169.254.169.254"],
    "self.test": ["127.0.0.1"],
    "rebinding.test": [PUBLIC, "10.9.0.2"],
}


@contextmanager
def beyond() -> Iterator[str]:
    """The namespace's name. One test run at a time: routes are the machine's."""
    space = f"sandgate-test-{os.getpid()}"
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _clear()
        try:
            _make(space)
            yield space
        finally:
            _clear()


def _clear() -> None:
    """Also what a run that was killed has left: nobody else is at it, since we have the lock."""
    if any(link["ifname"] == "sgtest0" for link in hostnet.asked("link")):
        tool("ip", "link", "delete", "sgtest0")  # the routes go with it
    for listed in tool("ip", "netns", "list").splitlines():
        if listed.startswith("sandgate-test-"):
            tool("ip", "netns", "delete", listed.split()[0])


def _make(space: str) -> None:
    tool("ip", "netns", "add", space)
    tool("ip", "link", "add", "sgtest0", "type", "veth", "peer", "name", "eth0", "netns", space)
    tool("ip", "addr", "add", f"{HERE}/24", "dev", "sgtest0")
    tool("ip", "link", "set", "sgtest0", "up")
    for interface in ("lo", "eth0"):
        tool("ip", "-n", space, "link", "set", interface, "up")
    for address in (PUBLIC, RESOLVER, *RANGES.values()):
        tool("ip", "-n", space, "addr", "add", f"{address}/32", "dev", "eth0")
        if address != PUBLIC:
            tool("ip", "route", "add", f"{address}/32", "dev", "sgtest0")
    tool("ip", "-n", space, "route", "add", "default", "via", HERE, "dev", "eth0", "onlink")


@contextmanager
def running(verb: str, words: Any) -> Iterator[None]:
    server = subprocess.Popen([sys.executable, str(PROBES), verb, json.dumps(words)], stdout=subprocess.PIPE)
    assert server.stdout
    try:
        assert server.stdout.readline() == b"serving\n"
        yield
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def own_addresses() -> list[str]:
    """This machine's, loopback and bridges of sandboxes aside."""
    links = hostnet.asked("-4", "addr")
    return [
        each["local"]
        for link in links
        if link["ifname"] != "lo" and not link["ifname"].startswith("sgn")
        for each in link["addr_info"]
    ]
