"""The two protocols of the server, HTTP and WebSocket: daphne's, with back-pressure both ways and early dispatch.

Knows bytes; must never know a URL, a key or a limit. Stands on private names: Twisted's HTTPChannel._command, _path,
_version, _savedTimeOut, _send100Continue, _respondToBadRequestAndDisconnect and Request.queued, _cleanup; daphne's
_response_started, handshake_deferred. Both are pinned exactly; tests/server holds what we need of them.
"""

import asyncio
import json
import uuid
from typing import Any

import daphne.server  # noqa: F401  (first: it installs Twisted's asyncio reactor)
from autobahn.twisted.websocket import ConnectionDeny
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from django.conf import settings
from twisted.internet import reactor

READ_AHEAD = 4  # chunks of at most 64 KiB, or messages, that may wait for the application before the socket is paused
SOCKET_MESSAGE_BYTES = 1 << 20  # the most that either side of a socket may say at once
OWN_HEADERS = (b"daphne-root-path",)  # daphne would let any client move the root of all paths

Message = dict[str, Any]


class Drain(asyncio.Event):
    """A Twisted push producer: cleared while the transport holds more than 64 KiB that the client has not taken."""

    def __init__(self, transport: Any) -> None:
        super().__init__()
        self.transport, self.pauseProducing = transport, self.clear
        self.resumeProducing = self.stopProducing = self.set
        self.set()

    async def drained(self) -> None:
        """Until the client has taken enough; one that takes nothing for SEND_STALL_S is cut."""
        try:
            async with asyncio.timeout(settings.SEND_STALL_S):
                await self.wait()
        except TimeoutError:
            self.transport.abortConnection()


class NoContent:
    """In the place of Twisted's spool file. `closed` makes daphne start the application and queue nothing itself."""

    closed = True

    def seek(self, *_: int) -> int:
        return 0

    tell = close = seek


