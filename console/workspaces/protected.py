"""What an agent's settings say of protected paths: names that are protected beside the built-in ones, and full paths
that are exempt until a time. Shapes only: which names are protected is for `approvals.paths`.

Must never keep an exemption that does not end.
"""

import posixpath
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from .errors import Invalid
from .models import Agent, Member

MOST_PATTERNS, MOST_EXEMPT = 50, 50
PATH_CHARS, REASON_CHARS = 1000, 200
EXEMPT_FOR = timedelta(days=30)


def checked_more(given: Any) -> list[str]:
    if not isinstance(given, list | tuple) or len(given) > MOST_PATTERNS or not all(isinstance(p, str) for p in given):
        raise Invalid(f"`protected_more` is a list of at most {MOST_PATTERNS} patterns.", field="protected_more")
    return list(dict.fromkeys(pattern.strip() for pattern in given))


def checked_exempt(given: Any, agent: Agent, by: Member | None) -> list[dict[str, str]]:
    """{path, expires_at, reason, by} each. One that stood there before keeps who gave it; what is over is left out."""
    if not isinstance(given, list | tuple) or len(given) > MOST_EXEMPT:
        raise Invalid(f"`protected_exempt` is a list of at most {MOST_EXEMPT} exemptions.", field="protected_exempt")
    before = {(each["path"], each["expires_at"]): each for each in agent.protected_exempt}
    found = [_exemption(each, before, by) for each in given]
    return [each for each in found if not is_over(each)]


def _exemption(given: Any, before: Mapping[tuple[str, str], dict[str, str]], by: Member | None) -> dict[str, str]:
    path, expires_at = _path(given), _time(given)
    if known := before.get((path, expires_at.isoformat())):
        return known
    if not timezone.now() < expires_at <= timezone.now() + EXEMPT_FOR:
        days = EXEMPT_FOR.days
        raise Invalid(f"`expires_at` of {path} lies in the future, at most {days} days.", field="protected_exempt")
    reason = str(given.get("reason") or "")[:REASON_CHARS]
    return {"path": path, "expires_at": expires_at.isoformat(), "reason": reason, "by": by.pk if by else ""}


def _path(given: Any) -> str:
    path = given.get("path") if isinstance(given, Mapping) else None
    if not isinstance(path, str) or not path.startswith("/") or path != posixpath.normpath(path) or path == "/":
        raise Invalid("`path` of an exemption is one full path, such as /work/.env.", field="protected_exempt")
    if len(path) > PATH_CHARS or "\0" in path or path.startswith("//"):
        raise Invalid(f"`path` of an exemption has at most {PATH_CHARS} characters.", field="protected_exempt")
    return path


def _time(given: Mapping[str, Any]) -> datetime:
    value = given.get("expires_at")
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise Invalid("`expires_at` of an exemption is a time, with its zone.", field="protected_exempt") from None
    if found.tzinfo is None:
        raise Invalid("`expires_at` of an exemption names its time zone.", field="protected_exempt")
    return found


def is_over(exemption: Mapping[str, str]) -> bool:
    return datetime.fromisoformat(exemption["expires_at"]) <= timezone.now()


def exempt_now(agent: Agent) -> Sequence[dict[str, str]]:
    return [each for each in agent.protected_exempt if not is_over(each)]
