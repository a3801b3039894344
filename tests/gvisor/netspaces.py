"""A small internet in network namespaces of its own: a host whose jail is under test, sandboxes on bridges, and one
machine beyond that has every address worth trying. The real kernel and the real nft, and nothing of this machine's."""

import asyncio
import ctypes
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, TypeVar

from sandboxes.engine.hostnet import tool
from sandboxes.engine.names import bridge_name
from sandboxes.engine.rules import Lane

T = TypeVar("T")
CLONE_NEWNET = 0x40000000
BLOCK = IPv4Network("10.170.0.0/20")
PUBLIC, PRIVATE, METADATA, RESOLVER = "11.0.0.2", "10.9.0.2", "169.254.169.254", "10.255.0.53"
BEYOND = (PUBLIC, PRIVATE, METADATA, RESOLVER, "192.168.77.2", "172.20.5.2", "100.64.5.2", "198.18.0.2", "192.0.0.8")
ABROAD = "2001:db8:1::2"
NO_WAITING = ("net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")
PROBES = Path(__file__).with_name("probes.py")


def in_own_namespace(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """`work` on a thread that is alone in a network namespace; threads and processes that it starts are there too."""
    answer: list[T] = []
    fault: list[BaseException] = []

    def run() -> None:
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "unshare")
            answer.append(asyncio.run(work()))
        except BaseException as error:  # the thread's boundary; raised again below
            fault.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if fault:
        raise fault[0]
    return answer[0]


class Net:
    def __init__(self) -> None:
        self.instance = secrets.token_hex(4)
        self.spaces: list[str] = []
        tool("ip", "link", "set", "lo", "up")
        tool("sysctl", "-qw", "net.ipv4.ip_forward=0", *NO_WAITING)  # a new namespace takes this machine's own
        self.beyond = self._space("beyond")
        self._wire("up0", "11.0.0.1/24", self.beyond, *(f"{address}/32" for address in BEYOND))
        for address in BEYOND[1:]:
            tool("ip", "route", "add", f"{address}/32", "dev", "up0")
        tool("ip", "route", "add", "default", "via", PUBLIC)
        tool(
            "ip",
            "netns",
            "exec",
            self.beyond,
            "ip",
            "route",
            "add",
            "default",
            "via",
            "11.0.0.1",
            "dev",
            "eth0",
            "onlink",
        )

    def _space(self, name: str) -> str:
        made = f"jail{os.getpid()}-{self.instance}-{name}"
        tool("ip", "netns", "add", made)
        self.spaces.append(made)
        tool("ip", "-n", made, "link", "set", "lo", "up")
        tool("ip", "netns", "exec", made, "sysctl", "-qw", "net.ipv4.ping_group_range=0 0", *NO_WAITING)
        return made

    def _wire(self, near: str, near_address: str, space: str, *addresses: str) -> None:
        tool("ip", "link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", space)
        tool("ip", "link", "set", near, "up")
        if near_address:
            tool("ip", "addr", "add", near_address, "dev", near)
        tool("ip", "-n", space, "link", "set", "eth0", "up")
        for address in addresses:
            tool("ip", "-n", space, "addr", "add", address, "dev", "eth0")

    def lane(self, number: int) -> Lane:
        """What Docker would make: a bridge, and a sandbox on it."""
        subnet = list(BLOCK.subnets(new_prefix=30))[number]
        gateway, address = (str(each) for each in subnet.hosts())
        bridge, space = bridge_name(self.instance, number), self._space(f"box{number}")
        tool("ip", "link", "add", bridge, "type", "bridge")
        tool("ip", "addr", "add", f"{gateway}/30", "dev", bridge)
        tool("ip", "link", "set", bridge, "up")
        self._wire(f"veth{number}", "", space, f"{address}/30")
        tool("ip", "link", "set", f"veth{number}", "master", bridge)
        tool("ip", "-n", space, "route", "add", "default", "via", gateway)
        return Lane(f"sbx_{number}", space, bridge, address, gateway, subnet)

    @contextmanager
    def serving(self, *places: tuple[str, str], ports: tuple[int, ...] = (80, 81)) -> Iterator[None]:
        """TCP and UDP services that answer with a word, at addresses in namespaces ("" is the host)."""
        words = json.dumps([[space, address, port] for space, address in places for port in ports])
        server = subprocess.Popen([sys.executable, str(PROBES), "serve", words], stdout=subprocess.PIPE)
        assert server.stdout
        assert server.stdout.readline() == b"serving\n"
        try:
            yield
        finally:
            server.kill()
            server.wait()
            server.stdout.close()

    def probe(self, lane: Lane, *targets: tuple[str, str, int]) -> dict[str, bool]:
        """Which of (protocol, address, port) answered, asked from inside a sandbox's namespace."""
        return probe(["ip", "netns", "exec", lane.network], *targets)

    def close(self) -> None:
        for space in self.spaces:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)


def probe(where: list[str], *targets: tuple[str, str, int]) -> dict[str, bool]:
    done = subprocess.run(
        [*where, sys.executable, str(PROBES), "probe", json.dumps(targets)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    found: dict[str, bool] = json.loads(done.stdout)
    return found
