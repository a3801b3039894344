"""Which DNS servers sandboxes may ask. Owns the choice; the jail lets nothing else through at port 53.

Must never fall back to a server that nobody chose: whom a sandbox asks learns what it does.
"""

import os
import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

from sandboxes.errors import NoRuntime

SETTING = "SANDGATE_RESOLVERS"
FILES = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))
"""The second names the servers behind systemd's own, which listens on loopback only."""
MOST = 3
"""More than these no C library asks."""
_LINE = re.compile(r"^\s*nameserver\s+(\S+)", re.MULTILINE)


def chosen(files: Iterable[Path] = FILES) -> tuple[str, ...]:
    """SANDGATE_RESOLVERS, else those of the host that a sandbox can reach. NoRuntime, with the fix, without any."""
    if named := os.environ.get(SETTING, "").strip():
        return tuple(_checked(word) for word in re.split(r"[\s,]+", named))[:MOST]
    for file in files:
        text = file.read_text(errors="replace") if file.is_file() else ""
        if found := tuple(word for word in _LINE.findall(text) if _usable(word)):
            return found[:MOST]
    raise NoRuntime(
        f"This machine names no DNS server that a sandbox could reach (over IPv4, not on loopback). Name one or more "
        f"in {SETTING}, such as {SETTING}=192.168.1.1, and start again; `network: none` works without."
    )


def _checked(word: str) -> str:
    if not _usable(word):
        raise NoRuntime(f"{SETTING} holds {word!r}, which is no IPv4 address that a sandbox could reach. Correct it.")
    return word


def _usable(word: str) -> bool:
    try:
        address = IPv4Address(word)
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local)
