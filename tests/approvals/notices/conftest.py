"""People who want to be told, on a real HTTPS endpoint and in a mail box in memory."""

from typing import Any

import pytest
from django.core import mail

from approvals.notices import acts, loop
from approvals.notices.models import Webhook
from console.workspaces import db
from tests.https import Endpoint, serving


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def endpoint(tmp_path, settings, monkeypatch):
    """Reached as an operator would allow it: its network listed, its certificate among those trusted."""
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8", "::1/128"]
    settings.SITE = "https://console.test"
    with serving(tmp_path) as served:
        monkeypatch.setenv("SSL_CERT_FILE", str(served.certificate))
        yield served


@pytest.fixture
def mailbox(settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.SITE = "https://console.test"
    mail.outbox = []
    return mail.outbox


def hook_at(endpoint: Endpoint, by: Any, kind: str = "plain", **more: Any) -> Webhook:
    return acts.make(kind=kind, target=endpoint.url, by=by, **more)


async def told() -> None:
    """One round, and all that it begins, to its end."""
    teller = loop.Teller()
    await teller.round()
    await teller.sent()


async def write(act: Any, *args: Any, **more: Any) -> Any:
    return await db.write(act, *args, **more)
