"""The answer to a name that this console does not go by.

A page elsewhere can make its own name lead here (DNS rebinding) and then act as whoever is signed in: so only names
that whoever runs this has allowed are answered, however the server is bound. Must never allow one by itself.
"""

import logging
import re

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import bad_request

NAME = re.compile(r"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:]{2,39}\])(:[0-9]{1,5})?")
_log = logging.getLogger(__name__)


def malformed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler400`."""
    if not isinstance(exception, DisallowedHost):
        return bad_request(request, exception)
    origin = origin_of(request)
    _log.warning(
        "A request for %s was refused. If people reach this console there, start it with SANDGATE_ORIGINS=%s",
        origin or "a name that is none",
        origin or "http://its-name",
    )
    return HttpResponse(render_to_string("people/other-name.html", {"origin": origin}), status=400)


def origin_of(request: HttpRequest) -> str:
    """As a browser names it; empty when it is nothing that could be allowed."""
    name = request.META.get("HTTP_HOST", "")
    scheme = "https" if request.META.get("HTTP_X_FORWARDED_PROTO") == "https" else "http"
    return f"{scheme}://{name}" if NAME.fullmatch(name) else ""
