"""A Docker network for each sandbox that has one: a bridge of its own with room for one address besides the host's.

Owns these networks and which addresses are given out. Must never give out an address that the jail still names, nor one
that the host or another network uses. With a bridge for each, no two sandboxes share anything that frames cross, from
the first one on; there is no moment before some port is isolated.
"""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from ipaddress import IPv4Network
from typing import Any

import docker
from docker.types import IPAMConfig, IPAMPool

from . import hostnet
from .daemon import Daemon, NotFound, Refused
from .hostnet import NetworkFault
from .names import LABEL_INSTANCE, LABEL_SANDBOX, bridge_name, network_name
from .rules import Lane
from .shapes import EngineConfig

RANGES = ("10.160.0.0/11", "172.16.0.0/12", "192.168.0.0/16")
BLOCK, LANE = 20, 30
TRIES = 20
DEFAULTS = ("default", "0.0.0.0/1", "128.0.0.0/1")
_BRIDGE, _MASQUERADE = "com.docker.network.bridge.name", "com.docker.network.bridge.enable_ip_masquerade"


class Lanes:
    def __init__(self, daemon: Daemon, config: EngineConfig) -> None:
        self._daemon, self._instance = daemon, config.instance
        self.block: IPv4Network
        self.known: dict[str, Lane] = {}
        self._taken: set[int] = set()
        self._next = secrets.randbelow(1 << (LANE - BLOCK))

    async def find(self, taken: Iterable[IPv4Network]) -> None:
        """Those of a process before this one, and the block that all of them are from."""
        self.known = {lane.sandbox_id: lane for lane in await self._daemon.call(self._networks)}
        first = next(iter(self.known.values()), None)
        self.block = (
            IPv4Network((first.address, BLOCK), strict=False) if first else free_block(self._instance, list(taken))
        )
        self._taken = {self._number(lane.subnet) for lane in self.known.values()}

    def _networks(self, client: docker.DockerClient) -> list[Lane]:
        labels = [f"{LABEL_INSTANCE}={self._instance}", LABEL_SANDBOX]
        return [_lane(found) for found in client.api.networks(filters={"label": labels})]

    def _number(self, subnet: IPv4Network) -> int:
        return (int(subnet.network_address) - int(self.block.network_address)) >> (32 - LANE)

    async def make(self, sandbox_id: str, taken: list[IPv4Network]) -> Lane:
        """Raises NetworkFault when Docker will not have it."""
        why: object = "every address is in use"
        for number in self._free():
            lane = self._lane(sandbox_id, number)
            if any(lane.subnet.overlaps(other) for other in taken if other.prefixlen > BLOCK):
                continue
            self._taken.add(number)  # and so it stays where Docker refuses it: that will not change soon
            try:
                network = await self._daemon.call(partial(self._create, lane=lane))
            except Refused as error:  # somebody else's network lies there, or the bridge is there already
                why = error.explanation or error
                continue
            self.known[sandbox_id] = replace(lane, network=network)
            return self.known[sandbox_id]
        raise NetworkFault(f"Docker made no network for sandbox {sandbox_id}: {why}")

    def _free(self) -> Iterator[int]:
        """One after the other, so that an address comes again as late as can be."""
        size = 1 << (LANE - BLOCK)
        for _ in range(min(TRIES, size)):
            for _ in range(size):
                self._next = (self._next + 1) % size
                if self._next not in self._taken:
                    break
            else:
                return
            yield self._next

    def _lane(self, sandbox_id: str, number: int) -> Lane:
        subnet = IPv4Network((int(self.block.network_address) + (number << (32 - LANE)), LANE))
        gateway, address = subnet.hosts()
        return Lane(sandbox_id, "", bridge_name(self._instance, number), str(address), str(gateway), subnet)

    def _create(self, client: docker.DockerClient, *, lane: Lane) -> str:
        made = client.networks.create(
            network_name(self._instance, lane.sandbox_id),
            driver="bridge",
            # The jail masquerades, on every daemon the same way.
            options={_BRIDGE: lane.bridge, _MASQUERADE: "false"},
            ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=str(lane.subnet), gateway=lane.gateway)]),
            labels={LABEL_INSTANCE: self._instance, LABEL_SANDBOX: lane.sandbox_id},
            enable_ipv6=False,
        )
        return str(made.id)

    async def remove(self, lane: Lane) -> None:
        """The network, which is no longer one that the jail lets through; its address stays taken until `free`."""

        def drop(client: docker.DockerClient) -> None:
            with suppress(NotFound):
                client.api.remove_network(lane.network)

        await self._daemon.call(drop)
        self.known.pop(lane.sandbox_id, None)

    def free(self, lane: Lane) -> None:
        """Only when the jail does not name it any more."""
        self._taken.discard(self._number(lane.subnet))


def _lane(found: dict[str, Any]) -> Lane:
    subnet = IPv4Network(found["IPAM"]["Config"][0]["Subnet"])
    gateway, address = subnet.hosts()
    bridge = found["Options"][_BRIDGE]
    return Lane(found["Labels"][LABEL_SANDBOX], found["Id"], bridge, str(address), str(gateway), subnet)


def free_block(instance: str, taken: list[IPv4Network]) -> IPv4Network:
    """Where nothing of the host is; else where only a route wider than the block goes, as with a VPN that takes all
    private addresses. Each instance begins to look at another place."""
    blocks = [block for wide in RANGES for block in _from(instance, IPv4Network(wide))]
    for near in (taken, [other for other in taken if other.prefixlen >= BLOCK]):
        for block in blocks:
            if not any(block.overlaps(other) for other in near):
                return block
    raise NetworkFault("every private range of addresses is in use on this machine")


def _from(instance: str, wide: IPv4Network) -> list[IPv4Network]:
    blocks = list(wide.subnets(new_prefix=BLOCK))
    start = int(sha256(instance.encode()).hexdigest()[:8], 16) % len(blocks)
    return blocks[start:] + blocks[:start]


def in_use() -> list[IPv4Network]:
    """What the host has a route to, its default routes aside; its own addresses are routes as well."""
    routes = hostnet.asked("-4", "route", "show", "table", "all")
    return [IPv4Network(route["dst"]) for route in routes if route["dst"] not in DEFAULTS]
