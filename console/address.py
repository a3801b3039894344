"""Where the console listens and under which addresses people reach it, as the environment says; and the socket there.

Standard library only: `bin/up` asks before anything is started. What cannot be used is told in one sentence that names
the variable.
"""

import errno
import os
import re
import socket
from urllib.parse import urlsplit

from console.state import Unusable

DEFAULT_PORT = 8000


def host() -> str:
    return os.environ.get("SANDGATE_HOST", "127.0.0.1")


def port() -> int:
    named = os.environ.get("SANDGATE_PORT") or str(DEFAULT_PORT)
    if not re.fullmatch(r"\d{1,5}", named, re.ASCII) or int(named) > 65535:
        raise Unusable(f"SANDGATE_PORT is {named!r}, and that is no port: set it to a number from 1 to 65535.")
    return int(named)


def origins() -> list[str]:
    """The addresses people type, where they are not this machine's own."""
    named = (each.strip().rstrip("/") for each in os.environ.get("SANDGATE_ORIGINS", "").split(","))
    return [_origin(each) for each in named if each]


def _origin(named: str) -> str:
    try:
        parts = urlsplit(named)
        good = parts.scheme in ("http", "https") and parts.hostname and named == f"{parts.scheme}://{parts.netloc}"
        _ = parts.port  # raises when it is none
    except ValueError:
        good = False
    if not good:
        raise Unusable(
            f"SANDGATE_ORIGINS has {named!r}, and that is no address: "
            "write it like https://sandgate.example or http://192.168.1.5:8000."
        )
    return named


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to the address, not listening yet. Raises OSError when that is impossible."""
    if not 0 <= port <= 65535:
        raise OSError(f"there is no port {port}")  # the system would take it modulo 65536
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )[0]
    except UnicodeError as error:
        raise OSError("that is no host name") from error
    bound = socket.socket(family, kind, number)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


def refusal(host: str, port: int, error: OSError) -> str:
    """Why nothing can be served there, and what to do."""
    what = f"Port {port} on {host}"
    if error.errno == errno.EADDRINUSE:
        return f"{what} is taken by another program; stop that, or choose another by SANDGATE_PORT."
    if error.errno == errno.EACCES:
        return f"{what} needs more rights than this user has; choose one above 1023 by SANDGATE_PORT."
    return f"{what} cannot be served ({error}); choose others by SANDGATE_HOST and SANDGATE_PORT."
