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
FIELD = "protected_exempt"


def checked_more(given: Any) -> list[str]:
    if not isinstance(given, list | tuple) or len(given) > MOST_PATTERNS or not all(isinstance(p, str) for p in given):
        raise Invalid(f"`protected_more` is a list of at most {MOST_PATTERNS} patterns.", field="protected_more")
    return list(dict.fromkeys(pattern.strip() for pattern in given))


def checked_exempt(given: Any, agent: Agent, by: Member | None) -> list[dict[str, str]]:
    """{path, expires_at, reason, by} each. One that stood there before keeps who gave it; what is over is left out."""
    if not isinstance(given, list | tuple) or len(given) > MOST_EXEMPT:
        raise Invalid(f"`protected_exempt` is a list of at most {MOST_EXEMPT} exemptions.", field=FIELD)
    before = {(each["path"], each["expires_at"]): each for each in agent.protected_exempt}
    found = [_exemption(each, before, by) for each in given]
    paths = [each["path"] for each in found]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise Invalid(f"`protected_exempt` names {twice} twice. Name it once, until the later time.", field=FIELD)
    return [each for each in found if not is_over(each)]


def _exemption(given: Any, before: Mapping[tuple[str, str], dict[str, str]], by: Member | None) -> dict[str, str]:
    path, expires_at = _path(given), _time(given)
    if known := before.get((path, expires_at.isoformat())):
        return known
    if not timezone.now() < expires_at <= timezone.now() + EXEMPT_FOR:
        days = EXEMPT_FOR.days
        raise Invalid(f"`expires_at` of {path} lies in the future, at most {days} days.", field=FIELD)
    by_id = by.pk if by else ""
    return {"path": path, "expires_at": expires_at.isoformat(), "reason": _reason(given, path), "by": by_id}


def _reason(given: Mapping[str, Any], path: str) -> str:
    reason = given.get("reason") or ""
    if not isinstance(reason, str) or not reason.strip() or len(reason) > REASON_CHARS:
        why = (
            f"Say why. It is audited, and stands on the card of each write to {path}; up to {REASON_CHARS} characters."
        )
        raise Invalid(why, field=f"{FIELD}.reason")
    return reason.strip()


def _path(given: Any) -> str:
    path = given.get("path") if isinstance(given, Mapping) else None
    if (
        not isinstance(path, str)
        or not path.startswith("/")
        or path != posixpath.normpath(path)
        or _names_nothing(path)
    ):
        raise Invalid("`path` of an exemption is one full path, such as /work/.env, and no pattern.", field=FIELD)
    if len(path) > PATH_CHARS:
        raise Invalid(f"`path` of an exemption has at most {PATH_CHARS} characters.", field=FIELD)
    return path


def _names_nothing(path: str) -> bool:
    """Or it looks like many: taken for a pattern, it would never match."""
    return path == "/" or path.startswith("//") or bool(set(path) & set("\0*?["))


def _time(given: Mapping[str, Any]) -> datetime:
    value = given.get("expires_at")
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise Invalid("`expires_at` of an exemption is a time, with its zone.", field=FIELD) from None
    if found.tzinfo is None:
        raise Invalid("`expires_at` of an exemption names its time zone.", field=FIELD)
    return found


def is_over(exemption: Mapping[str, str]) -> bool:
    return datetime.fromisoformat(exemption["expires_at"]) <= timezone.now()


def exempt_now(agent: Agent) -> Sequence[dict[str, str]]:
    return [each for each in agent.protected_exempt if not is_over(each)]
