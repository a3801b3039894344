"""What the tests serve: the product's server, doorman and bus in front of the smallest application that shows them."""

# ruff: noqa: E402  (Django must be set up before what imports models)
import asyncio
import hashlib
import os
from collections import Counter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.server.settings")

from django.core.asgi import get_asgi_application

django_app = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.http import JsonResponse, StreamingHttpResponse
from django.urls import path, re_path

from console.doorman import Limited, Tagged, answer, body_parsed, doorman
from console.signed_in import SameOrigin
from console.workspaces import bus

seen = Counter()  # what happened in views, for /seen


async def ping(request):
    return JsonResponse({"caller": request.scope.get("caller")})


async def seen_view(request):
    return JsonResponse(seen)


async def stream(request, mb, plain=False):
    async def blocks():
        try:
            for _ in range(mb):
                await asyncio.sleep(0)
                yield bytes(1 << 20)
        finally:
            seen["streams_ended"] += 1

    headers = {"Content-Length": str(mb << 20)} if plain else {}  # without: chunked
    return StreamingHttpResponse(blocks(), content_type="application/octet-stream", headers=headers)


async def broken_stream(request):
    async def blocks():
        yield b"half "
        raise RuntimeError("in the middle of an answer")

    return StreamingHttpResponse(blocks())


async def hold(request):
    seen["held"] += 1
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        seen["cancelled"] += 1
        raise
    return JsonResponse({})


async def wait(request, topic):
    async def rung():
        return seen[topic] or None

    found = await bus.wait_for(rung, topic, timeout_s=25)
    return JsonResponse({"found": found}, status=200 if found else 202)


async def ring(request, topic):
    seen[topic] += 1
    bus.announce(topic)
    return JsonResponse({})


async def body(request):
    size = len(request.body)
    seen["parsing"] += 1
    seen["parsed_at_once"] = max(seen["parsed_at_once"], seen["parsing"])
    await asyncio.sleep(0.2)
    seen["parsing"] -= 1
    body_parsed(request.scope)
    await asyncio.sleep(0.2)
    return JsonResponse({"size": size})


async def given(request, mb):
    """Counts answers that a client was there for, in a way that takes a moment."""

    async def note():
        await asyncio.sleep(0.05)
        seen["given"] += 1

    request.scope["after_send"].append(note)
    await asyncio.sleep(0.3)

    async def blocks():
        for _ in range(mb):
            yield bytes(1 << 20)

    return StreamingHttpResponse(blocks())


urlpatterns = [
    path("given/<int:mb>", given),
    path("ping", ping),
    path("seen", seen_view),
    path("stream/<int:mb>", stream),
    path("plain/<int:mb>", stream, {"plain": True}),
    path("broken", broken_stream),
    path("hold", hold),
    path("wait/<topic>", wait),
    path("ring/<topic>", ring),
    path("body", body),
    path("big", body),
]


async def put(scope, receive, send):
    """A raw application that reads a body as it comes; `?slow` at 20 MB/s."""
    size, digest, more = 0, hashlib.sha256(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            seen["puts_dropped"] += 1
            return
        chunk, more = message.get("body", b""), message.get("more_body", False)
        digest.update(chunk)
        size += len(chunk)
        if scope["query_string"] == b"slow":
            await asyncio.sleep(len(chunk) / 20e6)
    await answer(send, 200, code="ok", detail=f"{size} {digest.hexdigest()}")


async def late(scope, receive, send):
    """Takes its time, longer than the server gives a silent client, while the body waits and when it is here."""
    message = await receive()
    await asyncio.sleep(settings.IDLE_S * 1.5)
    while message.get("more_body"):
        message = await receive()
    await asyncio.sleep(settings.IDLE_S * 1.5)
    await answer(send, 200, code="ok", detail="late")


async def silent(scope, receive, send):
    """Ends without an answer."""


async def crash(scope, receive, send):
    raise RuntimeError("before an answer")


async def echo(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        seen["messages"] += 1
        await asyncio.sleep(float(message["text"]))


async def flood(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        await send({"type": "websocket.send", "bytes": bytes(1 << 20)})
        seen["flooded"] += 1


async def authenticate(key):
    if key == "broken":
        raise RuntimeError("the database is away")
    return key if key == "good" else None


def door(app, limit_bytes=1 << 20):
    return doorman(app, limit_bytes=limit_bytes, authenticate=authenticate)


application = ProtocolTypeRouter({
    "http": Tagged(URLRouter([
        path("put", door(put, 1 << 30)),
        path("big", door(django_app, 140 << 20)),
        path("late", door(late)),
        path("silent", silent),
        path("crash", crash),
        path("seen", django_app),
        path("open", Limited(django_app, limit_bytes=1 << 20)),
        re_path("", door(django_app)),
    ])),
    "websocket": SameOrigin(URLRouter([path("ws/echo", echo), path("ws/flood", flood)])),
})  # fmt: skip
