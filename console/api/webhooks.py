"""Webhooks: who is told that something waits. The acts are those of the page Notices, in `approvals.notices.acts`."""

from functools import partial

from django.http import HttpRequest
from ninja import Router, Status

from approvals.notices import acts
from approvals.notices.models import Delivery, Webhook
from console.workspaces import db, permissions
from console.workspaces.errors import NotFound
from console.workspaces.keys import Caller

from . import acting, listing, schemas
from .door import caller, door

router = Router(tags=["Webhooks"])
manages = partial(door, router, keys="workspace", may=(permissions.WORKSPACE_MANAGE,))


@manages("GET", "/webhooks", answers={200: schemas.Webhooks})
async def list_webhooks(
    request: HttpRequest, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.Webhooks:
    """List the workspace's webhooks. Newest first; never an address whole, and never a secret."""
    found, more = await db.read(_list, caller(request), limit, cursor)
    return schemas.Webhooks(items=[schemas.Webhook.of(row) for row in found], next_cursor=more)


def _list(who: Caller, limit: int, cursor: str | None) -> tuple[list[Webhook], str | None]:
    return listing.page(Webhook.objects.kept().shared().filter(workspace_id=who.workspace_id), limit, cursor)


@manages("POST", "/webhooks", answers={201: schemas.WebhookMade}, fails=("conflict",), shown_once=("secret",))
async def make_webhook(request: HttpRequest, body: schemas.NewWebhook) -> Status[schemas.WebhookMade]:
    """Make a webhook. It is told that something waits, by agent, tool and count, with a link; never what would run. Its
    host has to be public unless the operator has listed its network; that is looked at whenever it is sent to."""
    return Status(201, await db.write(_make, caller(request), body))


def _make(who: Caller, body: schemas.NewWebhook) -> schemas.WebhookMade:
    hook = acts.make(kind=body.kind, target=body.target, events=body.events, by=acting.member(who))
    return schemas.WebhookMade.of(hook, secret=hook.secret)


@manages("DELETE", "/webhooks/{webhook_id}", answers={200: schemas.Done})
async def end_webhook(request: HttpRequest, webhook_id: str) -> schemas.Done:
    """End a webhook. What was not delivered to it yet is not."""
    await db.write(_end, caller(request), webhook_id)
    return schemas.Done()


def _end(who: Caller, webhook_id: str) -> None:
    acts.end(_one(who, webhook_id), by=acting.member(who))


@manages("POST", "/webhooks/{webhook_id}/test", answers={202: schemas.Delivery}, fails=("conflict",))
async def send_test(request: HttpRequest, webhook_id: str) -> Status[schemas.Delivery]:
    """Send a test. It goes the way of every notice, within seconds; its deliveries say how that went."""
    return Status(202, await db.write(_test, caller(request), webhook_id))


def _test(who: Caller, webhook_id: str) -> schemas.Delivery:
    return schemas.Delivery.of(acts.test(_one(who, webhook_id), by=acting.member(who)))


@manages("GET", "/webhooks/{webhook_id}/deliveries", answers={200: schemas.Deliveries})
async def list_deliveries(
    request: HttpRequest, webhook_id: str, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.Deliveries:
    """List what was delivered to a webhook. Newest first, with each attempt; kept for 30 days."""
    return await db.read(_deliveries, caller(request), webhook_id, limit, cursor)


def _deliveries(who: Caller, webhook_id: str, limit: int, cursor: str | None) -> schemas.Deliveries:
    rows = Delivery.objects.filter(webhook=_one(who, webhook_id)).prefetch_related("attempts")
    found, more = listing.page(rows, limit, cursor)
    return schemas.Deliveries(items=[schemas.Delivery.of(row) for row in found], next_cursor=more)


def _one(who: Caller, webhook_id: str) -> Webhook:
    found = Webhook.objects.kept().shared().filter(workspace_id=who.workspace_id).select_related("owner__user")
    if (row := found.filter(pk=webhook_id).first()) is None:
        raise NotFound("webhook", webhook_id)
    return row
