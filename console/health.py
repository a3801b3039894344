"""`/healthz` and `/readyz`: what whoever watches this server may know without a key.

Raw ASGI: no session, no Host check, no thread. Must never say more than which part is not ready, and never ask the
database or the sandbox host more than once a second, however often it is asked itself.
"""

import asyncio
from time import monotonic

from sandboxes import host

from .doorman import Receive, Scope, Send, answer
from .workspaces import db
from .workspaces.models import Workspace

LOOK_EVERY_S = 1.0
ANSWERS_WITHIN_S = 2.0
NO_STORE = (b"Cache-Control", b"no-store")


async def alive(scope: Scope, receive: Receive, send: Send) -> None:
    """200 as long as the process serves at all."""
    if await only_reads(scope, send):
        await answer(send, 200, code="alive", detail="The process answers.", headers=[NO_STORE])


class Ready:
    """200 when calls can be served and sandboxes made; else 503 with the part that is not ready."""

    def __init__(self) -> None:
        self._turn, self._looked_at = asyncio.Lock(), 0.0
        self._parts: dict[str, bool] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not await only_reads(scope, send):
            return
        async with self._turn:
            if not self._parts or monotonic() - self._looked_at > LOOK_EVERY_S:
                self._parts, self._looked_at = await look(), monotonic()
        parts = {name: "ready" if well else "not ready" for name, well in self._parts.items()}
        if missing := [name for name, well in self._parts.items() if not well]:
            detail = f"Not ready: {', '.join(missing)}. The log tells why, and `manage.py doctor` what to do."
            headers = [NO_STORE, (b"Retry-After", b"5")]
            return await answer(send, 503, code="not_ready", detail=detail, headers=headers, parts=parts)
        await answer(send, 200, code="ready", detail="Everything is ready.", headers=[NO_STORE], parts=parts)


async def look() -> dict[str, bool]:
    database, hub = await asyncio.gather(_database(), _hub())
    return {"database": database, **hub}


async def _database() -> bool:
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            await db.read(Workspace.objects.exists)
    except Exception:  # whatever it is: the database does not serve
        return False
    return True


async def _hub() -> dict[str, bool]:
    """`loops`: those of the sandbox host turn. `sandbox_host`: its Docker answers, with gVisor in it."""
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            return await host.hub().state()
    except Exception:  # none, dead, or too slow to answer
        return {"loops": False, "sandbox_host": False}


async def only_reads(scope: Scope, send: Send) -> bool:
    if scope["method"] in ("GET", "HEAD"):
        return True
    detail = f"{scope['method']} is not possible here; there is GET, HEAD."
    await answer(send, 405, code="method_not_allowed", detail=detail, headers=[(b"Allow", b"GET, HEAD")])
    return False
