"""What the network jail needs on this machine, and what of it is left when a console was killed: its table, the
bridges of its sandboxes, the interfaces that forwarded for them. The console itself sets and removes all of it.

Must only be called to clear when nothing of this instance runs any more: what runs is jailed by what would go.
"""

import json
import os
import subprocess
from pathlib import Path

from console import state
from lib import debian
from lib.place import Place
from lib.say import say

SWITCHES = Path("/proc/sys/net/ipv4/conf")


def need() -> None:
    """Without nft or root the console still starts, and gives sandboxes no network: `network: none`."""
    missing = [package for program, package in (("nft", "nftables"), ("ip", "iproute2")) if not debian.find(program)]
    if missing and os.geteuid() == 0 and debian.find("apt-get"):
        debian.install(missing, why="what keeps sandboxes from private addresses")
    elif missing:
        say(f"{', '.join(missing)} missing: sandboxes will have no network")


def clear(place: Place) -> None:
    table, prefix = state.table_name(place.instance), state.bridge_prefix(place.instance)
    if os.geteuid() or not debian.find("ip") or not debian.find("nft"):
        return
    restore(place.run / "forwarding")
    for bridge in bridges(prefix):
        _quietly("ip", "link", "delete", bridge)
    _quietly("nft", "delete", "table", "inet", table)


def bridges(prefix: str) -> list[str]:
    listed = _quietly("ip", "-j", "link", "show", "type", "bridge")
    return [link["ifname"] for link in json.loads(listed or "[]") if link.get("ifname", "").startswith(prefix)]


def restore(record: Path) -> None:
    """Interfaces that the console let forward, on a host that does not."""
    if record.is_file() and (SWITCHES / "all/forwarding").read_text().strip() == "0":
        for name in record.read_text().split():
            switch = SWITCHES / name / "forwarding"
            if switch.exists():
                switch.write_text("0")
    record.unlink(missing_ok=True)


def _quietly(program: str, *words: str) -> str:
    command = [debian.find(program) or program, *words]
    return subprocess.run(command, capture_output=True, text=True, process_group=0).stdout
