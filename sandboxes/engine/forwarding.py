"""Whether the host forwards what sandboxes send, and answers to it. Owns single interfaces' switches where the host
does not forward at all.

Must never turn on what holds for the whole host, and must put back what it turned. What would otherwise be let through
by an interface that now forwards is dropped by the jail (`guarded`).
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from console.state import ANY_BRIDGE, bridge_prefix

from . import hostnet
from .hostnet import NetworkFault
from .rules import Lane

LEGACY_TABLES = Path("/proc/net/ip_tables_names")


class Forwarding:
    def __init__(self, run_dir: Path) -> None:
        self._record = run_dir / "forwarding"

    def turned(self) -> list[str]:
        """Interfaces that forward because of us; known across a crash."""
        return self._record.read_text().split() if self._record.is_file() else []

    def ensure(self, destinations: Iterable[str]) -> list[str]:
        """Interfaces that answers come in by. What the jail must guard from now on is returned; it is turned on by
        `turn` when the jail holds."""
        found = set(self.turned())
        if not hostnet.switch("all"):
            found |= {name for name in _ways_out(destinations) if not hostnet.switch(name)}
        return sorted(found)

    def turn(self, guarded: Iterable[str], lanes: Iterable[Lane]) -> None:
        """Recorded before it is done: a crash between the two puts back what was not turned, which does no harm."""
        guarded = list(guarded)
        if guarded != self.turned():
            self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._record.write_text("\n".join(guarded))
        for name in (*guarded, *(lane.bridge for lane in lanes)):
            with suppress(FileNotFoundError):  # an interface that has gone
                if not hostnet.switch(name):
                    hostnet.turn(name, on=True)

    def restore(self) -> None:
        """As it was. Where the host forwards by now, that is somebody's wish and stays."""
        for name in self.turned():
            with suppress(OSError, NetworkFault):
                if not hostnet.switch("all"):
                    hostnet.turn(name, on=False)
        self._record.unlink(missing_ok=True)


def _ways_out(destinations: Iterable[str]) -> set[str]:
    found = {route["dev"] for route in hostnet.asked("-4", "route", "show", "default") if "dev" in route}
    for address in destinations:
        with suppress(NetworkFault):  # no route there, so no answer from there
            found |= {route["dev"] for route in hostnet.asked("-4", "route", "get", address)}
    return {name for name in found if name != "lo" and not name.startswith(ANY_BRIDGE)}


def refusal(instance: str) -> str:
    """What else on this host drops what it forwards, in a sentence with the fix; empty when nothing does."""
    if not (_nft_drops(instance) or _legacy_drops(instance)):
        return ""
    return (
        "This host's firewall drops what it forwards (policy DROP of FORWARD, as Docker or ufw set it), and no rule of "
        f"it lets Sandgate's bridges pass. Let them pass, the jail still judges each packet: iptables -I FORWARD -i "
        f"{ANY_BRIDGE}+ -j ACCEPT; iptables -I FORWARD -o {ANY_BRIDGE}+ -j ACCEPT"
    )


def _nft_drops(instance: str) -> bool:
    listed = json.loads(hostnet.tool("nft", "-j", "list", "chains"))["nftables"]
    drops = [
        chain
        for item in listed
        if (chain := item.get("chain"))
        and (chain.get("hook"), chain.get("policy")) == ("forward", "drop")
        and chain["family"] in ("ip", "inet")
    ]
    return any(
        not _lets_us_pass(hostnet.tool("nft", "list", "table", chain["family"], chain["table"]), instance)
        for chain in drops
    )


def _legacy_drops(instance: str) -> bool:
    """Tables of the older iptables are no tables of nftables. Asking for one that is not there would make it."""
    with suppress(OSError):
        if "filter" in LEGACY_TABLES.read_text().split():
            found = hostnet.tool("iptables-legacy", "-S")
            return "-P FORWARD DROP" in found and not _lets_us_pass(found, instance)
    return False


def _lets_us_pass(rules: str, instance: str) -> bool:
    """Whether one that accepts names our bridges. One that accepts them by other words is not known for what it is."""
    ours = (bridge_prefix(instance), f"{ANY_BRIDGE}+", f"{ANY_BRIDGE}*")
    return any("accept" in line.lower() and any(name in line for name in ours) for line in rules.splitlines())
