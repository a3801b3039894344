"""The jail's table in a real kernel, between namespaces. What sandboxes themselves see: test_jail.py."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from console.state import table_name
from sandboxes.engine import forwarding, hostnet, rules
from sandboxes.engine.hostnet import NetworkFault, tool
from sandboxes.engine.jail import Jail
from sandboxes.engine.rules import Jailed, Opening

from .netspaces import ABROAD, BEYOND, BLOCK, METADATA, PRIVATE, PUBLIC, RESOLVER, Net, in_own_namespace

ALL = ("tcp", "udp", "icmp")


class Scene:
    """A host with a jail, forwarding as Docker sets it, and two sandboxes."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.one, self.two = net.lane(0), net.lane(1)
        self.jail = Jail(Jailed(net.instance, BLOCK, (RESOLVER,), (self.one, self.two)))

    async def probe(self, *targets: tuple[str, str, int], lane: rules.Lane | None = None) -> dict[str, bool]:
        return await asyncio.to_thread(self.net.probe, lane or self.one, *targets)

    async def opened(self, *targets: tuple[str, str, int], lane: rules.Lane | None = None) -> set[str]:
        return {name for name, answered in (await self.probe(*targets, lane=lane)).items() if answered}


def on_a_host(test: Callable[[Scene], Coroutine[Any, Any, None]], *, forwards: bool = True) -> None:
    async def work() -> None:
        net = Net()
        try:
            if forwards:
                tool("sysctl", "-qw", "net.ipv4.ip_forward=1")
            scene = Scene(net)
            inner = [("", "11.0.0.1"), ("", scene.one.gateway), ("", scene.two.gateway)]
            boxes = [(lane.network, lane.address) for lane in (scene.one, scene.two)]
            beyond = [(net.beyond, address) for address in BEYOND]
            with net.serving(*inner, *boxes, *beyond, ports=(80, 81, 25, 53)):
                await test(scene)
        finally:
            net.close()

    in_own_namespace(work)


def every(address: str, port: int = 80) -> list[tuple[str, str, int]]:
    return [(protocol, address, port) for protocol in ALL]


def names(*targets: tuple[str, str, int]) -> set[str]:
    return {" ".join(str(word) for word in target) for target in targets}


def test_the_internet_and_nothing_private_is_reached_and_without_the_table_everything_is() -> None:
    async def test(scene: Scene) -> None:
        inner = ("11.0.0.1", scene.one.gateway, scene.two.gateway, scene.two.address)
        targets = [target for address in (*BEYOND, *inner) for target in every(address)]
        assert await scene.opened(*targets) == names(*targets)  # or the rest would prove nothing
        await scene.jail.set()
        assert await scene.opened(*targets) == names(*every(PUBLIC))
        assert await scene.opened(*every(scene.one.address), lane=scene.two) == set()

    on_a_host(test)


def test_names_are_asked_of_the_chosen_server_alone_and_mail_goes_nowhere() -> None:
    async def test(scene: Scene) -> None:
        await scene.jail.set()
        tried = [
            (protocol, address, port)
            for protocol in ("tcp", "udp")
            for address in (RESOLVER, PUBLIC, PRIVATE)
            for port in (53, 80, 25)
        ]
        reached = {
            ("tcp", RESOLVER, 53),
            ("udp", RESOLVER, 53),
            ("tcp", PUBLIC, 80),
            ("udp", PUBLIC, 80),
            ("udp", PUBLIC, 25),
        }
        assert await scene.opened(*tried) == names(*reached)

    on_a_host(test)


