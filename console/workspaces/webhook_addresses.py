"""Where a webhook may go: an https address that is written plainly, whose host is out in the public network.

Owns what of an address is accepted and which one of a name's is connected to. Looks a name up once: whoever sends
connects to what is answered here and asks nobody again. Must never let through what only looks public.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.parse import urlsplit

from django.conf import settings

MOST_CHARS = 500
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+")  # no blanks, quotes, backslashes or letters that only some can read
# Of IPv6 only what is given out to be used by itself: what carries an IPv4 address in it may end up anywhere.
_GIVEN_OUT = ipaddress.ip_network("2000::/3")
_ODD = tuple(
    map(
        ipaddress.ip_network,
        ("2001::/23", "2002::/16", "3fff::/20", "192.88.99.0/24", "168.63.129.16/32", "192.0.0.0/24"),
    )
)


class WebhookFailed(Exception):
    """It did not arrive; the text says why, and never what was sent. `status`: what was answered, where it was."""

    def __init__(self, text: str, *, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Target:
    host: str
    port: int
    path: str  # with the query


def parsed(url: str) -> Target:
    """Raises WebhookFailed. Who checks and who connects read the address by this alone, so they cannot differ."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 443
    except ValueError as error:
        raise WebhookFailed(f"A webhook's address begins with https:// and a host ({error}).") from error
    if parts.scheme != "https" or not host:
        raise WebhookFailed("A webhook's address begins with https:// and a host.")
    if len(url) > MOST_CHARS or not _PLAIN.fullmatch(url) or "@" in parts.netloc:
        raise WebhookFailed(
            f"A webhook's address is plain ASCII, at most {MOST_CHARS} characters, and names no user before its host."
        )
    return Target(host, port, f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}")


def resolve(target: Target, *, within_s: float) -> str:
    """The one address that is connected to. Every one that the name has must be allowed, so that no order of answers
    matters. Raises WebhookFailed."""
    found = _looked_up(target, within_s)
    for each in found:
        if not is_allowed(each):
            raise WebhookFailed(
                f"{target.host} is {each}, which is not public. "
                "List its network in SANDGATE_WEBHOOK_NETWORKS to allow it."
            )
    return found[0]


def is_allowed(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    listed = (ipaddress.ip_network(each, strict=False) for each in settings.WEBHOOK_NETWORKS)
    return _is_public(found) or any(found in network for network in listed)


def _is_public(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if not found.is_global or found.is_multicast or found.is_reserved or any(found in network for network in _ODD):
        return False
    return found.version == 4 or found in _GIVEN_OUT


def _looked_up(target: Target, within_s: float) -> list[str]:
    """On a thread that nobody waits for: a name server that does not answer takes as long as it likes."""
    answer: SimpleQueue[list[str] | Exception] = SimpleQueue()
    Thread(target=lambda: answer.put(_asked(target)), name="webhook-name", daemon=True).start()
    try:
        found = answer.get(timeout=within_s)
    except Empty:
        raise WebhookFailed(f"{target.host} was not looked up within {within_s:.0f} s.") from None
    if isinstance(found, Exception):
        raise WebhookFailed(f"{target.host} has no address ({found}).") from found
    return found


def _asked(target: Target) -> list[str] | Exception:
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        return [str(each[4][0]) for each in found] or OSError("none")
    except (OSError, UnicodeError) as error:
        return error
