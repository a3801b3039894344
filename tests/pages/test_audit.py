"""The audit page: what is asked shows, stays in the form and goes into exports; nobody else sees it."""

import json

import pytest
from django.urls import reverse
from django.utils import timezone

from console.workspaces import audit
from console.workspaces.models import AuditEntry, HeadPlace


@pytest.fixture
def rows(committed_cast):
    cast = committed_cast
    for number in range(3):
        audit.append(
            workspace_id=cast.workspace.pk, actor=audit.Actor("member", cast.bob.pk), event="probe.one",
            subject_id=f"act_{number}", text="<b>=1‮", number=number,
        )  # fmt: skip
    audit.append(workspace_id=cast.workspace.pk, actor=audit.CLOCK, event="probe.two", subject_id="act_9")
    return cast


def url(cast, query=""):
    return reverse("audit", args=[cast.workspace.pk]) + query


def shown(browser, cast, query, status=200):
    answer = browser(cast.bob).get(url(cast, query))
    assert answer.status_code == status
    return answer.content.decode()


def test_filters_find_and_stay_in_the_form_and_in_the_links(rows, browser):
    page = shown(browser, rows, "?event=probe.two&actor=clock&from=2020-01-01")
    assert "act_9" in page
    assert "act_0" not in page
    assert '<option value="probe.two" selected>' in page
    assert '<option value="clock" selected>' in page
    assert "export.csv?event=probe.two&amp;actor=clock&amp;from=2020-01-01" in page
    assert "No rows match" in shown(browser, rows, "?event=probe.&to=2020-01-01")
    today = timezone.now().date()
    assert "act_9" in shown(browser, rows, f"?event=probe.&from={today}&to={today}")


def test_a_day_that_is_none_is_said_and_shows_no_rows(rows, browser):
    page = shown(browser, rows, "?from=yesterday", status=400)
    assert "`yesterday` is no day" in page
    assert "act_0" not in page
    answer = browser(rows.bob).get(url(rows, "/export.csv?from=yesterday"))
    assert answer.status_code == 302


@pytest.mark.parametrize("query", ["?q=<script>x", "?before=99999999999999999999999", "?agent=agt_x'--"])
def test_whatever_is_asked_is_drawn_and_harms_nothing(rows, browser, query):
    assert "<script>x" not in shown(browser, rows, query)


def test_how_and_from_where_stands_under_who(rows, browser):
    browser(rows.bob).get(url(rows, "/export.jsonl"))
    page = shown(browser, rows, "?event=audit.exported")
    assert "browser, 127.0.0.1" in page
    assert "<b>=1" not in shown(browser, rows, "?event=probe.one")


def test_an_export_is_what_the_page_asks_and_is_on_record(rows, browser):
    answer = browser(rows.bob).get(url(rows, "/export.jsonl?event=probe.one"))
    lines = b"".join(answer).decode().splitlines()
    assert [json.loads(line)["subject_id"] for line in lines[1:-1]] == ["act_0", "act_1", "act_2"]
    assert answer["Content-Disposition"].startswith("attachment")
    row = AuditEntry.objects.get(event="audit.exported")
    assert (row.actor_id, row.data["filters"]) == (rows.bob.pk, {"event": "probe.one"})


def test_nobody_else_exports_and_nothing_is_recorded(rows, browser):
    where = url(rows, "/export.csv")
    assert browser(rows.mallory).get(where).status_code == 404
    assert browser().get(where).status_code == 302
    assert browser(rows.bob).post(where).status_code == 405
    assert browser(rows.bob).get(url(rows, "/export.exe")).status_code == 404
    rows.bob.permissions.filter(name="audit:read").delete()
    assert browser(rows.bob).get(where).status_code == 403
    assert not AuditEntry.objects.filter(event="audit.exported").exists()


def test_a_place_that_gets_no_heads_is_told(rows, browser, settings):
    settings.AUDIT_HEADS = {"file": "/mnt/heads", "mail": ""}
    assert "could not be sent" not in shown(browser, rows, "")
    HeadPlace.objects.create(place="file", error="OSError: <gone>", tried_at=timezone.now())
    page = shown(browser, rows, "")
    assert "Heads could not be sent to the file (OSError: &lt;gone&gt;)" in page


def test_an_incident_is_exported_by_who_may_read_both(rows, browser):
    from tests.approvals.proposals import pending

    pending(rows.caller(rows.scout), conversation="march & <b>")
    asked = {"agent": rows.scout.pk, "conversation": "march & <b>"}
    where = reverse("incident", args=[rows.workspace.pk])
    page = browser(rows.bob).get(url(rows), asked).content.decode()
    assert f"{where}?agent={rows.scout.pk}&amp;conversation=march%20%26%20%3Cb%3E" in page
    answer = browser(rows.bob).get(where, asked)
    assert b"".join(answer).startswith(b"PK")
    assert AuditEntry.objects.get(event="incident.exported").actor_id == rows.bob.pk
    assert browser(rows.bob).get(where, {"agent": rows.scout.pk, "conversation": "may"}).status_code == 404
    assert browser(rows.bob).post(where, asked).status_code == 405
    assert browser(rows.mallory).get(where, asked).status_code == 404
    rows.bob.permissions.filter(name="sandboxes:read").delete()
    assert browser(rows.bob).get(where, asked).status_code == 403
    assert "Export incident" not in browser(rows.bob).get(url(rows), asked).content.decode()
