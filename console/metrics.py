"""`/metrics`: counts and times of this console in Prometheus' text form, for whoever watches it.

Raw ASGI, like the health doors. From the machine itself without a key, as long as no proxy stands before the server;
else with SANDGATE_METRICS_TOKEN as bearer. Must never name a workspace, an agent or a command, nor ask the database
more than once a second, however often it is asked itself.
"""

import asyncio
import hmac
import ipaddress
from time import monotonic

from django.conf import settings
from django.db.models import Count
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from approvals import counters as decisions
from approvals.models import Action
from sandboxes import counters
from sandboxes.models import Command, PooledSandbox, Sandbox

from .doorman import Receive, Scope, Send, answer, header
from .health import ANSWERS_WITHIN_S, LOOK_EVERY_S, NO_STORE, only_reads
from .workspaces import db

REFUSED = (
    "Metrics are for this machine itself, asked by its own name and without a proxy between. "
    "From elsewhere send the server's SANDGATE_METRICS_TOKEN as `Authorization: Bearer …`."
)


class Metrics:
    def __init__(self) -> None:
        self._turn, self._looked_at = asyncio.Lock(), float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not await only_reads(scope, send):
            return
        if not (_has_token(scope) or _is_local(scope)):
            return await answer(send, 403, code="forbidden", detail=REFUSED, headers=[NO_STORE])
        async with self._turn:
            if monotonic() - self._looked_at > LOOK_EVERY_S:
                await look()
                self._looked_at = monotonic()
        body = generate_latest(counters.REGISTRY) + generate_latest(decisions.REGISTRY)
        headers = [(b"Content-Type", CONTENT_TYPE_LATEST.encode()), (b"Content-Length", b"%d" % len(body)), NO_STORE]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


async def look() -> None:
    """What is counted in the table. Without it the rest is told all the same; `/readyz` tells of the database."""
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            counters.measure(await db.read(_counted))
    except Exception:  # whatever it is: see above
        counters.unmeasured()


def _counted() -> counters.Measured:
    by_status = Sandbox.objects.live().order_by().values_list("status").annotate(Count("pk"))
    return {
        "sandboxes": dict(by_status),
        "pool_depth": PooledSandbox.objects.exclude(ready_at=None).count(),
        "pending": Action.objects.pending().count(),
        "commands_running": Command.objects.filter(status="running").count(),
    }


def _has_token(scope: Scope) -> bool:
    scheme, _, given = header(scope, b"authorization").partition(b" ")
    wanted = settings.METRICS_TOKEN.encode()
    return bool(wanted) and scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), wanted)


def _is_local(scope: Scope) -> bool:
    """The peer is this machine, and nobody else speaks through it: neither a proxy, to whom every client is local, nor
    a page whose own name was made to lead here."""
    forwarded = any(name in (b"forwarded", b"via") or name.startswith(b"x-forwarded-") for name, _ in scope["headers"])
    if settings.HTTPS or forwarded or header(scope, b"origin"):
        return False
    host, _, port = header(scope, b"host").decode("latin-1").lower().rpartition(":")
    name = host if port.isdigit() else f"{host}:{port}".lstrip(":")
    peer = (scope.get("client") or ("", 0))[0]
    return name in settings.OWN_NAMES and _is_loopback(peer)


def _is_loopback(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
