"""The server: daphne's, with an application that starts at the headers, sends that wait, and an orderly stop.

Owns the connections and the reactor of this process. Knows bytes; must never know a URL, a key or a limit. Stands on
daphne's private Server.connections, application_checker and timeout_checker. Must only be imported by `manage.py up`
and tests: the import installs a reactor.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import daphne.server  # first: it installs Twisted's asyncio reactor
from django.conf import settings
from twisted.internet import defer, reactor
from twisted.internet.error import ReactorNotRunning
from twisted.logger import STDLibLogObserver, globalLogBeginner

from .wire import HTTP, SOCKET_MESSAGE_BYTES, Message, Request, Socket, WebSockets

BACKLOG = 1024  # Twisted's 50 delays a burst of 300 connects by 3 s
PING_TIMEOUT_S = 30
Protocol = Request | Socket

_log = logging.getLogger(__name__)


class Server(daphne.server.Server):
    """One per process: a reactor runs once."""

    def __init__(self, application: Any, *, bound: socket.socket, before_stop: Callable[[], None]) -> None:
        super().__init__(application, endpoints=["unused: run() listens itself"], server_name="")
        self.bound, self.before_stop = bound, before_stop
        self.connections: dict[Protocol, dict[str, Any]] = {}
        self.http_factory, self.ws_factory = HTTP(self), WebSockets(self, server="")
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=PING_TIMEOUT_S,
            allowNullOrigin=True,  # whose page may open a socket is the application's to say
            openHandshakeTimeout=5,
            maxMessagePayloadSize=SOCKET_MESSAGE_BYTES,
        )

    def run(self, ready: Callable[[], None]) -> None:
        """Serve until stop(). Raises OSError when the port was taken since it was bound."""
        asyncio.set_event_loop(reactor._asyncioEventloop)
        globalLogBeginner.beginLoggingTo([STDLibLogObserver("twisted")], redirectStandardIO=False, discardBuffer=True)
        self.bound.listen(BACKLOG)
        self.listening = reactor.adoptStreamPort(self.bound.fileno(), self.bound.family, self.http_factory)
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        reactor.callWhenRunning(ready)
        reactor.addSystemEventTrigger("before", "shutdown", self._wind_up_deferred)
        reactor.run(installSignalHandlers=False)  # Twisted never takes its own off again: they eat a second Ctrl-C

    def stop(self) -> None:
        """From any thread, or a signal handler; a second time: nothing."""

        def stop() -> None:
            with suppress(ReactorNotRunning):
                reactor.stop()

        reactor.callFromThread(stop)

    def create_application(self, protocol: Protocol, scope: dict[str, Any]) -> asyncio.Queue[Message] | None:
        if protocol not in self.connections:
            return None
        queue: asyncio.Queue[Message] = asyncio.Queue()
        scope.setdefault("asgi", {"version": "3.0"})
        app = self.application(scope, partial(protocol.receive, queue), partial(self.handle_reply, protocol))
        self.connections[protocol]["application_instance"] = asyncio.ensure_future(self._run(protocol, app))
        return queue

    async def _run(self, protocol: Protocol, app: Awaitable[None]) -> None:
        """daphne looks for dead applications once a second, and its look-out dies of an answer already begun."""
        try:
            await app
        except Exception:
            _log.exception("The application failed on %s.", protocol)
        if "disconnected" not in self.connections.get(protocol, {"disconnected": True}):
            protocol.fail()

    async def handle_reply(self, protocol: Protocol, message: Message) -> None:
        await super().handle_reply(protocol, message)
        if protocol.drain and not protocol.drain.is_set():
            await protocol.drain.drained()

    def _wind_up_deferred(self) -> defer.Deferred[None]:
        return defer.Deferred.fromFuture(asyncio.ensure_future(self._wind_up()))

    async def _wind_up(self) -> None:
        """Nobody new; waits end with an answer; then clients are told, and so Django ends its views (it leaves them
        running when its application is merely cancelled); then what is left is cancelled."""
        self.listening.stopListening()
        self.before_stop()
        for act in ("wait", "tell", "cancel"):
            for protocol, app in self._running():
                if act == "tell" or isinstance(protocol, Socket):
                    protocol.send_disconnect()
                if act == "cancel":
                    app.cancel()
            if apps := [app for _, app in self._running()]:
                await asyncio.wait(apps, timeout=settings.STOP_S / 3)

    def _running(self) -> list[tuple[Protocol, asyncio.Future[None]]]:
        apps = [(protocol, details.get("application_instance")) for protocol, details in self.connections.items()]
        return [(protocol, app) for protocol, app in apps if app and not app.done()]
