"""From which address a request came, and the origin that its acts are recorded with.

Behind a proxy (SANDGATE_ORIGINS has HTTPS) it is whom the proxy names last; what a client claims by itself counts for
nothing. Must never decide anything by it.
"""

import hashlib
from ipaddress import ip_address
from typing import Any

from django.conf import settings

from .doorman import App, Receive, Scope, Send, last_header
from .workspaces import origin
from .workspaces.keys import Caller
from .workspaces.models import Member
from .workspaces.origin import Origin

SESSION_CHARS = 12


def address(peer: str, forwarded_for: str) -> str:
    """One way to write each; what is no address as it is, short."""
    found = forwarded_for.rpartition(",")[2].strip() if settings.HTTPS and forwarded_for else peer
    try:
        return str(ip_address(found))
    except ValueError:
        return found[:64]


def of_request(request: Any) -> str:
    return address(request.META.get("REMOTE_ADDR") or "", request.META.get("HTTP_X_FORWARDED_FOR", ""))


def of_person(request: Any, *members: Member) -> Origin:
    """Signed in by a session, for acts as any of `members`."""
    key = request.session.session_key or ""
    return Origin(
        frozenset(member.pk for member in members),
        of_request(request),
        by="password",
        session=hashlib.sha256(key.encode()).hexdigest()[:SESSION_CHARS] if key else "",
        signed_in_at=request.session.get("signed_in_at", ""),
    )


class Whence:
    """Inside the doorman, who has put the caller into the scope."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        who: Caller = scope["caller"]
        peer = (scope.get("client") or ("",))[0]
        holders = frozenset(filter(None, (who.key_id, who.agent_id, who.member_id)))
        at = address(peer or "", last_header(scope, b"x-forwarded-for").decode("latin-1"))
        with origin.given(Origin(holders, at, by="key", key=who.key_id)):
            await self.app(scope, receive, send)
