"""Posting to an address that an operator set, without becoming anybody's way into this network.

https only, resolved once and connected to that very address (`webhook_addresses`); no redirects, no proxies, five
seconds for all of it. What was sent or answered is never logged: status and host are all that is told.
"""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Timer
from time import monotonic
from typing import Any

from . import webhook_addresses
from .webhook_addresses import WebhookFailed

__all__ = ["TIMEOUT_S", "WebhookFailed", "deliver", "post"]

TIMEOUT_S = 5.0
_NOTHING: Mapping[str, str] = {}


class _Pinned(http.client.HTTPSConnection):
    """Connects to an address that was looked at, while the name is what the certificate must be of."""

    def __init__(self, target: webhook_addresses.Target, address: str, left_s: float, context: ssl.SSLContext) -> None:
        super().__init__(target.host, target.port, timeout=left_s, context=context)
        self._address, self._tls = address, context

    def connect(self) -> None:
        plain = socket.socket(socket.AF_INET6 if ":" in self._address else socket.AF_INET)
        self.sock = plain
        plain.settimeout(self.timeout)
        plain.connect((self._address, self.port))  # not create_connection, which would ask for the name's address anew
        self.sock = self._tls.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock.do_handshake()  # with `sock` set already: it can be cut off in the middle


def post(url: str, body: Mapping[str, Any], *, context: ssl.SSLContext | None = None) -> int:
    return deliver(url, json.dumps(body).encode(), context=context)


def deliver(
    url: str, content: bytes, *, headers: Mapping[str, str] = _NOTHING, context: ssl.SSLContext | None = None
) -> int:
    """The status, 2xx. Raises WebhookFailed for any other, and for whatever kept it from arriving."""
    until = monotonic() + TIMEOUT_S
    target = webhook_addresses.parsed(url)
    address = webhook_addresses.resolve(target, within_s=TIMEOUT_S)
    left_s = max(0.1, until - monotonic())
    connection = _Pinned(target, address, left_s, context or ssl.create_default_context())
    with _cut_off(connection, left_s) as is_late:
        try:
            own = {"Content-Type": "application/json", "User-Agent": "sandgate"}
            connection.request("POST", target.path, content, {**own, **headers})
            status = connection.getresponse().status
            if is_late.is_set():  # what was cut off in its headers looks like an answer
                raise TimeoutError
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = f"no answer within {TIMEOUT_S:.0f} s" if is_late.is_set() else _in_our_words(error)
            raise WebhookFailed(f"{target.host} could not be reached ({why}).") from error
        finally:
            connection.close()
    if not 200 <= status < 300:
        raise WebhookFailed(f"{target.host} answered {status}.", status=status)
    return status


def _in_our_words(error: Exception) -> str:
    """What is no HTTP quotes what it got: words of a stranger, which are kept nowhere."""
    is_theirs = isinstance(error, http.client.HTTPException | ValueError)
    return f"what it said is no HTTP, {type(error).__name__}" if is_theirs else str(error)


@contextmanager
def _cut_off(connection: _Pinned, left_s: float) -> Iterator[Event]:
    """A socket's timeout begins anew with each byte; whoever sends one byte a second would be listened to for hours."""
    is_late = Event()

    def cut() -> None:
        is_late.set()
        if found := connection.sock:
            with suppress(OSError):
                socket.socket.shutdown(found, socket.SHUT_RDWR)  # not TLS's own, which another thread is reading

    timer = Timer(left_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()
