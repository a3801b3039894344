"""Heads of the chains, sent to where nobody who can write this database can write: a file, syslog, mail, a webhook.

Owns when what goes where, and how that went. A place is sent the heads that changed since it last took some. Must never
keep a try that failed to itself: the page and doctor show it. Sending blocks, and is done on no database thread.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.core.mail import send_mail
from django.utils import timezone

from . import audit, db, webhooks
from .chain import Head
from .models import HeadPlace

AUDIT_INFO = 13 << 3 | 6  # syslog's facility and severity
SEND_S = 5


def to_file(where: str, heads: Iterable[Head]) -> None:
    """Appended whole: what stands there already is never touched."""
    path = Path(where)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w") as out:
        out.write("".join(f"{head.line()}\n" for head in heads))
        out.flush()
        os.fsync(out.fileno())


def to_syslog(where: str, heads: Iterable[Head]) -> None:
    """`/dev/log` or another socket of this machine; else `host:port` by UDP, of which nobody learns whether it came."""
    host, _, port = where.rpartition(":")
    local = where.startswith("/")
    family, address = (
        (socket.AF_UNIX, where)
        if local
        else socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0][0::4]
    )
    with socket.socket(family, socket.SOCK_DGRAM) as out:
        out.settimeout(SEND_S)
        out.connect(address)
        for head in heads:
            out.send(f"<{AUDIT_INFO}>sandgate: {head.line()}".encode())


def to_mail(where: str, heads: Iterable[Head]) -> None:
    text = "".join(f"{head.line()}\n" for head in heads)
    about = "Keep these lines: `manage.py audit verify --head FILE` proves by them that nothing before was changed."
    send_mail("Sandgate: heads of the audit log", f"{about}\n\n{text}", None, [to.strip() for to in where.split(",")])


def to_webhook(where: str, heads: Iterable[Head]) -> None:
    webhooks.post(where, {"heads": [head.line() for head in heads]})


SENDERS: dict[str, Callable[[str, Iterable[Head]], None]] = {
    "file": to_file, "syslog": to_syslog, "mail": to_mail, "webhook": to_webhook,
}  # fmt: skip
WAYS = {"file": "to the file", "syslog": "to syslog", "mail": "by mail", "webhook": "to the webhook"}


async def send() -> None:
    """To every place that is set, what it has not got yet."""
    heads = await db.read(audit.heads)
    for place, where in configured().items():
        got = await db.read(_got, place)
        if fresh := [head for head in heads if got.get(head.workspace_id) != head.seq]:
            error = await asyncio.to_thread(_try, SENDERS[place], where, fresh)
            await db.write(_record, place, fresh, error)


def configured() -> dict[str, str]:
    return {place: where for place, where in settings.AUDIT_HEADS.items() if where}


def _got(place: str) -> dict[str, int]:
    found = HeadPlace.objects.filter(place=place).values_list("sent", flat=True).first()
    return dict(found or {})


def _try(sender: Callable[[str, Iterable[Head]], None], where: str, heads: list[Head]) -> str:
    """Why it failed, or nothing. Whatever a network, a disk or a mail server does is told, and tried again."""
    try:
        sender(where, heads)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:500]
    return ""


def _record(place: str, heads: list[Head], error: str) -> None:
    row, _ = HeadPlace.objects.get_or_create(place=place)
    row.tried_at, row.error = timezone.now(), error
    if not error:
        row.sent_at = row.tried_at
        row.sent = {**row.sent, **{head.workspace_id: head.seq for head in heads}}
    row.save()


@dataclass(frozen=True)
class Standing:
    """How it stands with one place."""

    place: str
    sent_at: datetime | None
    tried_at: datetime | None
    error: str

    @property
    def said(self) -> str:
        if self.error:
            since = (
                f"the last that arrived is of {self.sent_at:%Y-%m-%d %H:%M} UTC" if self.sent_at else "none arrived yet"
            )
            return f"Heads could not be sent {WAYS[self.place]} ({self.error}); {since}."
        if self.sent_at is None:
            return f"Nothing was sent {WAYS[self.place]} yet; the console does within an hour."
        return f"Heads were last sent {WAYS[self.place]} at {self.sent_at:%Y-%m-%d %H:%M} UTC."


def standing() -> list[Standing]:
    rows = HeadPlace.objects.in_bulk(list(configured()))
    found = [(place, rows.get(place, HeadPlace(place=place))) for place in configured()]
    return [Standing(place, row.sent_at, row.tried_at, row.error) for place, row in found]
