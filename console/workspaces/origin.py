"""Where an act came from: which address, and how whoever did it was signed in. Set by doors, read by the audit chain.

Follows the context of a call, also onto database threads and the hub. Is told only of an act whose actor is the one
that came through the door: what the system does because of a call is the system's. Must never hold a session's key or
a secret.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """`holders`: ids of whoever may act by this: a key, its agent or member, or a person's memberships."""

    holders: frozenset[str]
    address: str
    by: str  # password, key
    key: str = ""
    session: str = ""  # begins the hash of a session's key: tells two apart, and opens none
    signed_in_at: str = ""

    def said(self) -> dict[str, str]:
        named = ("address", "by", "key", "session", "signed_in_at")
        return {name: getattr(self, name) for name in named if getattr(self, name)}


_now: ContextVar[Origin | None] = ContextVar("origin", default=None)


@contextmanager
def given(origin: Origin) -> Iterator[None]:
    token = _now.set(origin)
    try:
        yield
    finally:
        _now.reset(token)


def of(actor_id: str) -> dict[str, str]:
    """What is to be recorded of where that actor's act came from; nothing when it is not known."""
    origin = _now.get()
    return origin.said() if origin and actor_id in origin.holders else {}
