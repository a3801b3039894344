"""Metrics are for who runs the machine: counts and times, no name of anybody's, at one look a second."""

import re

import httpx
import pytest
from django.db import transaction
from django.utils import timezone

from approvals import decisions, gate
from approvals.errors import AlreadyDecided
from approvals.models import Action
from console import asgi, metrics
from console.asgi import application
from console.workspaces import db
from sandboxes import counters
from sandboxes.models import Command, Sandbox
from tests.api.conftest import the_action
from tests.approvals.proposals import pending, run

pytestmark = pytest.mark.anyio
TOKEN = "t0ken-of-the-watcher"
HOME = ("127.0.0.1", 40000)


@pytest.fixture(autouse=True)
def looked_at_anew(monkeypatch):
    door = next(app for pattern, app in asgi.ROUTES if pattern.fullmatch("metrics"))
    monkeypatch.setattr(door, "_looked_at", float("-inf"))


async def asked(path="/metrics", *, peer=HOME, method="GET", base="http://localhost:8000", **headers):
    transport = httpx.ASGITransport(app=application, client=peer)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(transport=transport, base_url=base) as client:
        return await client.request(method, path, headers=sent)


@pytest.mark.parametrize("peer", [("127.0.0.1", 1), ("127.8.8.8", 1), ("::1", 1), ("::ffff:127.0.0.1", 1)])
async def test_this_machine_is_let_in(place, peer):
    answer = await asked(peer=peer)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["cache-control"] == "no-store"
    assert "sandgate_creates_total" in answer.text


