"""Protected paths on the server's side: refused before anybody is asked, and told to the sandbox, which holds to them.

Owns what holds for an agent now. The runner judges again, by the real path and by what lies there: nothing here sees
into a sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from approvals import payloads
from approvals.gate import Pass
from approvals.models import Action
from approvals.paths import BUILT_IN, Content, Protection, check_pattern
from console.workspaces import audit
from console.workspaces.errors import Invalid
from console.workspaces.models import Agent

from .errors import FileError

EXEMPT = "exempt_path"
READS = ("read", "publish")


@dataclass(frozen=True)
class Policy:
    """Of one agent. `ends`: full paths that are exempt, and until when."""

    more: tuple[str, ...] = ()
    ends: tuple[tuple[str, datetime], ...] = ()

    @property
    def exempt(self) -> tuple[str, ...]:
        """At this moment."""
        return tuple(path for path, until in self.ends if timezone.now() < until)

    @property
    def left_s(self) -> dict[str, float]:
        """Of each exempt path, how long it still is."""
        now = timezone.now()
        return {path: (until - now).total_seconds() for path, until in self.ends if now < until}

    @property
    def protection(self) -> Protection:
        return Protection(self.more, frozenset(self.exempt)) if self.more or self.ends else BUILT_IN


def of(agent: Agent | None) -> Policy:
    """A workspace key's calls have the built-in patterns alone."""
    if agent is None or not (agent.protected_more or agent.protected_exempt):
        return Policy()
    ends = ((each["path"], datetime.fromisoformat(each["expires_at"])) for each in agent.protected_exempt)
    return Policy(tuple(agent.protected_more), tuple(ends))


def check_settings(settings: Mapping[str, Any], agent: Agent) -> None:
    """Agent Tools that somebody wants to set: patterns that are some, and exemptions of what is protected. One of what
    needs none would only look as if it did something."""
    check_patterns(settings)
    given = settings.get("protected_exempt") or ()
    more = settings.get("protected_more", agent.protected_more)
    known = {each["path"] for each in agent.protected_exempt}
    protection = Protection(tuple(pattern.strip() for pattern in more), frozenset())
    for each in given if isinstance(given, list | tuple) else ():
        path = each.get("path") if isinstance(each, Mapping) else None
        if isinstance(path, str) and path.startswith("/") and path not in known and not protection.finds(path):
            why = f"{path} is not protected, so {agent.name} needs no exemption to write it."
            raise Invalid(why, field="protected_exempt")


def check_patterns(settings: Mapping[str, Any]) -> None:
    for pattern in settings.get("protected_more") or ():
        if isinstance(pattern, str) and (why := check_pattern(pattern.strip())):
            raise Invalid(f"`protected_more`: {pattern!r} {why}.", field="protected_more")


def check_write(arguments: Mapping[str, Any], agent: Agent | None) -> tuple[str, ...]:
    """Flags for the card. Raises FileError `protected_path` for what may not be written by this caller at all: by its
    name as asked for, or because what is to be written is a private key."""
    path, policy = arguments["path"], of(agent).protection
    if arguments.get("protected"):
        return ()
    if what := policy.check(path):
        raise refused(path, f"is protected ({what}): it can be read, and never written.{_hint(agent)}")
    if policy.exempts(path):
        return (EXEMPT,) if policy.finds(path) else ()
    if _is_key(path, arguments.get("content")):
        raise refused(path, f"was not written: its content is a private key.{_hint(agent)}")
    return ()


def refused(path: str, why: str) -> FileError:
    return FileError("protected_path", f"{path} {why}", path=path)


def _hint(agent: Agent | None) -> str:
    if agent is None:
        return " Send `protected: true` to put it there as a person; it is sealed then."
    return " Ask a person to put it there."


def _is_key(path: str, content: object) -> bool:
    watch = Content(path)
    if isinstance(content, str):
        return watch.feed(content.encode("utf-8", "replace"))
    if isinstance(content, payloads.Held):
        for piece in content.pieces():
            if watch.feed(piece) or watch.is_decided:
                break
    return watch.found


def record(pass_: Pass, result: Mapping[str, Any]) -> None:
    """In the transaction of its end: what was read, sealed, unsealed or found goes into the chain."""
    if pass_.tool == "unseal":
        _audit(pass_.action_id, "sandbox.unsealed", path=result["path"], was_sealed=result["was_sealed"])
    elif pass_.tool in READS:
        if path := next(
            (path for path in (pass_.arguments["path"], result.get("path", "")) if BUILT_IN.finds(path)), ""
        ):
            _audit(pass_.action_id, "sandbox.protected_read", path=path)
    elif result.get("protected"):
        event = "sandbox.protected_written" if pass_.tool == "write" else "sandbox.protected_found"
        _audit(pass_.action_id, event, files=result["protected"], more=result.get("protected_more", 0))


def record_in_background(action_id: str, result: Mapping[str, Any]) -> None:
    """Of a command that ended after its action."""
    if result.get("protected"):
        more = result.get("protected_more", 0)
        _audit(action_id, "sandbox.protected_found", files=result["protected"], more=more)


def _audit(action_id: str, event: str, **data: Any) -> None:
    action = Action.objects.only("workspace_id", "sandbox_id").get(pk=action_id)
    audit.append(
        workspace_id=action.workspace_id, actor=audit.SYSTEM, event=event, subject_id=action.sandbox_id,
        action=action_id, **data,
    )  # fmt: skip
