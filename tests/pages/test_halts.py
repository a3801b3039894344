"""Halting and lifting on pages: from anywhere, without scripts, always; and what every page says of it."""

import pytest

from approvals.models import Action
from console.pages import proof
from console.workspaces import db, halts, members, permissions
from console.workspaces.models import Halt
from tests import people
from tests.approvals.proposals import pending
from tests.sandboxes.test_lifecycle import running

pytestmark = pytest.mark.django_db


def url(cast, *rest):
    return "/".join(["", "w", cast.workspace.pk, *rest])


def halt(cast, client, agent=None, **more):
    data = {"agent": agent.pk if agent else "all", "reason": "Unknown uploads", **more}
    return client.post(url(cast, "halt"), data)


def text(answer):
    return " ".join(answer.content.decode().split())


def test_a_reviewer_halts_an_agent_from_the_rail_while_something_waits(cast, browser):
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    page = text(client.get(url(cast, "queue")))
    assert f'class="halt" href="{url(cast, "halt")}"' in page
    assert halt(cast, client, cast.scout).headers["Location"] == url(cast, "queue")
    action.refresh_from_db()
    assert action.status == "cancelled"
    after = text(client.get(url(cast, "queue")))
    assert "<b>scout is halted</b> by Bob since" in after
    assert "“Unknown uploads”. Nothing of it runs, 1 action was cancelled." in after
    assert "Lift halt…" not in after, "Bob does not manage agents"


def test_everything_in_the_workspace_and_every_page_of_it_says_so(cast, browser):
    client = browser(cast.alice)
    halt(cast, client)
    for page in (
        "queue",
        "sandboxes",
        "agents",
        "members",
        "keys",
        "settings",
        "audit",
        "halt",
        f"agents/{cast.scout.pk}",
    ):
        assert "<b>Harbour Works is halted</b> by Alice" in text(client.get(url(cast, page))), page
    mallory = browser(cast.mallory).get(f"/w/{cast.elsewhere.pk}/queue")
    assert "is halted" not in text(mallory)


def test_looking_halts_nothing(cast, browser):
    client = browser(cast.bob)
    assert client.get(url(cast, "halt"), {"agent": cast.scout.pk}).status_code == 200
    assert not Halt.objects.exists()


@pytest.mark.parametrize("reason", ["", "   ", "x" * 5000, "‮drowssap <script>alert(1)</script>"])
def test_no_reason_keeps_anybody_from_halting(cast, browser, reason):
    client = browser(cast.bob)
    halt(cast, client, cast.scout, reason=reason)
    found = Halt.objects.get()
    assert found.reason == (reason.strip()[: halts.MOST_REASON] or halts.NO_REASON)
    page = client.get(url(cast, "queue")).content.decode()
    assert "<script>alert" not in page
    assert "‮" not in page


@pytest.mark.parametrize("agent", ["", "agt_none"])
def test_what_is_to_be_halted_must_be_there(cast, browser, agent):
    answer = browser(cast.bob).post(url(cast, "halt"), {"agent": agent, "reason": "Unknown <uploads>"})
    assert answer.status_code == (404 if agent else 400)
    assert not Halt.objects.exists()
    assert agent or "Unknown &lt;uploads&gt;" in answer.content.decode()


def test_who_may_not_review_may_not_halt(cast, browser):
    members.take(cast.bob, permissions.APPROVALS_REVIEW, by=cast.alice)
    for client, status in ((browser(cast.bob), 403), (browser(cast.mallory), 404), (browser(), 302)):
        assert halt(cast, client).status_code == status
        assert client.get(url(cast, "halt")).status_code == status
    assert browser(cast.alice).delete(url(cast, "halt")).status_code == 405
    assert not Halt.objects.exists()


def test_an_agent_of_others_is_not_there(cast, browser):
    theirs = people.agent(cast.elsewhere, "theirs")
    assert halt(cast, browser(cast.bob), theirs).status_code == 404
    assert not Halt.objects.exists()


def test_from_a_card_it_is_denied_as_well_and_a_lost_race_keeps_nobody_from_halting(cast, browser):
    client = browser(cast.bob)
    for decided in (False, True):
        action = pending(cast.caller(cast.other if decided else cast.scout))
        card = text(client.get(url(cast, "queue", action.pk)))
        assert f'{url(cast, "halt")}?agent={action.agent_id}&amp;action={action.pk}' in card
        if decided:
            Action.objects.filter(pk=action.pk).update(status="approved", decided_by="reviewer")
        halt(cast, client, action.agent, action=action.pk)
        action.refresh_from_db()
        assert action.status == ("cancelled" if decided else "denied")
        assert "Unknown uploads" in action.end_reason
    assert Halt.objects.current().count() == 2


