"""Sandboxes on pages: told apart, and what is said of those that are gone."""

import html

import pytest
from django.utils import timezone

from console.workspaces import audit
from console.workspaces.models import AuditEntry
from sandboxes import lifecycle
from sandboxes.boxes import STOPPED
from sandboxes.models import Sandbox
from tests.api.conftest import make_sandbox
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db


def at(cast, *parts: str) -> str:
    return "/".join([f"/w/{cast.workspace.pk}", *parts])


def test_equal_labels_are_told_apart_by_id_and_image(cast, browser) -> None:
    first, second = make_sandbox(cast.scout), make_sandbox(cast.scout)
    Sandbox.objects.update(label="nightly", image="default")
    Sandbox.objects.filter(pk=second.pk).update(image="team/tools:2")
    page = browser(cast.alice).get(at(cast, "sandboxes")).content.decode()
    for sandbox in (first, second):
        assert f'<code class="soft">{sandbox.pk}</code>' in page
    assert page.count("image ") == page.count("image team/tools:2") == 1


def test_the_card_of_a_deleted_sandbox_names_it_without_a_link(cast, browser) -> None:
    sandbox = make_sandbox(cast.scout)
    card = at(cast, "queue", pending(cast.caller(cast.scout), sandbox_id=sandbox.pk).pk)
    client, link = browser(cast.alice), f'href="{at(cast, "sandboxes", sandbox.pk)}"'
    assert link in client.get(card).content.decode()
    Sandbox.objects.filter(pk=sandbox.pk).update(
        status="ended", ended_reason="deleted", ended_at=timezone.now(), deleted_at=timezone.now()
    )
    page = client.get(card).content.decode()
    assert link not in page
    assert ", deleted</span>" in page


@pytest.mark.parametrize(("because", "said"), [(STOPPED, "the console was stopped"), ("", "host lost")])
def test_an_end_by_a_stop_in_order_is_told_from_a_lost_host(cast, browser, because, said) -> None:
    sandbox = make_sandbox(cast.scout)
    assert lifecycle.end(sandbox, "host_lost", because=because)
    assert Sandbox.objects.get(pk=sandbox.pk).ended_reason == "host_lost"
    row = AuditEntry.objects.get(event="sandbox.ended", subject_id=sandbox.pk)
    assert row.data == {"reason": "host_lost"} | ({"because": because} if because else {})
    for page in (at(cast, "sandboxes"), at(cast, "sandboxes", sandbox.pk)):
        assert f"ended, {said}</span>" in browser(cast.alice).get(page).content.decode()


def test_programs_of_a_long_command_never_pass_for_the_command(cast, browser) -> None:
    sandbox = make_sandbox(cast.scout)
    pending(cast.caller(cast.scout), "set -e\nmake\n", sandbox_id=sandbox.pk)
    page = browser(cast.alice).get(at(cast, "sandboxes", sandbox.pk)).content.decode()
    assert "run a command with <code>set, make</code>, 2 lines, 12 bytes" in page


def test_the_audit_log_says_structures_in_words(cast, browser) -> None:
    exemption = {"path": "/work/.env", "expires_at": "2030-01-01T00:00:00+00:00", "reason": "to rotate it"}
    audit.append(
        workspace_id=cast.workspace.pk, actor=audit.SYSTEM, event="agent.tools_changed", subject_id=cast.scout.pk,
        before={"protected_exempt": [], "persistent_allowed": False, "limits": {}},
        after={
            "protected_exempt": [{**exemption, "by": cast.alice.pk}], "persistent_allowed": True,
            "limits": {"memory_mb": {"value": 512, "most": None}},
        },
    )  # fmt: skip
    page = html.unescape(browser(cast.alice).get(at(cast, "audit")).content.decode())
    for said in (
        "protected exempt /work/.env (by Alice, expires at 2030-01-01 00:00 UTC, reason to rotate it)",
        "limits none, persistent allowed no, protected exempt none",
        "limits (memory mb (value 512)), persistent allowed yes",
    ):
        assert said in page
    assert "{'" not in page
    assert "[{" not in page


def test_the_audit_log_finds_what_a_row_holds(cast, browser) -> None:
    for address in ("10.20.4.15", "10.9.9.9"):
        audit.append(
            workspace_id=cast.workspace.pk, actor=audit.SYSTEM, event="agent.network_exception_made",
            subject_id=cast.scout.pk, address=address,
        )  # fmt: skip
    page = browser(cast.alice).get(at(cast, "audit") + "?q=10.20.4").content.decode()
    assert "10.20.4.15" in page
    assert "10.9.9.9" not in page


def test_what_changes_by_itself_is_a_part_of_its_page_and_hidden_from_others_as_that_is(cast, browser) -> None:
    sandbox = make_sandbox(cast.scout)
    page = at(cast, "sandboxes", sandbox.pk)
    whole, part = (browser(cast.alice).get(page + query).content.decode() for query in ("", "?part=live"))
    assert part.startswith('<div id="sandbox-live"')
    assert f'data-live="{page}?part=live"' in whole
    assert "<html" not in part
    assert "running" in part
    Sandbox.objects.filter(pk=sandbox.pk).update(status="ended", ended_reason="oom", ended_at=timezone.now())
    assert "out of memory" in browser(cast.alice).get(page + "?part=live").content.decode()
    assert browser(cast.mallory).get(page + "?part=live").status_code == 404
