"""Calls that act once however often they come: what a key's call under an Idempotency-Key was answered, for 24 h.

Plain ORM code for `db.write`. Begun before the act and ended after it, so that a call whose end is lost (the server
died in between) is never done again. It must never be given what is shown only once.
"""

import hashlib
import json
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from .errors import IdempotencyMismatch, OutcomeUnknown
from .models import KeptAnswer

KEPT_FOR = timedelta(hours=24)


def fingerprint(*parts: Any) -> str:
    """One hash of JSON values; equal for equal ones only, whatever the order of names in them."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@transaction.atomic
def begin(key_id: str, scope: str, body: str) -> KeptAnswer | None:
    """The answer given before. None: there is none, so this caller acts, and then calls `end` or `forget`."""
    KeptAnswer.objects.filter(created_at__lte=timezone.now() - KEPT_FOR).delete()
    row, made = KeptAnswer.objects.get_or_create(key_id=key_id, scope=scope, defaults={"body": body})
    if made:
        return None
    if row.body != body:
        raise IdempotencyMismatch(
            "This Idempotency-Key came with another body before, to the same address. Send a new one with a new body."
        )
    if row.status is None:
        raise OutcomeUnknown(
            "A call with this Idempotency-Key began, and its end is not known; it may have been done. Look whether it "
            "was, then send a new Idempotency-Key."
        )
    return row


def end(key_id: str, scope: str, *, status: int, answer: dict[str, Any]) -> None:
    KeptAnswer.objects.filter(key_id=key_id, scope=scope).update(status=status, answer=answer)


def forget(key_id: str, scope: str) -> None:
    """Nothing was done: the same call may try again."""
    KeptAnswer.objects.filter(key_id=key_id, scope=scope, status=None).delete()