def test_an_exception_is_one_address_protocol_and_port_of_one_sandbox_and_ends_with_its_connections() -> None:
    async def test(scene: Scene) -> None:
        opening = {"sbx_0": [Opening(PRIVATE, "tcp", 80), Opening(METADATA, "udp", 81)]}
        await scene.jail.set(openings=opening)
        tried = [*every(PRIVATE), *every(PRIVATE, 81), *every(METADATA), *every(METADATA, 81), *every("192.168.77.2")]
        assert await scene.opened(*tried) == names(("tcp", PRIVATE, 80), ("udp", METADATA, 81))
        assert await scene.opened(*tried, lane=scene.two) == set()
        talk = await asyncio.create_subprocess_exec(
            "ip", "netns", "exec", scene.one.network, "python3", "-c", TALK, PRIVATE, stdin=-1, stdout=-1
        )
        assert talk.stdin
        assert talk.stdout
        assert await talk.stdout.readline() == b"here\n"
        await scene.jail.set(openings={})
        talk.stdin.write(b"now\n")
        assert await talk.stdout.readline() == b"cut off\n"
        await talk.wait()
        assert await scene.opened(*tried) == set()

    on_a_host(test)


def test_even_an_exception_leads_to_no_other_sandbox() -> None:
    async def test(scene: Scene) -> None:
        await scene.jail.set(
            openings={"sbx_0": [Opening(scene.two.address, "tcp", 80), Opening(scene.one.gateway, "tcp", 80)]}
        )
        assert await scene.opened(*every(scene.two.address), *every(scene.one.gateway)) == set()

    on_a_host(test)


def test_a_service_of_the_host_itself_can_be_opened() -> None:
    async def test(scene: Scene) -> None:
        await scene.jail.set(openings={"sbx_0": [Opening("11.0.0.1", "tcp", 80)]})
        assert await scene.opened(*every("11.0.0.1"), *every("11.0.0.1", 81)) == names(("tcp", "11.0.0.1", 80))
        assert await scene.opened(*every("11.0.0.1"), lane=scene.two) == set()

    on_a_host(test)


def test_another_source_address_than_its_own_speaks_to_nobody() -> None:
    async def test(scene: Scene) -> None:
        await scene.jail.set(openings={"sbx_1": [Opening(PRIVATE, "tcp", 80)]})
        for address in (scene.two.address, PUBLIC, "10.170.0.9"):
            tool("ip", "-n", scene.one.network, "addr", "add", f"{address}/32", "dev", "eth0")
            tool("ip", "-n", scene.one.network, "route", "replace", "default", "via", scene.one.gateway, "src", address)
            assert await scene.opened(*every("198.18.0.2"), *every(PRIVATE), ("udp", "11.0.0.3", 80)) == set()
            tool("ip", "-n", scene.one.network, "addr", "del", f"{address}/32", "dev", "eth0")

    on_a_host(test)


def test_a_bridge_that_the_jail_does_not_name_is_closed_to_everything() -> None:
    async def test(scene: Scene) -> None:
        await scene.jail.set(lanes=[scene.two])
        assert await scene.opened(*every(PUBLIC), ("udp", RESOLVER, 53), *every(scene.one.gateway)) == set()
        assert await scene.opened(*every(PUBLIC), lane=scene.two) == names(*every(PUBLIC))

    on_a_host(test)


def test_ipv6_is_shut_both_ways() -> None:
    async def test(scene: Scene) -> None:
        net = scene.net
        tool("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        net_pairs = (
            (scene.one.bridge, "2001:db8:2::1", scene.one.network, "2001:db8:2::2"),
            ("up0", "2001:db8:1::1", net.beyond, ABROAD),
        )
        for near, near_address, space, address in net_pairs:
            tool("ip", "addr", "add", f"{near_address}/64", "dev", near, "nodad")
            tool("ip", "-n", space, "addr", "add", f"{address}/64", "dev", "eth0", "nodad")
            tool("ip", "-n", space, "-6", "route", "add", "default", "via", near_address)
        with net.serving((net.beyond, ABROAD), ("", "2001:db8:2::1")):
            tried = [(protocol, address, 80) for protocol in ("tcp", "udp") for address in (ABROAD, "2001:db8:2::1")]
            assert await scene.opened(*tried) == names(*tried)
            await scene.jail.set()
            assert await scene.opened(*tried) == set()

    on_a_host(test)


