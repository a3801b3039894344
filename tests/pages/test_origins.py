"""Who did it, signed in how, from where: in every row that somebody made by coming through a door, in no other's."""

import json

import pytest
from django.urls import reverse

from approvals import gate, payloads
from approvals.models import Action
from console.workspaces import audit
from console.workspaces.models import AuditEntry
from sandboxes.models import Command, Sandbox
from tests.approvals.proposals import pending, run
from tests.people import PASSWORD


def last(event):
    return AuditEntry.objects.filter(event=event).order_by("-seq").first()


def test_a_page_s_act_says_the_session_since_when_and_the_address(cast, client):
    client.post("/sign-in", {"email": cast.bob.user.email, "password": PASSWORD}, REMOTE_ADDR="192.0.2.7")
    entered = last("member.signed_in")
    assert (entered.actor_id, entered.subject_id) == (cast.bob.pk, cast.bob.pk)
    came = entered.data["origin"]
    assert (came["address"], came["by"]) == ("192.0.2.7", "password")
    action = pending(cast.caller(cast.scout))
    client.post(
        reverse("decide", args=[cast.workspace.pk, action.pk]),
        {"verdict": "deny", "digest": action.digest, "reason": "no"},
        REMOTE_ADDR="192.0.2.8",
    )
    denied = last("action.denied")
    assert denied.data["digest"] == action.digest
    assert denied.data["origin"] == {**came, "address": "192.0.2.8"}
    assert client.session.session_key not in json.dumps([row.data for row in AuditEntry.objects.all()])
    client.post("/sign-out")
    assert last("member.signed_out").data["origin"]["session"] == came["session"]


def test_whom_a_proxy_names_counts_only_where_there_is_one(cast, client, settings):
    for https, address in ((False, "192.0.2.1"), (True, "2001:db8::9")):
        settings.HTTPS = https
        client.post(
            "/sign-in",
            {"email": cast.bob.user.email, "password": PASSWORD},
            REMOTE_ADDR="192.0.2.1",
            headers={"X-Forwarded-For": "6.6.6.6, 2001:DB8::9"},
        )
        assert last("member.signed_in").data["origin"]["address"] == address
        client.post("/sign-out")


def test_what_the_system_does_because_of_a_call_is_not_the_callers(cast):
    from console.workspaces import origin

    came = origin.Origin(frozenset({cast.bob.pk}), "192.0.2.7", by="password")
    with origin.given(came):
        audit.append(workspace_id=cast.workspace.pk, actor=audit.SYSTEM, event="x")
        audit.append(workspace_id=cast.workspace.pk, actor=audit.Actor("member", cast.alice.pk), event="x")
        assert all("origin" not in row.data for row in AuditEntry.objects.filter(event="x"))
        audit.append(workspace_id=cast.workspace.pk, actor=audit.Actor("member", cast.bob.pk), event="x")
    assert last("x").data["origin"] == {"address": "192.0.2.7", "by": "password"}


@pytest.fixture
def ended(cast, settings):
    """A command that ran, with a long text and some output."""
    caller = cast.caller(cast.alice, "sandboxes:run")
    text = payloads.keep(payloads.hold(b"echo " + b"x" * 5000))
    passed = gate.submit(run(caller, arguments={"command": text, "cwd": "/work"}))
    sandbox = Sandbox.objects.create(
        workspace=cast.workspace, image="default", cpus=1, memory_mb=512, disk_mb=64, idle_timeout_s=60,
        expires_at=cast.workspace.created_at, status="running",
    )  # fmt: skip
    Command.objects.create(sandbox=sandbox, action_id=passed.action_id, status="exited", exit_code=0)
    return Action.objects.get(pk=passed.action_id)


@pytest.mark.parametrize(
    ("page", "more", "event"), [("raw", (), "payload.downloaded"), ("output", ("stdout",), "output.downloaded")]
)
def test_what_people_download_is_on_record_and_what_they_may_not_is_not(cast, browser, ended, page, more, event):
    where = reverse(page, args=[cast.workspace.pk, ended.pk, *more])
    assert browser(cast.mallory).get(where).status_code == 404
    assert browser(cast.bob).head(where).status_code == 200
    assert last(event) is None
    assert browser(cast.bob).get(where).status_code == 200
    row = last(event)
    assert (row.actor_id, row.subject_id) == (cast.bob.pk, ended.pk)
    assert row.data["origin"]["address"] == "127.0.0.1"
    assert list(audit.broken_links(cast.workspace)) == []


def read(caller, path):
    gate.submit(run(caller, tool="read", kind="read", arguments={"path": path}))
    return last("file.read")


def test_reads_of_files_by_people_and_of_protected_paths_are_links_and_others_are_not(cast):
    agent = cast.caller(cast.scout)
    assert read(agent, "/work/a.txt") is None
    assert read(agent, "/work/.env").data["path"] == "/work/.env"
    row = read(cast.caller(cast.alice, "sandboxes:run"), "/work/a.txt")
    assert (row.actor, row.data["path"], row.subject_id) == ("key", "/work/a.txt", "sbx_1")
    cast.scout.protected_more = ["*.secret"]
    cast.scout.save()
    assert read(agent, "/work/b.secret").data["path"] == "/work/b.secret"