def test_a_halted_agent_is_shown_as_that_and_can_be_lifted_from_its_page(cast, browser):
    client = browser(cast.alice)
    halt(cast, client, cast.scout)
    assert "halted by Alice" in text(client.get(url(cast, "agents")))
    page = text(client.get(url(cast, "agents", cast.scout.pk)))
    assert url(cast, "halts", Halt.objects.get().pk, "lift") in page


def lift(cast, client, **data):
    return client.post(url(cast, "halts", Halt.objects.get().pk, "lift"), data)


def signed_in(cast, member, browser):
    """Through the form, which notes when."""
    client = browser()
    client.post("/sign-in", {"email": member.user.email, "password": people.PASSWORD})
    return client


def test_lifting_takes_a_recent_sign_in_or_the_password_again(cast, browser):
    client = browser(cast.alice)  # whose session does not say when she proved it
    halt(cast, client, cast.scout)
    for password in ("", "wrong"):
        answer = lift(cast, client, reason="All clear", password=password)
        assert (answer.status_code, "This is not your password." in text(answer)) == (400, True)
    assert Halt.objects.current().exists()
    assert lift(cast, client, reason="All clear", password=people.PASSWORD).status_code == 302
    found = Halt.objects.get()
    assert (found.lifted_by, found.lift_reason) == (cast.alice, "All clear")
    assert "is halted" not in text(client.get(url(cast, "queue")))


def test_signing_in_a_moment_ago_is_proof_enough_and_ten_minutes_later_it_is_not(cast, browser):
    client = signed_in(cast, cast.alice, browser)
    halt(cast, client, cast.scout)
    assert lift(cast, client, reason=" ").status_code == 400
    session = client.session
    session["proved_at"] -= proof.WITHIN_S
    session.save()
    assert lift(cast, client, reason="All clear").status_code == 400
    assert "Your password, again" in text(client.get(url(cast, "halts", Halt.objects.get().pk, "lift")))
    session["proved_at"] += proof.WITHIN_S
    session.save()
    assert lift(cast, client, reason="All clear").status_code == 302


def test_guesses_at_the_lift_are_tries_like_those_at_the_door(cast, browser):
    client = browser(cast.alice)
    halt(cast, client, cast.scout)
    for _ in range(5):
        lift(cast, client, reason="All clear", password="wrong")
    assert "Too many tries" in text(lift(cast, client, reason="All clear", password=people.PASSWORD))
    assert Halt.objects.current().exists()


def test_who_does_not_manage_agents_lifts_nothing(cast, browser):
    halt(cast, browser(cast.bob), cast.scout)
    for who, status in ((cast.bob, 403), (cast.mallory, 404), (None, 302)):
        client = signed_in(cast, who, browser) if who else browser()
        assert lift(cast, client, reason="All clear").status_code == status
    assert (
        signed_in(cast, cast.alice, browser).put(url(cast, "halts", Halt.objects.get().pk, "lift")).status_code == 405
    )
    assert Halt.objects.current().exists()


def test_a_lifted_halt_is_not_there_to_be_lifted(cast, browser):
    client = signed_in(cast, cast.alice, browser)
    halt(cast, client, cast.scout)
    lift(cast, client, reason="All clear")
    assert lift(cast, client, reason="All clear").status_code == 404


@pytest.fixture
def sandbox(cast, browser):
    found = running(cast.caller(cast.scout))
    halt(cast, browser(cast.bob), cast.scout)
    return found


def test_the_page_of_a_halted_sandbox_offers_its_files_to_who_manages_agents(cast, browser, sandbox):
    for member, offered in ((cast.alice, True), (cast.bob, False)):
        page = text(browser(member).get(url(cast, "sandboxes", sandbox.pk)))
        assert "In quarantine" in page
        assert (url(cast, "sandboxes", sandbox.pk, "quarantine") in page) is offered


def test_who_may_not_have_them_is_told_nothing_of_them(cast, browser, sandbox):
    where = url(cast, "sandboxes", sandbox.pk, "quarantine")
    for member, status in ((cast.bob, 403), (cast.mallory, 404), (None, 302)):
        assert browser(member).get(where).status_code == status
    assert browser(cast.alice).post(where).status_code == 405
    assert not cast.workspace.audit.filter(event="sandbox.quarantine_downloaded").exists()


def test_what_is_not_in_quarantine_is_not_there(committed_cast, browser):
    cast = committed_cast
    live = running(cast.caller(cast.scout))
    for sandbox_id in (live.pk, "sbx_none"):
        assert browser(cast.alice).get(url(cast, "sandboxes", sandbox_id, "quarantine")).status_code == 404
    db.close()