def test_not_one_packet_passes_while_the_table_is_set_again_and_again() -> None:
    async def test(scene: Scene) -> None:
        await scene.jail.set()
        heard = await asyncio.create_subprocess_exec(
            "ip", "netns", "exec", scene.net.beyond, "python3", "-c", HEAR, METADATA, stdout=-1
        )
        assert heard.stdout
        assert await heard.stdout.readline() == b"listening\n"
        flood = await asyncio.create_subprocess_exec(
            "ip", "netns", "exec", scene.one.network, "python3", "-c", FLOOD, METADATA, PUBLIC, stdout=-1
        )
        sets = 0
        while flood.returncode is None:
            await scene.jail.set(openings={"sbx_1": [Opening(PRIVATE, "tcp", sets % 60000 + 1)]})
            sets += 1
            await asyncio.sleep(0)
        sent = int((await flood.communicate())[0])
        heard.terminate()
        assert (await heard.communicate())[0].split() == [b"0"]
        assert sets > 5
        assert sent > 1000

    on_a_host(test)


TALK = """
import socket, sys
s = socket.create_connection((sys.argv[1], 80), timeout=2)
s.recv(5); s.sendall(b"?"); print("here" if s.recv(5) == b"?" else "lost", flush=True)
sys.stdin.readline()
try: s.sendall(b"still"); print(s.recv(5) or "cut off", flush=True)
except OSError: print("cut off", flush=True)
"""
HEAR = """
import signal, socket, sys
got = 0
def told(*_): print(got, flush=True); sys.exit()
signal.signal(signal.SIGTERM, told)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((sys.argv[1], 9999))
print("listening", flush=True)
while s.recv(100): got += 1
"""
FLOOD = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sent, end = 0, time.monotonic() + 2
while time.monotonic() < end:
    try: s.sendto(b"x", (sys.argv[1], 9999))
    except OSError: pass
    sent += 1
print(sent)
"""


CHANGES = (
    "flush ruleset",
    "delete table {}",
    "flush chain {} from_sandbox",
    "insert rule {} forwarded accept",
    "add element {} resolvers {{ 10.9.0.2 }}",
    "flush set {} live",
    "add chain {} more",
    "add chain {} forwarded {{ policy drop; }}",
)


def test_whatever_somebody_changes_is_put_back_and_counted() -> None:
    async def test(scene: Scene) -> None:
        await scene.jail.set()
        await scene.jail.look()
        assert scene.jail.repairs == 0
        meant = tool("nft", "-s", "list", "ruleset")
        for count, change in enumerate(CHANGES, 1):
            tool("nft", change.format(f"inet {table_name(scene.net.instance)}"))
            await scene.jail.look()
            assert (scene.jail.repairs, tool("nft", "-s", "list", "ruleset")) == (count, meant), change
        await scene.jail.look()
        assert scene.jail.repairs == len(CHANGES)

    on_a_host(test)


def test_while_it_cannot_be_set_the_bridges_are_down_and_then_up_again() -> None:
    async def test(scene: Scene) -> None:
        await scene.jail.set()
        scene.jail._nft = "/nonexistent/nft"
        tool("nft", "flush", "ruleset")
        with pytest.raises(NetworkFault, match="nonexistent"):
            await scene.jail.look()
        assert "nonexistent" in scene.jail.fault
        assert await scene.opened(*every(PUBLIC), *every(PRIVATE), *every(scene.one.gateway)) == set()
        scene.jail._nft = "nft"
        await scene.jail.look()
        assert scene.jail.fault == ""
        assert await scene.opened(*every(PUBLIC), *every(PRIVATE)) == names(*every(PUBLIC))

    on_a_host(test)


def test_one_sandbox_cannot_fill_the_hosts_table_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "FLOWS", 20)

    async def test(scene: Scene) -> None:
        await scene.jail.set()
        code = f"""
