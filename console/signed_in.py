"""Who opens a browser socket: a page of this console (Origin), and a person who is signed in (session).

A socket carries cookies from any page in the world, and cookies know no port: so its Origin must be exactly what a form
of this console would post from. Must never let a socket through to a consumer without `scope["user"]`.
"""

import logging
from importlib import import_module
from io import BytesIO
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.utils.http import is_same_domain

from .doorman import App, Receive, Scope, Send
from .workspaces import db

_log = logging.getLogger(__name__)


class SameOrigin:
    """403 unless the Origin is this console's own address or one of CSRF_TRUSTED_ORIGINS."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if why := _refusal(scope):
            _log.warning("%s", why)
            return await refuse(scope, receive, send)
        await self.app(scope, receive, send)


def _refusal(scope: Scope) -> str:
    origin = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"), None)
    if origin is None:
        return "A socket was refused: it has no Origin, so it comes from no page of this console."
    request = _request(scope)
    try:
        own = f"{request.scheme}://{request.get_host()}"
    except DisallowedHost as error:
        return f"A socket from Origin {origin!r} was refused: {error}"
    if is_ours(origin, own):
        return ""
    return (
        f"A socket from Origin {origin!r} was refused: this console's own is {own!r}. If people reach it under that"
        " name, add it to SANDGATE_ORIGINS (CSRF_TRUSTED_ORIGINS)."
    )


def is_ours(origin: str, own: str) -> bool:
    """This console's own address, or one of CSRF_TRUSTED_ORIGINS."""
    return origin == own or any(_matches(origin, trusted) for trusted in settings.CSRF_TRUSTED_ORIGINS)


def _request(scope: Scope) -> ASGIRequest:
    """The handshake as Django sees a GET, so that sockets and forms agree on host and scheme, also behind a proxy."""
    secure = scope.get("scheme") in ("wss", "https")
    return ASGIRequest({**scope, "method": "GET", "scheme": "https" if secure else "http"}, BytesIO())


def _matches(origin: str, trusted: str) -> bool:
    """As Django's CSRF check: equal, or below the domain of `https://*.example.com`."""
    if origin == trusted:
        return True
    pattern, seen = urlsplit(trusted), urlsplit(origin)
    if not pattern.netloc.startswith("*") or seen.scheme != pattern.scheme:
        return False
    return is_same_domain(seen.netloc, pattern.netloc.lstrip("*"))


class SignedIn:
    """403 unless a person is signed in; puts them into `scope["user"]`."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (user := await user_of(scope)) is None:
            return await refuse(scope, receive, send)
        await self.app({**scope, "user": user}, receive, send)


async def user_of(scope: Scope) -> AbstractBaseUser | None:
    """Who is signed in on this socket now: a consumer asks again while it is open. None after signing out, a change of
    password elsewhere, the session's end, or while the password must change."""
    return await db.read(_user, _request(scope).COOKIES.get(settings.SESSION_COOKIE_NAME))


def _user(session_key: str | None) -> AbstractBaseUser | None:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    if not isinstance(user, AbstractBaseUser) or getattr(user, "password_must_change", False):
        return None
    return user


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Closing before accepting: the server answers the handshake 403."""
    await send({"type": "websocket.close"})
