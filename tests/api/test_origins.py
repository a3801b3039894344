"""Rows of calls by key name the key and the address, whichever thread or loop wrote them."""

import pytest

from console.workspaces import db
from console.workspaces.models import AuditEntry, Key

pytestmark = pytest.mark.anyio


def row(event):
    return AuditEntry.objects.filter(event=event).order_by("-seq").first()


async def test_an_agents_proposal_names_its_key_and_not_the_system_s_rows(place, ask, hub, settings):
    settings.GATED_CALL_S = 0.2
    await ask.post(f"/sandboxes/{place.sandbox.pk}/commands", {"command": "echo"}, key=place.scouts)
    found = await db.read(row, "action.pending")
    key = await db.read(Key.objects.filter(agent=place.scout).order_by("-created_at").first)
    assert found.data["origin"] == {"address": "127.0.0.1", "by": "key", "key": key.pk}
    await ask.post(f"/actions/{found.subject_id}/cancel", key=place.scouts)
    assert (await db.read(row, "action.cancelled")).data["origin"]["key"] == key.pk


async def test_a_proxy_is_believed_in_what_it_says_last(ask, place, settings):
    settings.HTTPS = True
    forged = [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-For", "198.51.100.7")]
    headers = [("X-API-Key", place.alices), ("X-Forwarded-Proto", "https"), *forged]
    made = await ask.client.request("POST", "/v1/agents", headers=headers, json={"name": "third"})
    assert made.status_code == 201, made.text
    assert (await db.read(row, "agent.made")).data["origin"]["address"] == "198.51.100.7"


async def test_a_members_act_by_key_is_the_members_by_that_key(place, ask):
    made = await ask.post("/agents", {"name": "third"}, key=place.alices)
    assert made.status_code == 201
    found = await db.read(row, "agent.made")
    assert (found.actor, found.actor_id) == ("member", place.alice.pk)
    assert found.data["origin"]["by"] == "key"
    assert found.data["origin"]["key"].startswith("key_")