import socket
for n in range(100):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try: s.sendto(b"x", ("{PUBLIC}", 20000 + n))
    except OSError: pass
"""
        tool("ip", "netns", "exec", scene.one.network, "python3", "-c", code)
        flows = tool("cat", "/proc/net/nf_conntrack") if os.path.exists("/proc/net/nf_conntrack") else ""
        assert flows.count(f"src={scene.one.address}") <= 21
        assert await scene.opened(("udp", PUBLIC, 80)) == set()
        assert await scene.opened(*every(PUBLIC), lane=scene.two) == names(*every(PUBLIC))

    on_a_host(test)


def test_a_host_that_does_not_forward_does_so_for_sandboxes_alone_and_is_put_back(tmp_path: Any) -> None:
    async def test(scene: Scene) -> None:
        net, switches = scene.net, forwarding.Forwarding(tmp_path)
        net.lane(2)
        stranger, space = "172.31.9.2", net._space("lan")
        net._wire("lan0", "172.31.9.1/24", space, f"{stranger}/24")
        tool("ip", "-n", space, "route", "add", "default", "via", "172.31.9.1")
        tool("ip", "-n", net.beyond, "route", "add", f"{stranger}/32", "via", "11.0.0.1", "dev", "eth0", "onlink")
        assert not hostnet.switch("all")
        guarded = switches.ensure([PRIVATE])
        assert guarded == ["up0"]
        await scene.jail.set(guarded=guarded)
        switches.turn(guarded, [scene.one, scene.two])
        assert [hostnet.switch(name) for name in ("all", "lan0", "up0")] == [False, False, True]
        assert await scene.opened(*every(PUBLIC), *every(PRIVATE)) == names(*every(PUBLIC))
        with net.serving((space, stranger)):
            from_beyond = await asyncio.to_thread(
                net.probe, rules.Lane("", net.beyond, "", "", "", BLOCK), *every(stranger)
            )
            assert not any(from_beyond.values())
        assert forwarding.Forwarding(tmp_path).turned() == ["up0"]
        forwarding.Forwarding(tmp_path).restore()
        assert not hostnet.switch("up0")
        assert await scene.opened(*every(PUBLIC)) == set()

    on_a_host(test, forwards=False)


@pytest.mark.parametrize("allowed", [False, True])
def test_a_firewall_that_drops_what_is_forwarded_is_named_with_the_fix(allowed: bool) -> None:
    async def test(scene: Scene) -> None:
        await scene.jail.set()
        assert forwarding.refusal(scene.net.instance) == ""
        tool(
            "nft",
            "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }",
        )
        if allowed:
            tool(
                "nft",
                'add rule ip filter FORWARD iifname "sgn*" accept; add rule ip filter FORWARD oifname "sgn*" accept',
            )
        assert await scene.opened(*every(PUBLIC)) == (names(*every(PUBLIC)) if allowed else set())
        refusal = forwarding.refusal(scene.net.instance)
        assert (refusal == "") is allowed
        assert allowed or "iptables -I FORWARD -i sgn+ -j ACCEPT" in refusal

    on_a_host(test)


def test_two_instances_on_one_host_are_in_peace() -> None:
    async def test(scene: Scene) -> None:
        other = Jail(Jailed("ffffffff-2", BLOCK, (RESOLVER,)))
        await scene.jail.set()
        await other.set(guarded=["up0"])
        await scene.jail.look()
        await other.look()
        assert (scene.jail.repairs, other.repairs) == (0, 0)
        assert await scene.opened(*every(PUBLIC), *every(PRIVATE)) == names(*every(PUBLIC))
        await other.remove()
        await scene.jail.look()
        assert scene.jail.repairs == 0

    on_a_host(test)