class Request(WebRequest):
    """Starts the application when the headers are in and hands it the body as it comes.

    Twisted calls, in this order: gotLength, handleContentChunk…, requestReceived.
    """

    channel: Any = None  # what remains when Twisted deletes the instance's
    body_ended = True
    paused = expects_continue = False
    drain: Drain | None = None
    linger: Any = None

    def gotLength(self, length: int | None) -> None:
        for name in OWN_HEADERS:
            self.requestHeaders.removeHeader(name)
        if length == 0:
            return super().gotLength(length)
        channel, self.content, self.body_ended = self.channel, NoContent(), False
        if b"websocket" in [v.lower() for v in self.requestHeaders.getRawHeaders(b"upgrade", [])]:
            return channel._respondToBadRequestAndDisconnect()  # such a request has no body
        expect = self.requestHeaders.getRawHeaders(b"expect", [b""])[0].lower()
        self.expects_continue = expect == b"100-continue" and channel._version == b"HTTP/1.1"
        super().requestReceived(channel._command, channel._path, channel._version)  # starts the application
        self.requestHeaders.removeHeader(b"expect")  # else Twisted says "100 Continue" now; `receive` does

    def handleContentChunk(self, data: bytes) -> None:
        if self.finished or self.application_queue is None:
            return  # answered already: drop
        self.application_queue.put_nowait({"type": "http.request", "body": data, "more_body": True})
        if self.application_queue.qsize() >= READ_AHEAD:  # again, too: a drained answer wakes the socket by itself
            self._pause(True)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        if self.body_ended:
            return super().requestReceived(command, path, version)
        self.body_ended = True
        if self.channel:
            self.channel._savedTimeOut = self.channel.factory.timeOut  # Twisted saved None if the socket was paused
        if self.linger:
            self.linger.cancel()
            self._cleanup()
        elif self.application_queue is not None:
            self.application_queue.put_nowait({"type": "http.request", "body": b"", "more_body": False})

    async def receive(self, queue: asyncio.Queue[Message]) -> Message:
        if self.expects_continue and not self.startedWriting and self.channel:
            self.expects_continue = False
            self.channel._send100Continue()
        message = await queue.get()
        if self.paused and queue.qsize() < READ_AHEAD and self.channel:
            self._pause(False)
        return message

    def handle_reply(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self.channel and not self.finished:
            self.drain = Drain(self.channel.transport)
            self.registerProducer(self.drain, True)
            if not self.body_ended:  # what is left of the body must never be read as a next request
                self.channel.persistent = False
                message = {**message, "headers": [*message.get("headers", ()), (b"Connection", b"close")]}
        super().handle_reply(message)

    def finish(self) -> None:
        if self.drain:
            self.unregisterProducer()
        if not self.body_ended:  # closing on unread bytes would reset the connection and lose the answer: read on
            self.queued = True  # Twisted: keep the connection until _cleanup
            self.linger = reactor.callLater(settings.LINGER_S, self.channel.forceAbortClient)
            if self.paused:
                self._pause(False)
        super().finish()

    def connectionLost(self, reason: Any) -> None:
        if not self.linger:
            super().connectionLost(reason)
        elif self.linger.active():
            self.linger.cancel()

    def fail(self) -> None:
        """The application ended without the end of an answer: say so if it can still be said, else cut."""
        if self.finished or not self.channel:
            return
        if self._response_started:
            self.channel.transport.abortConnection()
        else:
            self.basic_error(500, b"Internal Server Error", "The server failed here; its log has the request id")

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """What never reaches an application, or dies in it, in the same shape as every other error."""
        code = {400: "malformed", 503: "unavailable"}.get(status, "internal")
        content = json.dumps({"detail": f"{body.rstrip('.')}.", "code": code}).encode()
        headers = [
            (b"Content-Type", b"application/json"),
            (b"Content-Length", b"%d" % len(content)),
            (b"X-Request-Id", str(uuid.uuid4()).encode()),
        ]
        self.handle_reply({"type": "http.response.start", "status": status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": content})

    def _pause(self, paused: bool) -> None:
        self.paused = paused
        if not self.body_ended:  # Twisted's 60 s are for a client that sends slowly, not for us
            self.channel.setTimeout(None if paused else self.channel.factory.timeOut)
        transport = self.channel.transport
        transport.pauseProducing() if paused else transport.resumeProducing()


class Socket(WebSocketProtocol):
    """Sends wait for the client to take them; a client that sends faster than the application reads is paused."""

    drain: Drain | None = None
    paused = False

    def onConnect(self, request: Any) -> Any:
        self.transport.unregisterProducer()  # until now the HTTP channel
        self.drain = Drain(self.transport)
        self.transport.registerProducer(self.drain, True)
        return super().onConnect(request)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        super().onMessage(payload, isBinary)
        if not self.paused and self.application_queue.qsize() >= READ_AHEAD:
            self.paused = True
            self.transport.pauseProducing()

    async def receive(self, queue: asyncio.Queue[Message]) -> Message:
        message = await queue.get()
        if self.paused and queue.qsize() < READ_AHEAD:
            self.paused = False
            self.transport.resumeProducing()
        return message

    def send_disconnect(self) -> None:
        if self.state == self.STATE_OPEN:
            self.sendCloseFrame(code=1001)  # sendClose refuses it

    def fail(self) -> None:
        """The application ended and left the socket open."""
        if self.state == self.STATE_OPEN:
            self.sendCloseFrame(code=1011)
        elif hasattr(self, "handshake_deferred"):
            handshake = self.handshake_deferred
            del self.handshake_deferred
            handshake.errback(ConnectionDeny(code=500, reason="Internal server error"))
            self.server.protocol_disconnected(self)


class HTTP(HTTPFactory):
    def buildProtocol(self, addr: Any) -> Any:
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = Request
        return protocol

    def log(self, request: Any) -> None:
        """No access log from here: a line per request of a page that polls tells nobody anything."""


class WebSockets(WebSocketFactory):
    protocol = Socket
