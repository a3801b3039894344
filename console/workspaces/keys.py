"""Keys: made once, shown once, kept as a hash. Who calls, and what they may do right now."""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from . import audit, permissions, rows
from .errors import Invalid, PermissionDenied
from .models import Agent, Key, Member, Permission

AGENT_KEY_DAYS = 90
MAX_DAYS = 365
USE_IS_STALE_AFTER = timedelta(minutes=1)
# Each call of each key is looked up, and making rows of what is found is most of what that costs.
LOOKED_AT = (
    "pk", "workspace_id", "agent_id", "member_id", "last_used_at", "expires_at", "agent__archived_at",
    "member__removed_at", "member__user__is_active",
)  # fmt: skip


@dataclass(frozen=True)
class Caller:
    """Who holds the key of a request, with the permissions it has at this moment. Plain data, made per request."""

    key_id: str
    workspace_id: str
    agent_id: str | None
    member_id: str | None
    permissions: frozenset[str]
    use_is_stale: bool = False

    @classmethod
    def of_member(cls, member: Member) -> "Caller":
        """A member at a page: no key, and all that the member may."""
        may = frozenset(member.permissions.values_list("name", flat=True)) if member.is_current else frozenset()
        return cls("", member.workspace_id, agent_id=None, member_id=member.pk, permissions=may)

    @property
    def is_agent(self) -> bool:
        return self.agent_id is not None

    @property
    def actor(self) -> audit.Actor:
        if self.agent_id:
            return audit.Actor("agent", self.agent_id)
        return audit.Actor("key", self.key_id) if self.key_id else audit.Actor("member", self.member_id or "")

    def need(self, permission: str) -> None:
        if permission in self.permissions:
            return
        holder = f"{self.actor.kind} {self.actor.id}"
        raise PermissionDenied(
            f"This needs `{permission}`, and {holder} does not have it. A member with `members:manage` can give it.",
            permission=permission,
        )


def _hash(secret: str) -> str:
    # Secrets carry 256 random bits: a plain hash cannot be guessed backwards, nor its look-up timed to any use.
    return hashlib.sha256(secret.encode()).hexdigest()


def authenticate(secret: str) -> Caller | None:
    """None for a key that is unknown, revoked or over, or whose agent or member is gone."""
    return _caller(_by_hash(_hash(secret)))


def again(caller: Caller) -> Caller | None:
    """The same, now: for an answer that goes on for long."""
    return _caller(_by_id(caller.key_id))


def over(key_ids: Iterable[str]) -> set[str]:
    """Those of them that are unknown, revoked or over by now, or whose agent or member is gone."""
    now, wanted = timezone.now(), set(key_ids)
    found = _valid().filter(pk__in=wanted)
    return wanted - {pk for pk, _, _, member_id, _, *facts in found if not _is_over(now, member_id, *facts)}


@rows.Question
def _by_hash(secret_hash: str) -> Any:
    return _valid().filter(secret_hash=secret_hash)


@rows.Question
def _by_id(key_id: str) -> Any:
    return _valid().filter(pk=key_id)


def _valid() -> Any:
    return Key.objects.filter(revoked_at=None).values_list(*LOOKED_AT)


@rows.Question
def _of_agent(agent_id: str) -> Any:
    return Permission.objects.filter(agent_id=agent_id).values_list("name")


@rows.Question
def _of_key_and_member(key_id: str, member_id: str | None) -> Any:
    return Permission.objects.filter(Q(key_id=key_id) | Q(member_id=member_id)).values_list("name", "key_id")


def _caller(found: Iterable[Any]) -> Caller | None:
    now = timezone.now()
    for key_id, workspace_id, agent_id, member_id, used_at, expires_at, archived_at, removed_at, is_active in found:
        if _is_over(now, member_id, expires_at, archived_at, removed_at, is_active):
            return None
        return Caller(
            key_id, workspace_id, agent_id, member_id, _effective(key_id, agent_id, member_id),
            use_is_stale=used_at is None or now - used_at > USE_IS_STALE_AFTER,
        )  # fmt: skip
    return None


def _is_over(
    now: datetime,
    member_id: str | None,
    expires_at: datetime,
    archived_at: datetime | None,
    removed_at: datetime | None,
    is_active: bool | None,
) -> bool:
    return expires_at <= now or archived_at is not None or bool(member_id and (removed_at or not is_active))


def _effective(key_id: str, agent_id: str | None, member_id: str | None) -> frozenset[str]:
    """An agent's key does what the agent may; a member's key what was given to it and its member still has."""
    if agent_id:
        return frozenset(name for (name,) in _of_agent(agent_id))
    held = _of_key_and_member(key_id, member_id)
    own, members = ({name for name, of_key in held if bool(of_key) is mine} for mine in (True, False))
    return frozenset(own & members)


def used(key_id: str) -> None:
    Key.objects.filter(pk=key_id).update(last_used_at=timezone.now())


@transaction.atomic
def make_agent_key(agent: Agent, *, name: str, by: Member | None, days: int = AGENT_KEY_DAYS) -> tuple[Key, str]:
    """The key and its secret, which is not kept. `by` is None only for the first start."""
    return _make(Key(workspace=agent.workspace, agent=agent), name=name, by=by, days=days)


@transaction.atomic
def make_member_key(
    member: Member, *, name: str, may: Iterable[str], by: Member | None, days: int = AGENT_KEY_DAYS
) -> tuple[Key, str]:
    """A workspace key: does what `may` names, as long as `member` has it too."""
    wanted = frozenset(may)
    if by is not None and by != member:
        raise PermissionDenied("A workspace key acts for its member, so only that member can make it.")
    if wanted >= permissions.NEVER_TOGETHER_ON_A_KEY:
        raise Invalid("A key holds `sandboxes:run` or `approvals:review`, never both. Make two keys.", field="may")
    for permission in sorted(wanted):
        if not member.may(permission):
            raise Invalid(f"{member} does not have `{permission}`, so a key of theirs cannot.", field="may")
    key, secret = _make(Key(workspace=member.workspace, member=member), name=name, by=by, days=days, may=sorted(wanted))
    for permission in sorted(wanted):
        Permission.objects.create(workspace=key.workspace, key=key, name=permission, given_by=by)
    return key, secret


def _make(key: Key, *, name: str, by: Member | None, days: int, may: list[str] | None = None) -> tuple[Key, str]:
    if not 1 <= days <= MAX_DAYS:
        raise Invalid(f"A key lasts 1 to {MAX_DAYS} days, not {days}.", field="days")
    if not (name := name.strip()):
        raise Invalid("Give the key a name, so that people can tell keys apart.", field="name")
    secret = f"sg_{'agent' if key.agent else 'key'}_{secrets.token_urlsafe(32)}"
    key.name, key.created_by, key.secret_hash, key.hint = name[:60], by, _hash(secret), secret[:12]
    key.expires_at = timezone.now() + timedelta(days=days)
    key.save(force_insert=True)
    actor = audit.Actor("member", by.pk) if by else audit.SYSTEM
    audit.append(
        workspace_id=key.workspace_id, actor=actor, event="key.made", subject_id=key.pk, name=key.name, days=days,
        agent=key.agent_id or "", member=key.member_id or "", may=may or [],
    )  # fmt: skip
    return key, secret


@transaction.atomic
def revoke(key: Key, *, by: Member) -> bool:
    """False when it was revoked before."""
    if not Key.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    audit.append(
        workspace_id=key.workspace_id, actor=audit.Actor("member", by.pk), event="key.revoked", subject_id=key.pk
    )
    return True
