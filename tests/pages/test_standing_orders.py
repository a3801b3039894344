"""What holds on every page of a reviewer: nothing is cut, nothing decides by being late, closed or lost."""

import asyncio
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals.models import Action
from console.workspaces import db
from lib.place import CHECKOUT
from tests.approvals.proposals import pending
from tests.pages.test_queue import form_of, queue_url
from tests.pages.test_sockets import opened

CUTS = re.compile(r"text-overflow\s*:|line-clamp|-webkit-box-orient")


def test_the_sheet_cuts_nothing_short() -> None:
    sheet = (CHECKOUT / "console/static/sandgate.css").read_text()
    assert CUTS.findall(sheet) == []
    assert CUTS.search("a { text-overflow: ellipsis }")


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_a_click_a_second_late_runs_nothing_and_says_so(cast, browser, verdict) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    Action.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    sent = {**form, "verdict": verdict, "reason": "late"}
    answer = client.post(queue_url(cast, action.pk, "decide"), sent)
    assert answer.status_code == 409
    assert "expired" in answer.content.decode()
    assert "was not run" in answer.content.decode()
    assert Action.objects.get().decisions.count() == 0
    assert Action.objects.get().started_at is None


def test_closing_every_socket_leaves_what_waits_waiting(committed_cast, browser) -> None:
    cast = committed_cast
    action, clients = pending(cast.caller(cast.scout)), [browser(cast.alice), browser(cast.bob)]

    async def story() -> None:
        for client in clients:
            async with opened(client, cast.workspace) as socket:
                await socket.receive_json_from(timeout=10)

    asyncio.run(story())
    db.close()
    assert Action.objects.get(pk=action.pk).status == "pending"
