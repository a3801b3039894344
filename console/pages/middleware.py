"""Headers, texts that no row takes and the first password: what every page has, whatever its view does."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, UnreadablePostError
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse

# Everything from this origin, nothing inline, nobody frames it. Drawn text is only ever text; this is the second wall.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class _Either:
    """Runs in a synchronous or an asynchronous chain, whichever it stands in, so that no door gets a thread for it."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        return self.acall(request) if self.is_async else self.call(request)

    def call(self, request: HttpRequest) -> HttpResponseBase:
        raise NotImplementedError

    async def acall(self, request: HttpRequest) -> HttpResponseBase:
        raise NotImplementedError


class ContentSecurityPolicy(_Either):
    """Sets the header where the view has set none (files of sandboxes bring a stricter one)."""

    def call(self, request: HttpRequest) -> HttpResponseBase:
        return _with_policy(self.get_response(request))

    async def acall(self, request: HttpRequest) -> HttpResponseBase:
        return _with_policy(await self.get_response(request))


class NoNul(_Either):
    """A text with a NUL is refused here: no row of PostgreSQL takes one, and no view has a use for one. Before the
    session is looked for, since a cookie is a text as well."""

    def call(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = _refusal(request) or self.get_response(request)
        return response

    async def acall(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = _refusal(request) or await self.get_response(request)
        return response


class PasswordMustChange(_Either):
    """Who signed in with a first password sees nothing else until it is changed. Keys and `/v1` have no session."""

    def call(self, request: HttpRequest) -> HttpResponseBase:
        must = _has_session(request) and getattr(request.user, "password_must_change", False)
        response: HttpResponseBase = (_elsewhere(request) if must else None) or self.get_response(request)
        return response

    async def acall(self, request: HttpRequest) -> HttpResponseBase:
        must = _has_session(request) and getattr(await request.auser(), "password_must_change", False)
        response: HttpResponseBase = (_elsewhere(request) if must else None) or await self.get_response(request)
        return response


def _refusal(request: HttpRequest) -> HttpResponse | None:
    if not _has_session(request):  # the doors of machines look for themselves
        return None
    try:
        fields = [request.GET, *([request.POST] if request.method == "POST" else [])]
    except UnreadablePostError:  # its sender left
        return None
    texts = [text for field in fields for name, values in field.lists() for text in (name, *values)]
    if not any("\0" in text for text in (request.path, *request.COOKIES.values(), *texts)):
        return None
    return HttpResponse(render_to_string("people/malformed.html"), status=400)


def _with_policy(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", POLICY)
    return response


def _has_session(request: HttpRequest) -> bool:
    """False for the doors of machines, where looking would cost a query for nothing."""
    return not request.path.startswith(("/v1/", "/mcp", "/static/", "/healthz", "/readyz", "/metrics"))


def _elsewhere(request: HttpRequest) -> HttpResponse | None:
    if request.path in (reverse("password"), reverse("sign-out")):
        return None
    return HttpResponseRedirect(reverse("password"))
