"""Escalation: what nobody decides is told to a second group, once, on record; and it stays as undecided as before."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import decisions, escalating, gate
from approvals.errors import AlreadyDecided
from approvals.models import Action
from approvals.notices import acts
from console.workspaces import agents, db, members, permissions, settings
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.models import AuditEntry, Change
from sandboxes.clock import Clock
from tests import people
from tests.approvals.plans import planned
from tests.approvals.proposals import pending

from .conftest import hook_at, told, write

pytestmark = [pytest.mark.anyio, pytest.mark.database]


def second(cast, *, after_min=30, to=None):
    cast.carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    to = [cast.carol.pk] if to is None else to
    settings.change_workspace(by=cast.alice, escalate_after_min=after_min, escalate_to=to)


def asked(cast, minutes_ago, command="echo hi", **more):
    action = pending(cast.caller(cast.scout), command, **more)
    Action.objects.filter(pk=action.pk).update(created_at=timezone.now() - timedelta(minutes=minutes_ago))
    return action


def tick():
    return [pk for pk in escalating.due() if escalating.escalate(pk)]


def rows():
    return list(AuditEntry.objects.filter(event="action.escalated").order_by("seq"))


def test_it_is_off_until_somebody_sets_a_time(cast):
    asked(cast, 23 * 60)
    assert tick() == []


def test_after_its_time_it_is_escalated_once_and_on_record(cast):
    second(cast)
    early, late = asked(cast, 29), asked(cast, 31, "echo late")
    changes = Change.objects.count()
    assert tick() == [late.pk]
    assert tick() == [], "also after a restart: the row says so"
    late.refresh_from_db()
    early.refresh_from_db()
    assert (late.escalated_to, early.escalated_at) == ([cast.carol.pk], None)
    (row,) = rows()
    assert (row.actor, row.subject_id, row.data["to"]) == ("clock", late.pk, [cast.carol.pk])
    assert (row.data["after_min"], row.data["digest"]) == (30, late.digest)
    assert Change.objects.count() == changes + 1, "open pages hear of it"


def test_it_decides_nothing_and_lowers_no_bar(cast):
    second(cast)
    agents.change_tools(cast.scout, by=None, approvals_needed=2, reviewers=[cast.alice.pk, cast.bob.pk])
    action = asked(cast, 31)
    before = Action.objects.values().get()
    tick()
    after = Action.objects.values().get()
    assert {name for name in after if after[name] != before[name]} == {"escalated_at", "escalated_to"}
    assert not Action.objects.get().decisions.exists()
    assert gate.start(action.pk) is None
    with pytest.raises(PermissionDenied, match="names who approves"):
        decisions.decide(action, "approve", by=cast.carol, digest=action.digest)
    assert decisions.decide(action, "approve", by=cast.bob, digest=action.digest).status == "pending"


@pytest.mark.parametrize("end", ["decided", "expired", "turned off"])
def test_what_ended_between_the_look_and_the_act_is_not_escalated(cast, end):
    second(cast)
    action = asked(cast, 31)
    (due,) = escalating.due()
    if end == "decided":
        decisions.decide(action, "deny", by=cast.bob, digest=action.digest, reason="no")
    elif end == "expired":
        Action.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    else:
        settings.change_workspace(by=cast.alice, escalate_after_min=0)
    assert not escalating.escalate(due)
    assert rows() == []


def test_of_a_plan_and_of_identical_proposals_one_card_is_escalated(cast):
    second(cast)
    plan = planned(cast.caller(cast.scout))
    twins = [asked(cast, 31, idempotency_key=key) for key in ("a", "b")]
    Action.objects.update(created_at=timezone.now() - timedelta(minutes=31))
    assert tick() == sorted([plan.in_order()[0].pk, twins[0].pk])
    assert tick() == []


def test_identical_proposals_are_escalated_as_one_also_when_the_first_is_taken_back(cast):
    second(cast)
    first, *others = (asked(cast, 31, idempotency_key=key) for key in "abc")
    other = asked(cast, 29, "echo ho")
    changes = Change.objects.count()
    assert tick() == [first.pk]
    assert set(Change.objects.order_by("pk")[changes:].values_list("subject_id", flat=True)) == {
        each.pk for each in (first, *others)
    }
    assert gate.cancel(first, by=cast.caller(cast.scout))
    assert tick() == []
    assert [row.subject_id for row in rows()] == [first.pk]
    found = {row.pk: (row.escalated_at, row.escalated_to) for row in Action.objects.all()}
    assert found[first.pk][1] == [cast.carol.pk]
    assert [found[each.pk] for each in others] == [found[first.pk]] * 2
    assert found[other.pk] == (None, [])


def test_who_may_review_no_more_is_not_told_and_the_others_are(cast):
    second(cast)
    members.take(cast.carol, permissions.APPROVALS_REVIEW, by=cast.alice)
    asked(cast, 31)
    tick()
    assert Action.objects.get().escalated_to == []


def test_mallorys_group_hears_nothing_of_this_workspace(cast):
    second(cast, after_min=0)
    settings.change_workspace(by=cast.mallory, escalate_after_min=1, escalate_to=[cast.mallory.pk])
    asked(cast, 31)
    assert tick() == []


@pytest.mark.parametrize(
    ("setting", "value"),
    [("escalate_after_min", value) for value in (-1, 1441, True, "30", 1.5)]
    + [("escalate_to", value) for value in ("carol", [1], ["mem_nobody"])],
)
def test_what_cannot_be_set_is_refused_by_name(cast, setting, value):
    with pytest.raises(Invalid) as refused:
        settings.change_workspace(by=cast.alice, **{setting: value})
    assert refused.value.fields["field"] == setting


def test_only_who_manages_the_workspace_sets_it_and_only_reviewers_here_are_named(cast):
    with pytest.raises(PermissionDenied):
        settings.change_workspace(by=cast.bob, escalate_after_min=5)
    with pytest.raises(Invalid):
        settings.change_workspace(by=cast.alice, escalate_to=[cast.mallory.pk])
    settings.change_workspace(by=cast.alice, escalate_after_min=5, escalate_to=[cast.bob.pk, cast.bob.pk])
    row = AuditEntry.objects.filter(event="workspace.settings_changed").latest("seq")
    assert row.data["after"] == {"escalate_after_min": 5, "escalate_to": [cast.bob.pk]}


async def test_the_clock_does_it(committed_cast):
    cast = committed_cast
    await write(second, cast)
    action = await write(asked, cast, 31)
    await Clock(None, None)._actions()
    assert [row.subject_id for row in await db.read(rows)] == [action.pk]


async def test_the_group_is_mailed_though_it_never_asked_for_email_and_others_are_not(committed_cast, mailbox):
    cast = committed_cast
    await write(second, cast)
    await write(asked, cast, 29, "rm -rf /work/TOP-SECRET")
    await told()
    assert mailbox == [], "not before its time"
    await write(Action.objects.update, created_at=timezone.now() - timedelta(minutes=31))
    await write(tick)
    await told()
    await told()
    (sent,) = mailbox
    assert sent.to == ["carol@example.test"]
    assert "nobody has decided yet" in sent.subject
    assert "scout: run" in sent.body
    assert "TOP-SECRET" not in sent.subject + sent.body
    assert not await db.read(acts.has_own_email, cast.carol), "and is not asked for from now on"
    await write(asked, cast, 0, "echo new")
    await told()
    assert len(mailbox) == 1


async def test_who_is_told_of_all_is_told_of_it_once_more_and_under_that_name(committed_cast, endpoint):
    cast = committed_cast
    await write(second, cast, to=[])
    for events in (["escalated"], ["waiting"]):
        await write(hook_at, endpoint, cast.alice, events=events)
    await write(asked, cast, 31)
    await told()
    await write(tick)
    await told()
    assert [json.loads(got.body)["event"] for got in endpoint.got] == ["waiting", "escalated"]


async def test_what_was_decided_before_the_mail_went_is_not_told(committed_cast, mailbox, monkeypatch):
    cast = committed_cast
    await write(second, cast)
    action = await write(asked, cast, 31)
    await write(tick)
    await write(decisions.decide, action, "deny", by=cast.bob, digest=action.digest, reason="no")
    await told()
    assert mailbox == []
    with pytest.raises(AlreadyDecided):
        await write(decisions.decide, action, "approve", by=cast.carol, digest=action.digest)
