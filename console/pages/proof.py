"""Whether a person has just shown who they are: for the few acts that a page left open must not be able to do.

Owns the moment, kept in the session, and the question for the password. Must never take a guess that signing in would
not take: both count as tries of the same person.
"""

import time
from typing import Any

from .throttle import Throttle, key_of

WITHIN_S = 600
_AT = "proved_at"


def note(request: Any) -> None:
    """At signing in, and whenever the password was right."""
    request.session[_AT] = time.time()


def is_recent(request: Any) -> bool:
    return 0 <= time.time() - float(request.session.get(_AT, 0)) < WITHIN_S


def refusal(request: Any, throttle: Throttle) -> str:
    """Empty when it is recent, or the password that was sent is right; else why not, for the form."""
    if is_recent(request):
        return ""
    key = key_of(request, request.user.email)
    if wait_s := throttle.begin(key):
        return f"Too many tries, so this one was not looked at. The next counts in {round(wait_s) + 1} s."
    if not request.user.check_password(request.POST.get("password", "")):
        return "This is not your password."
    throttle.succeeded(key)
    note(request)
    return ""
