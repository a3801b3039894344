"""The API as one object: its addresses, its OpenAPI document, its explorer, and what is answered where nothing is.

Owns what ninja would otherwise answer in other shapes, or from a thread. Must never fetch anything from elsewhere: the
explorer's parts come from this server.
"""

from collections.abc import Awaitable, Callable
from functools import cached_property, wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path, re_path
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from .errors import refusal

# Swagger UI sets styles from its script and draws its icons from data: addresses. Scripts still come from here alone.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
SECURITY = {
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "bearer": {"type": "http", "scheme": "bearer"},
}
REQUEST_ID = {"schema": {"type": "string"}, "description": "The name of this request in the server's log."}
RETRY_AFTER = {"schema": {"type": "integer"}, "description": "Seconds."}
View = Callable[..., Awaitable[HttpResponseBase]]


class Api(NinjaAPI):
    def _get_urls(self) -> list[URLResolver | URLPattern]:
        found = super()._get_urls()
        for pattern in found:
            if isinstance(pattern, URLPattern) and pattern.name != "api-root":
                pattern.callback = _in_our_shape(pattern.callback)
        return [
            path("openapi.json", self._document, name="openapi-json"),
            path("docs", _explorer, name="docs"),
            path("", _nothing),  # before ninja's own, which is synchronous and only lends its name to the address
            *found,
            re_path(r"", _nothing),
        ]

    async def _document(self, request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return _not_allowed(request, "GET, HEAD")
        return JsonResponse(self.document)

    _document.csrf_exempt = True  # type: ignore[attr-defined]  # a refusal of POST is ours, too

    @cached_property
    def document(self) -> OpenAPISchema:
        """Made once: what operations there are does not change while the process lives."""
        made = self.get_openapi_schema()
        made["components"]["securitySchemes"] = SECURITY
        made["security"] = [{name: []} for name in SECURITY]
        for operations in made["paths"].values():
            for operation in operations.values():
                for status, answer in operation["responses"].items():
                    limited = {"Retry-After": RETRY_AFTER} if int(status) in (429, 503) else {}
                    answer["headers"] = {"X-Request-Id": REQUEST_ID, **limited}
        return made


def _in_our_shape(view: View) -> View:
    """ninja answers a wrong method in plain text. And answers hold secrets and files: no cache, no guessed types."""

    @wraps(view)
    async def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = await view(request, *args, **kwargs)
        if response.status_code == 405:
            response = _not_allowed(request, response.headers["Allow"])
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response

    return wrapped


def _not_allowed(request: HttpRequest, allowed: str) -> HttpResponse:
    words = ", ".join(sorted(allowed.replace(" ", "").split(",")))
    response = refusal(f"{request.method} is not possible at {request.path}; there is {words}.", "method_not_allowed")
    response.headers["Allow"] = words
    return response


async def _nothing(request: HttpRequest) -> HttpResponse:
    return refusal(f"There is nothing at {request.path}. What there is stands in /v1/openapi.json.", "not_found")


_nothing.csrf_exempt = True  # type: ignore[attr-defined]  # keys only: there is no cookie to forge with


async def _explorer(request: HttpRequest) -> HttpResponse:
    if request.method not in ("GET", "HEAD"):
        return _not_allowed(request, "GET, HEAD")
    response = render(request, "api/explorer.html")
    response.headers["Content-Security-Policy"] = POLICY
    return response


_explorer.csrf_exempt = True  # type: ignore[attr-defined]
