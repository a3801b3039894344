"""Delivering what is written down: claimed, sent, recorded. At least once, and with its id, so that twice is known.

A claim is a time: whoever dies in the middle leaves a row that is due again. Must never keep what was sent or answered,
and never send on a database thread: others wait for those.
"""

import hashlib
import hmac
import smtplib
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic, time
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import get_random_string

from console.workspaces import webhooks

from . import presets, wording
from .models import Attempt, Delivery, Webhook
from .wording import Notice

AGAIN_AFTER_S = (10, 60, 600, 3600)
MOST_TRIES = len(AGAIN_AFTER_S) + 1
CLAIM = timedelta(seconds=60)  # longer than the longest try


@dataclass(frozen=True)
class Claimed:
    """All that a try needs, so that it asks no database."""

    delivery_id: str
    kind: str
    target: str
    secret: str
    notice: Notice


@dataclass(frozen=True)
class Outcome:
    took_ms: int
    status: int | None = None
    error: str = ""


def due(limit: int = 50) -> list[str]:
    rows = Delivery.objects.filter(status="waiting", next_at__lte=timezone.now()).order_by("next_at")
    return list(rows.values_list("pk", flat=True)[:limit])


@transaction.atomic
def claim(delivery_id: str) -> Claimed | None:
    """None when there is nothing to send: it is somebody else's, or nobody needs it any more."""
    now = timezone.now()
    rows = Delivery.objects.filter(pk=delivery_id, status="waiting", next_at__lte=now)
    if not rows.update(next_at=now + CLAIM, tries=F("tries") + 1):
        return None
    hooks = "webhook__workspace", "webhook__member__user"
    delivery = Delivery.objects.select_related(*hooks).get(pk=delivery_id)
    hook = delivery.webhook
    said = wording.notice(delivery) if Webhook.objects.in_force().filter(pk=hook.pk).exists() else None
    if said is None:
        _end(delivery_id, "moot")
        delivery.told.filter(action__status="pending").delete()  # news again for who hears it later
        return None
    if delivery.tries > MOST_TRIES:
        _end(delivery_id, "failed")
        return None
    return Claimed(delivery_id, hook.kind, hook.address, hook.secret, said)


def attempt(claimed: Claimed) -> Outcome:
    """Blocks for as long as a network takes."""
    began = monotonic()
    found: dict[str, Any]
    try:
        found = _mail(claimed) if claimed.kind == "email" else {"status": _post(claimed)}
    except webhooks.WebhookFailed as failed:
        found = {"status": failed.status, "error": str(failed)[:300]}
    except (OSError, ValueError, smtplib.SMTPException) as failed:  # of a mail server, whose words may quote the mail
        found = {"error": f"The mail server did not take it ({type(failed).__name__})."}
    return Outcome(took_ms=round((monotonic() - began) * 1000), **found)


@transaction.atomic
def record(delivery_id: str, outcome: Outcome) -> None:
    Attempt.objects.create(
        delivery_id=delivery_id, took_ms=outcome.took_ms, status=outcome.status, error=outcome.error
    )  # fmt: skip
    tries = Delivery.objects.values_list("tries", flat=True).get(pk=delivery_id)
    if not outcome.error:
        _end(delivery_id, "delivered")
    elif tries >= MOST_TRIES:
        _end(delivery_id, "failed")
    else:
        again = timedelta(seconds=AGAIN_AFTER_S[tries - 1] / settings.TIMER_DIVISOR)
        Delivery.objects.filter(pk=delivery_id, status="waiting").update(next_at=timezone.now() + again)


def signed(secret: str, content: bytes, *, delivery_id: str) -> dict[str, str]:
    """Headers. The signature is of `timestamp.nonce.body`; the nonce is of this try alone."""
    at, nonce = str(int(time())), get_random_string(32)
    signature = hmac.new(secret.encode(), b".".join((at.encode(), nonce.encode(), content)), hashlib.sha256)
    return {
        "X-Sandgate-Delivery": delivery_id,
        "X-Sandgate-Timestamp": at,
        "X-Sandgate-Nonce": nonce,
        "X-Sandgate-Signature": f"v1={signature.hexdigest()}",
    }


def _end(delivery_id: str, status: str) -> None:
    Delivery.objects.filter(pk=delivery_id, status="waiting").update(status=status, ended_at=timezone.now())


def _post(claimed: Claimed) -> int:
    url, content = presets.shaped(claimed.kind, claimed.target, claimed.notice)
    headers = signed(claimed.secret, content, delivery_id=claimed.delivery_id) if claimed.kind == "plain" else {}
    return webhooks.deliver(url, content, headers=headers)


def _mail(claimed: Claimed) -> dict[str, Any]:
    """A mail server's answer has no status."""
    notice = claimed.notice
    text = "\n".join([*notice.lines, "", notice.link, ""])
    send_mail(f"Sandgate: {notice.title}", text, None, [claimed.target])
    return {}
