"""The text of the jail: one nftables table, made whole from what is true now. Pure; `jail.py` loads and watches it.

Each sandbox has a bridge of its own, so whatever goes from one to another is forwarded by the host and judged here.
Every packet is judged by its destination, replies by their source: nothing is let through because an earlier packet
was, so an ended exception also ends the connections that it allowed.

What changes from one sandbox to the next are elements of three sets that let through; rules stay. A rule that refuses
must never look into a `{ … }` of its own: while rules are replaced, the kernel finds such a set empty for a moment
(measured: one packet in a few thousand came through, none with a rule for each).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from console.state import ANY_BRIDGE, bridge_prefix, table_name

BLOCKED = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)  # fmt: skip
"""All that is not public, and what Azure's machines are served from although it looks so."""
CLOSED = (("tcp", 25), ("tcp", 53), ("udp", 53), ("tcp", 853), ("udp", 853))
"""Everywhere: mail, and name servers other than the chosen ones."""
FLOWS = 2000
"""Connections that one sandbox may have open: the host's table of them is everybody's."""
PRIORITY = -10
"""Before whatever filters on the host: what they accept was accepted here first, and what they drop stays dropped."""
_WORD = re.compile(r"[A-Za-z0-9_.@-]{1,15}")
_REFUSED = "goto refused"


@dataclass(frozen=True)
class Lane:
    """The way of one sandbox to the host: a bridge, and the only address that may speak on it."""

    sandbox_id: str
    network: str
    """Docker's id of it: two may have one name."""
    bridge: str
    address: str
    gateway: str
    subnet: IPv4Network


Protocol = Literal["tcp", "udp"]


@dataclass(frozen=True, order=True)
class Opening:
    """A destination that is open to one sandbox although it is private."""

    address: str
    protocol: Protocol
    port: int


@dataclass(frozen=True)
class Jailed:
    """All that the table is made of."""

    instance: str
    block: IPv4Network
    resolvers: Collection[str]
    lanes: Collection[Lane] = ()
    openings: Mapping[str, Collection[Opening]] = field(default_factory=dict)
    guarded: Collection[str] = ()
    """Interfaces of the host that forward because of us: nothing but what is ours may come in there to be forwarded."""


def chains(now: Jailed) -> dict[str, list[str]]:
    """Rules by chain."""
    bridge = f'"{bridge_prefix(now.instance)}*"'
    return {
        "forwarded": [
            f"iifname {bridge} jump from_sandbox",
            f"oifname {bridge} jump to_sandbox",
            *(f'iifname "{_word(name)}" oifname != "{ANY_BRIDGE}*" drop' for name in sorted(now.guarded)),
        ],
        "arrived": [f"iifname {bridge} jump from_sandbox", f"iifname {bridge} {_REFUSED}"],
        "leaving": [f'ip saddr {now.block} oifname != "{ANY_BRIDGE}*" masquerade'],
        "from_sandbox": _from_sandbox(now),
        "to_sandbox": _to_sandbox(),
        # In words that gVisor's network stack hands on, so that nobody waits. The host sends any number of resets, but
        # only a few words of ICMP each second.
        "refused": ["meta l4proto tcp reject with tcp reset", "reject with icmp type port-unreachable"],
    }


def _from_sandbox(now: Jailed) -> list[str]:
    return [
        "meta nfproto != ipv4 drop",
        "ct state invalid drop",
        "iifname . ip saddr != @live drop",
        "ip protocol != { tcp, udp, icmp } drop",
        f"ip daddr {now.block} {_REFUSED}",
        f"ct state new add @flows {{ ip saddr ct count over {FLOWS} }} {_REFUSED}",
        "iifname . ip daddr . meta l4proto . th dport @exceptions accept",
        "ip daddr @resolvers meta l4proto { tcp, udp } th dport 53 accept",
        *(f"ip daddr {block} {_REFUSED}" for block in BLOCKED),
        f"fib daddr type != unicast {_REFUSED}",
        *(f"{protocol} dport {port} {_REFUSED}" for protocol, port in CLOSED),
    ]


def _to_sandbox() -> list[str]:
    return [
        "meta nfproto != ipv4 drop",
        "oifname . ip daddr != @live drop",
        "ct state != { established, related } drop",
        "ct state related icmp type { destination-unreachable, time-exceeded, parameter-problem } accept",
        "oifname . ip saddr . meta l4proto . th sport @exceptions accept",
        "ip saddr @resolvers meta l4proto { tcp, udp } th sport 53 accept",
        *(f"ip saddr {block} drop" for block in BLOCKED),
    ]


def text(now: Jailed, *, anew: bool) -> str:
    """The whole table for `nft -f`, which does all of it at once or nothing. `anew` throws away whatever the table
    holds; else chains stay hooked and only their content changes, so that no packet passes between two tables."""
    table = _table(now)
    lines = [f"add table {table}"]
    if anew:
        lines += [f"delete table {table}", f"add table {table}"]
    lines += [f"add {thing.format(table=table)}" for thing in _FRAME]
    lines += [f"flush table {table}", *(f"flush set {table} {name}" for name in elements(now))]
    lines += _elements("add", table, elements(now))
    lines += [f"add rule {table} {chain} {rule}" for chain, rules in chains(now).items() for rule in rules]
    return "\n".join(lines) + "\n"


def changes(before: Jailed, now: Jailed) -> str:
    """What makes the other's sets of the one's: elements that stay are not touched, since a moment without them would
    cut off who is served by them."""
    old, new = elements(before), elements(now)
    gone, come = ({name: these[name] - those[name] for name in new} for these, those in ((old, new), (new, old)))
    return "\n".join([*_elements("delete", _table(now), gone), *_elements("add", _table(now), come)])


def _table(now: Jailed) -> str:
    return f"inet {table_name(now.instance)}"


def _elements(verb: str, table: str, found: Mapping[str, set[str]]) -> list[str]:
    return [f"{verb} element {table} {name} {{ {', '.join(sorted(each))} }}" for name, each in found.items() if each]


_FRAME = (
    "set {table} live {{ type ifname . ipv4_addr; }}",
    "set {table} exceptions {{ type ifname . ipv4_addr . inet_proto . inet_service; }}",
    "set {table} resolvers {{ type ipv4_addr; }}",
    "set {table} flows {{ type ipv4_addr; size 65535; flags dynamic; }}",
    f"chain {{table}} forwarded {{{{ type filter hook forward priority {PRIORITY}; policy accept; }}}}",
    f"chain {{table}} arrived {{{{ type filter hook input priority {PRIORITY}; policy accept; }}}}",
    "chain {table} leaving {{ type nat hook postrouting priority 100; policy accept; }}",
    "chain {table} from_sandbox",
    "chain {table} to_sandbox",
    "chain {table} refused",
)


def elements(now: Jailed) -> dict[str, set[str]]:
    """What is in the sets. An exception is bound to the bridge, and `live` binds the bridge to one address."""
    return {
        "live": {f"{lane.bridge} . {lane.address}" for lane in now.lanes},
        "exceptions": {
            f"{lane.bridge} . {IPv4Address(opening.address)} . {opening.protocol} . {opening.port:d}"
            for lane in now.lanes
            for opening in now.openings.get(lane.sandbox_id, ())
        },
        "resolvers": set(now.resolvers),
    }


def _word(name: str) -> str:
    if not _WORD.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an interface")
    return name