@pytest.mark.parametrize(
    ("peer", "base", "headers"),
    [
        (("192.168.1.9", 1), "http://localhost:8000", {}),
        (("8.8.8.8", 1), "http://localhost:8000", {}),
        (("::ffff:10.0.0.1", 1), "http://localhost:8000", {}),
        (("", 0), "http://localhost:8000", {}),  # a socket that has no peer
        (HOME, "http://rebound.example", {}),  # a page's own name, made to lead here
        (HOME, "http://localhost:8000", {"Origin": "http://page.example"}),
        (HOME, "http://localhost:8000", {"X_Forwarded_For": "203.0.113.9"}),  # a proxy on this machine
        (HOME, "http://localhost:8000", {"Forwarded": "for=203.0.113.9"}),
        (HOME, "http://localhost:8000", {"Via": "1.1 proxy"}),
        (("8.8.8.8", 1), "http://localhost:8000", {"Authorization": "Bearer wrong"}),
    ],
)
async def test_nobody_else_is(place, settings, peer, base, headers):
    settings.METRICS_TOKEN = TOKEN
    answer = await asked(peer=peer, base=base, **headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "SANDGATE_METRICS_TOKEN" in answer.json()["detail"]
    assert "sandgate_creates" not in answer.text


async def test_behind_a_proxy_being_local_proves_nothing(place, settings):
    settings.HTTPS = True
    assert (await asked()).status_code == 403


async def test_the_token_opens_it_from_anywhere(place, settings):
    settings.METRICS_TOKEN = TOKEN
    for peer in (("8.8.8.8", 1), HOME):
        for word in ("Bearer", "bearer"):
            answer = await asked(peer=peer, base="http://any.example", Authorization=f"{word} {TOKEN}")
            assert answer.status_code == 200
    for wrong in (f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ", "Bearer"):
        assert (await asked(peer=("8.8.8.8", 1), Authorization=wrong)).status_code == 403, wrong


async def test_without_a_token_set_an_empty_one_opens_nothing(place):
    for given in ("Bearer ", "Bearer", ""):
        assert (await asked(peer=("8.8.8.8", 1), Authorization=given)).status_code == 403


async def test_a_key_is_no_token(place):
    assert (await asked(peer=("8.8.8.8", 1), X_API_Key=place.alices)).status_code == 403


async def test_it_is_read_only(place):
    assert (await asked(method="POST")).status_code == 405
    head = await asked(method="HEAD")
    assert (head.status_code, head.content) == (200, b"")


def number(text, series):
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    assert found, f"{series} is not there"
    return float(found.group(1))


async def test_what_lives_and_waits_is_counted_from_the_table(place, ask, hub, settings):
    settings.GATED_CALL_S = 0.2
    await ask.post(f"/sandboxes/{place.sandbox.pk}/commands", {"command": "S3CR3T --now"}, key=place.scouts)
    await db.write(Command.objects.create, sandbox=place.sandbox, action_id="act_running")
    await db.write(Sandbox.objects.filter(pk=place.sandbox.pk).update, last_activity_at=timezone.now())
    text = (await asked()).text
    assert number(text, 'sandgate_sandboxes{status="running"}') == 1
    assert number(text, 'sandgate_sandboxes{status="stopped"}') == 0
    assert number(text, "sandgate_commands_running") == 1
    assert number(text, "sandgate_actions_pending") == await db.read(Action.objects.pending().count)


async def test_nothing_in_it_names_anybody(place, ask, hub, settings):
    settings.GATED_CALL_S = 0.2
    await ask.post(f"/sandboxes/{place.sandbox.pk}/commands", {"command": "echo S3CR3T"}, key=place.scouts)
    action = await the_action(sandbox_id=place.sandbox.pk)
    counters.created(how="cold", seconds=1)
    counters.reaped("idle")
    text = (await asked()).text
    named = [
        place.sandbox.pk, place.command.pk, action.pk, place.scout.pk, place.scout.name, place.scout.workspace_id,
        place.scout.workspace.name, place.alice.pk, place.alice.user.email, place.scouts, "S3CR3T", "echo",
    ]  # fmt: skip
    assert [name for name in named if name in text] == []
    labels = set(re.findall(r'[{,](\w+)="', text))
    assert labels <= {"how", "outcome", "end", "reason", "status", "of", "le", "verdict", "decided_by"}


async def test_decisions_are_counted_once_by_verdict_and_by_what_decided(place):
    series = {
        "denied": 'sandgate_decisions_total{decided_by="reviewer",verdict="denied"}',
        "expired": 'sandgate_decisions_total{decided_by="clock",verdict="expired"}',
        "seconds": 'sandgate_decision_seconds_count{verdict="denied"}',
        "at once": 'sandgate_decisions_total{decided_by="system",verdict="approved"}',
    }

    async def counted():
        text = (await asked()).text
        return {name: number(text, line) if line in text else 0 for name, line in series.items()}

    def decide():
        denied, late = pending(place.caller(place.scout)), pending(place.caller(place.scout), "echo late")
        decisions.decide(denied, "deny", by=place.bob, digest=denied.digest, reason="no")
        with pytest.raises(AlreadyDecided):
            decisions.decide(denied, "deny", by=place.alice, digest=denied.digest, reason="no")
        Action.objects.filter(pk=late.pk).update(expires_at=late.created_at)
        gate.expire()
        gate.submit(run(place.caller(place.alice, "sandboxes:run")))
        with transaction.atomic():
            rolled_back = pending(place.caller(place.scout), "echo never")
            decisions.decide(rolled_back, "deny", by=place.bob, digest=rolled_back.digest, reason="no")
            transaction.set_rollback(True)

    before = await counted()
    await db.write(decide)
    after = await counted()
    assert {name: after[name] - before[name] for name in series} == dict.fromkeys(series, 1)


async def test_without_its_database_what_was_counted_is_told_all_the_same(place, monkeypatch):
    def broken():
        raise RuntimeError("away")

    monkeypatch.setattr(metrics, "_counted", broken)
    answer = await asked()
    assert answer.status_code == 200
    assert "sandgate_actions_pending NaN" in answer.text
    assert number(answer.text, 'sandgate_creates_total{how="cold",outcome="ready"}') >= 0


async def test_who_asks_often_makes_nobody_busy(place, monkeypatch):
    looks, counted = [], metrics._counted

    def look():
        looks.append(1)
        return counted()

    monkeypatch.setattr(metrics, "_counted", look)
    monkeypatch.setattr(metrics, "LOOK_EVERY_S", 60)
    for _ in range(10):
        assert (await asked()).status_code == 200
    assert len(looks) == 1
