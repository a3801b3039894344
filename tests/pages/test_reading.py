"""Sandboxes and the audit log: for reading, within one workspace."""

from datetime import timedelta

import pytest
from django.utils import timezone

from console.pages import sandboxes
from console.workspaces import permissions
from console.workspaces.models import AuditEntry
from sandboxes import states
from sandboxes.models import Sandbox
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db


@pytest.fixture
def sandbox(cast):
    return Sandbox.objects.create(
        workspace=cast.workspace,
        agent=cast.scout,
        label="march\u202e<b>",
        status="running",
        image="sandgate/default",
        cpus=1,
        memory_mb=512,
        disk_mb=1024,
        idle_timeout_s=900,
        expires_at=timezone.now() + timedelta(hours=8),
    )


def url(cast, *parts: str) -> str:
    return "/".join([f"/w/{cast.workspace.pk}", *parts])


def test_a_sandbox_shows_what_was_asked_of_it(cast, browser, sandbox) -> None:
    action = pending(cast.caller(cast.scout), "echo of-this-one", sandbox_id=sandbox.pk)
    pending(cast.caller(cast.scout), "echo of-another")
    page = browser(cast.bob).get(url(cast, "sandboxes", sandbox.pk)).content.decode()
    assert "of-this-one" in page
    assert "of-another" not in page
    assert action.pk in page


def test_labels_are_drawn(cast, browser, sandbox) -> None:
    for parts in (("sandboxes",), ("sandboxes", sandbox.pk)):
        page = browser(cast.bob).get(url(cast, *parts)).content.decode()
        assert "\u202e" not in page
        assert "march<span" in page


@pytest.mark.parametrize("reason", states.ENDED_REASONS)
def test_an_end_is_said_in_words(cast, browser, sandbox, reason) -> None:
    Sandbox.objects.update(status="ended", ended_reason=reason, ended_at=timezone.now())
    assert sandboxes.ENDED[reason]
    for parts in (("sandboxes",), ("sandboxes", sandbox.pk)):
        assert f"ended, {sandboxes.ENDED[reason]}" in browser(cast.bob).get(url(cast, *parts)).content.decode()


def test_sandboxes_of_others_and_deleted_ones_are_not_there(cast, browser, sandbox) -> None:
    assert browser(cast.mallory).get(url(cast, "sandboxes", sandbox.pk)).status_code == 404
    own = url(cast, "sandboxes", sandbox.pk).replace(cast.workspace.pk, cast.elsewhere.pk)
    assert browser(cast.mallory).get(own).status_code == 404
    Sandbox.objects.update(deleted_at=timezone.now())
    assert browser(cast.bob).get(url(cast, "sandboxes", sandbox.pk)).status_code == 404


@pytest.mark.parametrize(
    ("page", "permission"), [("sandboxes", permissions.SANDBOXES_READ), ("audit", permissions.AUDIT_READ)]
)
def test_each_needs_its_permission(cast, browser, page, permission) -> None:
    assert browser(cast.bob).get(url(cast, page)).status_code == 200
    cast.bob.permissions.filter(name=permission).delete()
    refused = browser(cast.bob).get(url(cast, page))
    assert refused.status_code == 403
    assert permission in refused.content.decode()
    assert browser(cast.bob).post(url(cast, page)).status_code == 405


def test_the_audit_log_shows_rows_and_finds_them(cast, browser) -> None:
    action = pending(cast.caller(cast.scout), conversation="c")
    client = browser(cast.bob)
    assert action.pk in client.get(url(cast, "audit")).content.decode()
    found = client.get(url(cast, "audit"), {"q": action.pk}).content.decode()
    assert "action pending" in found
    assert "member added" not in found
    assert "No rows match" in client.get(url(cast, "audit"), {"q": "nothing-like-it"}).content.decode()
    for odd in ("x", "-1", "9" * 40, "²"):
        assert client.get(url(cast, "audit"), {"before": odd}).status_code == 200


def test_the_chain_is_checked_on_request(cast, browser) -> None:
    client = browser(cast.bob)
    assert "Chain holds" in client.get(url(cast, "audit"), {"check": "1"}).content.decode()
    AuditEntry.objects.filter(workspace=cast.workspace, seq=2).update(event="forged")
    assert "Row 2 is not what was written" in client.get(url(cast, "audit"), {"check": "1"}).content.decode()


def test_mallory_sees_only_her_own_rows(cast, browser) -> None:
    action = pending(cast.caller(cast.scout))
    assert browser(cast.mallory).get(url(cast, "audit")).status_code == 404
    assert action.pk not in browser(cast.mallory).get(f"/w/{cast.elsewhere.pk}/audit").content.decode()


def test_only_who_may_run_sandboxes_can_delete_one_by_hand(cast, browser, sandbox) -> None:
    gone = url(cast, "sandboxes", sandbox.pk, "delete")
    assert "Delete…" not in browser(cast.bob).get(url(cast, "sandboxes", sandbox.pk)).content.decode()
    assert browser(cast.bob).post(gone).status_code == 403
    assert browser(cast.mallory).post(gone).status_code == 404
    assert browser().post(gone).status_code == 302
    assert browser(cast.alice).get(gone).status_code == 405
    sandbox.refresh_from_db()
    assert sandbox.is_live


@pytest.mark.django_db(transaction=True)  # the act reads on a thread of its own
def test_what_keeps_a_sandbox_from_being_deleted_is_said_on_its_page(cast, browser, sandbox) -> None:
    """No host runs in this process."""
    alice = browser(cast.alice)
    assert "Delete…" in alice.get(url(cast, "sandboxes", sandbox.pk)).content.decode()
    answer = alice.post(url(cast, "sandboxes", sandbox.pk, "delete"), follow=True)
    assert answer.redirect_chain[-1][0] == url(cast, "sandboxes", sandbox.pk)
    assert "no sandbox host" in answer.content.decode()


def test_what_runs_is_on_the_page_with_its_stop_for_who_may(cast, browser, sandbox) -> None:
    action = pending(cast.caller(cast.scout), "sleep 1234", sandbox_id=sandbox.pk)
    command = sandbox.commands.create(action_id=action.pk, background=True)
    ended = pending(cast.caller(cast.scout), "sleep 4321", sandbox_id=sandbox.pk)
    sandbox.commands.create(action_id=ended.pk, status="exited", ended_at=timezone.now())
    stop = url(cast, "sandboxes", sandbox.pk, "commands", command.pk, "stop")
    page = browser(cast.alice).get(url(cast, "sandboxes", sandbox.pk)).content.decode()
    processes = page.split("Processes", 1)[1].split("What was asked", 1)[0]
    assert "sleep 1234" in processes
    assert f'action="{stop}"' in processes
    assert "sleep 4321" not in processes
    assert stop not in browser(cast.bob).get(url(cast, "sandboxes", sandbox.pk)).content.decode()
    assert browser(cast.bob).post(stop).status_code == 403
    assert browser(cast.mallory).post(stop).status_code == 404


def test_a_jailed_network_is_said_with_its_exceptions(cast, browser, sandbox) -> None:
    Sandbox.objects.update(network="public")
    cast.scout.network_exceptions.create(address="10.9.0.2", protocol="tcp", port=443)
    cast.scout.network_exceptions.create(address="10.9.0.3", protocol="tcp", port=443, ended_at=timezone.now())
    page = browser(cast.bob).get(url(cast, "sandboxes", sandbox.pk)).content.decode()
    assert "public, jailed, 1 exception" in page
