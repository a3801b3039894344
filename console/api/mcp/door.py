"""The ASGI app at /mcp: Host, Origin and session owner are checked here, the key before it by the doorman.

Django's middleware is not in front of this door, so nothing of it may be relied on. Owns the SDK's session manager, one
for each event loop, started at the first call; importing this module imports no SDK.
"""

import asyncio
import logging
from contextlib import nullcontext
from io import BytesIO
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest

from approvals.errors import TooMany
from console.api.waits import waiting
from console.doorman import App, Message, Receive, Scope, Send, answer, header
from console.signed_in import is_ours
from console.workspaces import bus

from . import bodies
from .sessions import Sessions

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

BODY_BYTES = 8 << 20
IDLE_S = 30 * 60
ANSWER_S = 1.0
_log = logging.getLogger(__name__)


class Placed:
    """421 for another Host, 403 for a page of elsewhere: a browser that was led here by a name of somebody else's must
    not reach it. Programs send no Origin."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            host = ASGIRequest({**scope, "method": "GET"}, BytesIO()).get_host()
        except DisallowedHost as error:
            detail = f"{str(error).split(' You may')[0]} Names are allowed by SANDGATE_ORIGINS."
            return await answer(send, 421, code="bad_host", detail=detail)
        origin = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"), None)
        if origin is not None and not is_ours(origin, f"{scope.get('scheme', 'http')}://{host}"):
            detail = f"Pages of {origin!r} may not call this. Origins are allowed by SANDGATE_ORIGINS."
            return await answer(send, 403, code="bad_origin", detail=detail)
        await self.app(scope, receive, send)


async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
    """Of an address that looks like the door's: a program reads this, and whoever wrote the address into it."""
    detail = (
        f"There is no {scope['path'][:200]!r}. MCP is at /mcp, with a conversation's name at /mcp/c/{{name}}; a name "
        "that holds a slash goes into the header X-Conversation."
    )
    await answer(send, 404, code="not_found", detail=detail)


class Mcp:
    """Behind the doorman, who has put the caller into the scope."""

    def __init__(self) -> None:
        self._managers: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Manager]] = WeakKeyDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = scope["caller"]
        loop = asyncio.get_running_loop()
        if loop not in self._managers:
            self._managers[loop] = loop.create_task(_started())
        manager = await asyncio.shield(self._managers[loop])
        try:
            with waiting(caller.key_id) if scope["method"] == "GET" else nullcontext():  # its stream stays open
                await manager.handle({**scope, "user": manager.user(caller.key_id)}, receive, send)
        except TooMany as error:
            await answer(send, 429, code=error.code, detail=error.detail, headers=[(b"Retry-After", b"5")])


class Manager:
    """The SDK's, while it runs. It does until the server stops: then what still waits in it ends with what it has."""

    def __init__(self, sdk: "StreamableHTTPSessionManager") -> None:
        self._sdk = sdk
        self._sessions = Sessions(self._handle, end=self._end)
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    async def started(self) -> "Manager":
        await self._ready
        return self

    def user(self, key_id: str) -> Any:
        """As whom the SDK knows the caller: a session works only with the key that opened it."""
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
        from mcp.server.auth.provider import AccessToken

        return AuthenticatedUser(AccessToken(token="", client_id=key_id, scopes=[]))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises TooMany."""
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

        scope["session_is_open"] = self._sessions.is_open
        version = header(scope, b"mcp-protocol-version").decode("latin-1")
        if version and version not in HANDSHAKE_PROTOCOL_VERSIONS:  # a revision without sessions
            if body := await bodies.whole(scope, receive):
                await self._handle(scope, body.again, send)
        else:
            await self._sessions(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._sdk.handle_request(scope, receive, send)  # type: ignore[arg-type]  # a scope is a dict here

    async def _end(self, key_id: str, session_id: str) -> None:
        """As its client would."""
        headers = [(b"mcp-session-id", session_id.encode("latin-1"))]
        ending = {"type": "http", "method": "DELETE", "path": "/mcp", "query_string": b"", "headers": headers}
        await self._handle({**ending, "user": self.user(key_id)}, _nothing, _nowhere)

    async def _run(self) -> None:
        async with self._sdk.run():
            self._ready.set_result(None)
            with bus.listening("mcp") as bell:
                while not bus.is_closing():
                    await bell.wait_s(3600)
            await asyncio.sleep(ANSWER_S)  # what waits hears the same bell, and answers that it still waits


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _nowhere(message: Message) -> None:
    pass


async def _started() -> Manager:
    """The SDK takes a while to import: not on the loop."""
    return await Manager(await asyncio.to_thread(_sdk)).started()


def _sdk() -> "StreamableHTTPSessionManager":
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from . import server

    return StreamableHTTPSessionManager(
        server.made(), max_request_body_size=BODY_BYTES, session_idle_timeout=IDLE_S, max_sessions=None
    )
