"""The page Notices: who sees what, what it makes and shows once, its log; and that no link decides anything."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.models import Action, Decision
from approvals.notices import acts, sending
from approvals.notices.models import Delivery, Webhook
from tests import people
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/services/PASSWORD"


def url(cast, *rest):
    return "/".join(["", "w", cast.workspace.pk, "notices", *rest])


def text(answer):
    return " ".join(answer.content.decode().replace("<wbr>", "").split())


def add(client, cast, **more):
    return client.post(url(cast), {"kind": "plain", "target": URL, "events": ["waiting", "flagged"], **more})


@pytest.fixture
def hook(cast):
    return acts.make(kind="plain", target=URL, by=cast.alice)


def test_who_manages_the_workspace_adds_one_and_sees_its_secret_once(cast, browser):
    alice = browser(cast.alice)
    page = text(add(alice, cast))
    made = Webhook.objects.get()
    assert (made.target, made.events, made.owner) == (URL, ["waiting", "flagged"], cast.alice)
    assert made.secret in page
    again = text(alice.get(url(cast)))
    assert "hooks.example.com" in again
    assert made.secret not in again
    assert "PASSWORD" not in again


def test_the_same_form_sent_twice_makes_one(cast, browser):
    alice = browser(cast.alice)
    once = re.search(r'name="once" value="(\w+)"', alice.get(url(cast)).content.decode())[1]
    add(alice, cast, once=once)
    assert add(alice, cast, once=once).status_code == 302
    assert Webhook.objects.count() == 1


def test_what_cannot_be_is_said_beside_its_field_and_what_was_typed_stays(cast, browser):
    answer = add(browser(cast.alice), cast, target="http://example.com/<b>", kind="slack")
    page = text(answer)
    assert answer.status_code == 400
    assert "begins with https://" in page
    assert 'value="http://example.com/&lt;b&gt;"' in page
    assert '<option value="slack" selected>' in page
    assert not Webhook.objects.exists()


def test_a_reviewer_has_their_email_and_browser_and_no_webhooks(cast, browser, hook):
    bob = browser(cast.bob)
    page = text(bob.get(url(cast)))
    assert "data-browser-notices" in page
    assert "bob@example.test" in page
    assert "hooks.example.com" not in page
    assert "Tell somebody else" not in page
    assert bob.post(url(cast, "email"), {"on": "1"}).status_code == 302
    assert Webhook.objects.get(member=cast.bob).address == "bob@example.test"
    assert "Turn off email" in text(bob.get(url(cast)))
    bob.post(url(cast, "email"), {"on": ""})
    assert not acts.has_own_email(cast.bob)


@pytest.mark.parametrize("act", ["on", "off", "test", "end"])
def test_a_reviewer_changes_no_webhook_and_neither_does_mallory(cast, browser, hook, act):
    assert browser(cast.bob).post(url(cast, hook.pk, act)).status_code == 403
    assert browser(cast.mallory).post(url(cast, hook.pk, act)).status_code == 404
    assert browser().post(url(cast, hook.pk, act)).status_code == 302
    assert browser(cast.mallory).post(f"/w/{cast.elsewhere.pk}/notices/{hook.pk}/{act}").status_code == 404
    hook.refresh_from_db()
    assert (hook.enabled, hook.ended_at) == (True, None)
    assert not Delivery.objects.exists()


def test_a_reviewer_adds_none(cast, browser):
    answer = add(browser(cast.bob), cast)
    assert answer.status_code == 403
    assert "workspace:manage" in text(answer)
    assert not Webhook.objects.exists()


@pytest.mark.parametrize("act", ["on", "off", "test", "end"])
def test_get_changes_nothing(cast, browser, hook, act):
    assert browser(cast.alice).get(url(cast, hook.pk, act)).status_code == 405
    assert browser(cast.alice).get(url(cast, "email")).status_code == 405
    hook.refresh_from_db()
    assert (hook.enabled, hook.ended_at) == (True, None)
    assert not Delivery.objects.exists()


def test_it_is_turned_off_and_on_and_ended(cast, browser, hook):
    alice = browser(cast.alice)
    alice.post(url(cast, hook.pk, "off"))
    hook.refresh_from_db()
    assert not hook.enabled
    alice.post(url(cast, hook.pk, "on"))
    hook.refresh_from_db()
    assert hook.enabled
    alice.post(url(cast, hook.pk, "end"))
    assert not Webhook.objects.kept().exists()
    assert alice.get(url(cast, hook.pk)).status_code == 404
    assert alice.post(url(cast, hook.pk, "explode")).status_code == 404


def test_the_log_has_each_try_and_not_what_was_sent(cast, browser, hook):
    alice = browser(cast.alice)
    assert alice.post(url(cast, hook.pk, "test")).headers["Location"] == url(cast, hook.pk)
    delivery = Delivery.objects.get()
    sending.claim(delivery.pk)
    sending.record(delivery.pk, sending.Outcome(took_ms=41, status=503, error="hooks.example.com answered 503."))
    page = text(alice.get(url(cast, hook.pk)))
    assert "<b>503</b>" in page
    assert "41 ms" in page
    assert delivery.pk in page
    assert "PASSWORD" not in page


def test_what_waits_is_told_to_a_browser_without_what_it_is(cast, browser):
    action = pending(cast.caller(cast.scout), "rm TOP-SECRET", reason="TOP-SECRET", flags=["deletes"])
    found = browser(cast.bob).get(url(cast, "waiting"))
    assert "TOP-SECRET" not in found.content.decode()
    link = f"/w/{cast.workspace.pk}/queue"
    item = {
        "id": action.pk,
        "agent": "scout",
        "tool": "run",
        "link": f"{link}/{action.pk}",
        "reasons": ["flagged", "waiting"],
        "instead_of": [],
    }
    assert found.json() == {"link": link, "items": [item]}
    type(cast.scout).objects.update(owner=cast.bob)
    assert browser(cast.bob).get(url(cast, "waiting")).json()["items"] == []
    assert browser(cast.mallory).get(url(cast, "waiting")).status_code == 404


@pytest.mark.parametrize("as_htmx", [False, True])
def test_opening_the_link_of_a_notice_decides_nothing(cast, browser, as_htmx):
    """By whoever may decide, as a browser, a mail scanner or a chat's preview would."""
    action = pending(cast.caller(cast.scout))
    headers = {"HX-Request": "true"} if as_htmx else {}
    for link in (f"/w/{cast.workspace.pk}/queue", f"/w/{cast.workspace.pk}/queue/{action.pk}"):
        for query in ("", "?verdict=approve&digest=" + action.digest):
            for client in (browser(cast.bob), browser()):
                client.get(link + query, headers=headers)
                client.head(link + query, headers=headers)
    decide = f"/w/{cast.workspace.pk}/queue/{action.pk}/decide?verdict=approve&digest={action.digest}"
    assert browser(cast.bob).get(decide).status_code == 405
    assert Action.objects.get(pk=action.pk).status == "pending"
    assert not Decision.objects.exists()


def test_a_browsers_look_asks_the_same_for_one_agent_and_for_many(cast, browser):
    """Each open page looks whenever something new waits."""
    client = browser(cast.bob)

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert client.get(url(cast, "waiting")).status_code == 200
        return len(found)

    pending(cast.caller(cast.scout))
    few = queries()
    for number in range(6):
        pending(cast.caller(people.agent(cast.workspace, f"agent{number}")))
    assert queries() == few
