"""Posting JSON to an address that an operator set, without becoming anybody's way into this network.

https only, resolved once and connected to that very address, which must be public unless the operator listed it; no
redirects, no proxies, five seconds. What was sent or answered is never logged: status and host are all that is told.
"""

import http.client
import ipaddress
import json
import socket
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

TIMEOUT_S = 5


class WebhookFailed(Exception):
    """It did not arrive; the text says why, and never what was sent."""


class _Pinned(http.client.HTTPSConnection):
    """Connects to an address that was looked at, while the name is what the certificate must be of."""

    def __init__(self, host: str, port: int, address: str, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=TIMEOUT_S, context=context)
        self._address, self._tls = address, context

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self.port), TIMEOUT_S)
        self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)


def post(url: str, body: Mapping[str, Any], *, context: ssl.SSLContext | None = None) -> None:
    """Raises WebhookFailed unless it was answered 2xx."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise WebhookFailed("A webhook's address begins with https:// and a host.")
    host, port = parts.hostname, parts.port or 443
    to = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    connection = _Pinned(host, port, _address(host, port), context or ssl.create_default_context())
    try:
        headers = {"Content-Type": "application/json", "User-Agent": "sandgate"}
        connection.request("POST", to, json.dumps(body).encode(), headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise WebhookFailed(f"{host} could not be reached ({error}).") from error
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise WebhookFailed(f"{host} answered {status}.")


def _address(host: str, port: int) -> str:
    """The one that is connected to. Every one it has must be allowed, so that no order of answers matters."""
    try:
        found = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError as error:
        raise WebhookFailed(f"{host} has no address ({error}).") from error
    for each in found:
        if not _is_allowed(each):
            raise WebhookFailed(
                f"{host} is {each}, which is not public. List its network in SANDGATE_WEBHOOK_NETWORKS to allow it."
            )
    return found[0]


def _is_allowed(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    listed = (ipaddress.ip_network(each, strict=False) for each in settings.WEBHOOK_NETWORKS)
    return (found.is_global and not found.is_multicast) or any(found in network for network in listed)
