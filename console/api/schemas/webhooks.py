"""Webhooks and what was delivered to them. Of an address only its host is told: chats keep passwords in it."""

from typing import Annotated, Literal, Self

from pydantic import Field

from approvals.notices import models as rows

from .shared import Answer, Body, OneLine, Time, shown

WebhookKind = Literal["plain", "slack", "teams", "ntfy", "email"]
WebhookEvent = Literal["waiting", "flagged", "expiring", "escalated"]
ALL: list[WebhookEvent] = ["waiting", "flagged", "expiring", "escalated"]


class NewWebhook(Body):
    model_config = shown(kind="plain", target="https://example.com/hooks/sandgate")
    kind: WebhookKind
    target: OneLine = Field(
        min_length=1,
        max_length=500,
        description="An https address, of `ntfy` that of a topic; or an email's.",
    )
    events: Annotated[list[WebhookEvent], Field(min_length=1, max_length=4)] = Field(
        default_factory=ALL.copy, description="What it is told of; all when left out."
    )


class Webhook(Answer):
    id: str
    kind: WebhookKind
    host: str = Field(description="Of an email the address.")
    events: list[WebhookEvent]
    enabled: bool
    owner_id: str
    made_at: Time

    @classmethod
    def of(cls, row: rows.Webhook, **more: str) -> Self:
        plain = {name: getattr(row, name) for name in ("kind", "events", "enabled", "owner_id", "made_at")}
        return cls.model_validate({**plain, "id": row.pk, "host": row.shown, **more})


class WebhookMade(Webhook):
    secret: str = Field(description="What deliveries of `plain` are signed with. Shown once.")


class Webhooks(Answer):
    items: list[Webhook]
    next_cursor: str | None


class Attempt(Answer):
    at: Time
    took_ms: int
    status: int | None = Field(description="Null: nothing was answered.")
    error: str


class Delivery(Answer):
    id: str
    event: Literal["waiting", "flagged", "expiring", "escalated", "test"]
    status: Literal["waiting", "delivered", "failed", "moot"] = Field(description="`moot`: decided before it was sent.")
    created_at: Time
    attempts: list[Attempt]

    @classmethod
    def of(cls, row: rows.Delivery) -> Self:
        tries = [
            {name: getattr(each, name) for name in ("at", "took_ms", "status", "error")} for each in row.attempts.all()
        ]
        plain = {name: getattr(row, name) for name in ("event", "status", "created_at")}
        return cls.model_validate({**plain, "id": row.pk, "attempts": tries})


class Deliveries(Answer):
    items: list[Delivery]
    next_cursor: str | None
