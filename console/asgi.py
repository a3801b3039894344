"""The doors by address: which limit each has, and who keeps it. Importing this starts nothing."""
# ruff: noqa: E402  (Django must be set up before what imports models)

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

from django.core.asgi import get_asgi_application

django_app = get_asgi_application()  # before anything that imports models

import re
from functools import partial
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

from . import health, metrics
from .api.mcp.door import Mcp, Placed, elsewhere
from .doorman import App, Limited, Receive, Scope, Send, Tagged, doorman
from .keyed import KeyDjango
from .pages import sockets
from .signed_in import SameOrigin, SignedIn, refuse
from .streamed import Streamed
from .whence import Whence
from .workspaces import db, keys

RAW_BYTES = 100 << 20
FILE_BYTES = 140 << 20  # 100 MB as base64 in JSON
COMMAND_BYTES = 8 << 20  # a command of 1 MiB, each byte escaped in JSON, and its stdin
OTHER_BYTES = 1 << 20


async def authenticate(key: str) -> keys.Caller | None:
    caller = await db.read(keys.authenticate, key)
    if caller and caller.use_is_stale:
        await db.write(keys.used, caller.key_id)
    return caller


async def over(key_ids: set[str]) -> set[str]:
    return await db.read(keys.over, key_ids)


kept = partial(doorman, authenticate=authenticate, over=over)
keyed = partial(kept, Whence(KeyDjango()))
raw = kept(Whence(Streamed(KeyDjango())), limit_bytes=RAW_BYTES, spools=False)
files, commands, others = (keyed(limit_bytes=limit) for limit in (FILE_BYTES, COMMAND_BYTES, OTHER_BYTES))
mcp = Placed(kept(Whence(Mcp()), limit_bytes=COMMAND_BYTES))
pages: App = Limited(django_app, limit_bytes=OTHER_BYTES)

ROUTES = [
    (re.compile(pattern, re.DOTALL), app)
    for pattern, app in (
        (r"healthz", health.alive),
        (r"readyz", health.Ready()),
        (r"metrics", metrics.Metrics()),
        (r"v1/(openapi\.json|docs)", pages),  # what the API is, anybody may read
        (r"v1/sandboxes/[^/]+/files/raw", raw),
        (r"v1/sandboxes/[^/]+/files", files),
        (r"v1/tools/(write|write_file)", files),
        (r"v1/sandboxes/[^/]+/commands(/.*)?", commands),
        (r"v1/tools/.*", commands),
        (r"v1(/.*)?", others),
        (r"mcp(/c/[^/]+)?/?", mcp),
        (r"mcp(/.*)?", elsewhere),
    )
]


async def http(scope: Scope, receive: Receive, send: Send) -> None:
    path = scope["path"].lstrip("/")
    app = next((app for pattern, app in ROUTES if pattern.fullmatch(path)), pages)
    await app(scope, receive, send)


unknown: Any = refuse  # typed for views, used for sockets
browser_sockets = SameOrigin(SignedIn(URLRouter([*sockets.routes, re_path(r"", unknown)])))

application = ProtocolTypeRouter({"http": Tagged(http), "websocket": browser_sockets})
