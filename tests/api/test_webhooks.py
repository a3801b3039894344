"""Webhooks by key: made, listed without what they keep, tried, ended; and where their log is."""

import pytest

from approvals.notices import acts, loop
from approvals.notices.models import Webhook
from console.workspaces import db, permissions

pytestmark = pytest.mark.anyio
URL = "https://hooks.example.com/services/PASSWORD"


@pytest.fixture
def managers(place):
    return place.workspace_key(place.alice, permissions.WORKSPACE_MANAGE)


async def made(ask, key, **more):
    answer = await ask.post("/webhooks", {"kind": "plain", "target": URL, **more}, key=key)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_one_is_made_and_its_secret_shown_once(ask, place, managers):
    found = await made(ask, managers, events=["flagged"])
    assert found["secret"].startswith("whsec_")
    assert (found["host"], found["events"], found["owner_id"]) == ("hooks.example.com", ["flagged"], place.alice.pk)
    listed = await ask.get("/webhooks", key=managers)
    assert [each["id"] for each in listed.json()["items"]] == [found["id"]]
    assert found["secret"] not in listed.text
    assert "PASSWORD" not in listed.text


async def test_a_repeated_call_makes_one_and_is_not_given_its_secret(ask, place, managers):
    for secret in (True, False):
        headers = {"Idempotency-Key": "k1"}
        answer = await ask.post("/webhooks", {"kind": "plain", "target": URL}, key=managers, headers=headers)
        assert answer.status_code == 201
        assert bool(answer.json()["secret"]) == secret
    assert await db.read(Webhook.objects.count) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"target": "http://example.com/"},
        {"target": "https://example.com/\r\nX: 1"},
        {"target": ""},
        {"kind": "pigeon"},
        {"kind": "email"},
        {"events": []},
        {"events": ["everything"]},
    ],
)
async def test_bad_input_is_named_and_nothing_made(ask, place, managers, body):
    answer = await ask.post("/webhooks", {"kind": "plain", "target": URL, **body}, key=managers)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation"), answer.text
    assert not await db.read(Webhook.objects.exists)


async def test_a_reviewers_own_email_is_nobodys_webhook(ask, place, managers):
    await db.write(acts.set_own_email, on=True, by=place.bob)
    own = await db.read(Webhook.objects.get)
    assert (await ask.get("/webhooks", key=managers)).json()["items"] == []
    for method, path in (("DELETE", ""), ("POST", "/test"), ("GET", "/deliveries")):
        answer = await ask(method, f"/webhooks/{own.pk}{path}", key=managers)
        assert answer.status_code == 404


async def test_a_test_goes_the_way_of_every_notice_and_its_log_says_how(ask, place, managers):
    found = await made(ask, managers, target="https://localhost:9/hook")
    began = await ask.post(f"/webhooks/{found['id']}/test", key=managers)
    assert (began.status_code, began.json()["status"], began.json()["attempts"]) == (202, "waiting", [])
    twice = await ask.post(f"/webhooks/{found['id']}/test", key=managers)
    assert (twice.status_code, twice.json()["code"]) == (409, "conflict")
    teller = loop.Teller()
    await teller.round()
    await teller.sent()
    (row,) = (await ask.get(f"/webhooks/{found['id']}/deliveries", key=managers)).json()["items"]
    assert (row["id"], row["event"], row["status"]) == (began.json()["id"], "test", "waiting")
    assert row["attempts"][0]["status"] is None
    assert "not public" in row["attempts"][0]["error"]


async def test_what_has_ended_is_gone(ask, place, managers):
    found = await made(ask, managers)
    assert (await ask("DELETE", f"/webhooks/{found['id']}", key=managers)).status_code == 200
    assert (await ask.get("/webhooks", key=managers)).json()["items"] == []
    assert (await ask("DELETE", f"/webhooks/{found['id']}", key=managers)).status_code == 404


async def test_twenty_are_enough(ask, place, managers):
    for _ in range(acts.MOST_WEBHOOKS):
        await made(ask, managers)
    answer = await ask.post("/webhooks", {"kind": "plain", "target": URL}, key=managers)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
