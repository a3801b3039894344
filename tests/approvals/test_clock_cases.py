"""What becomes of questions that nobody answered in time. The rows are moved, not the time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import decisions, gate
from approvals.errors import AlreadyDecided
from approvals.models import Action, Execution
from console.workspaces.models import Change
from tests.approvals.proposals import pending

SECOND = timedelta(seconds=1)


def decide(action, verdict, by):
    return decisions.decide(action, verdict, by=by, digest=action.digest, reason="r")


@pytest.mark.parametrize("verdict", ["approve", "deny"])
@pytest.mark.parametrize("swept", [False, True])
def test_a_decision_a_second_after_expiry_is_told_that_nothing_ran(cast, verdict, swept):
    """Also when the clock has not come by yet: the database's time decides."""
    action = pending(cast.caller(cast.scout))
    Action.objects.update(expires_at=timezone.now() - SECOND)
    if swept:
        gate.expire()
    with pytest.raises(AlreadyDecided, match="expired|Nobody decided"):
        decide(action, verdict, cast.bob)
    assert gate.start(action.pk) is None
    assert not Execution.objects.exists()
    assert not action.decisions.exists()


def test_an_approval_that_was_not_used_in_time_does_not_start_and_expires(cast):
    action = decide(pending(cast.caller(cast.scout)), "approve", cast.bob)
    Action.objects.update(start_by=timezone.now() - SECOND)
    assert gate.start(action.pk) is None
    assert gate.expire() == 1
    assert gate.start(action.pk) is None
    action.refresh_from_db()
    assert (action.status, action.outcome()["human_decided"]) == ("expired", False)


def test_expiring_is_a_change_that_every_open_page_hears_of(cast):
    action = pending(cast.caller(cast.scout))
    Action.objects.update(expires_at=timezone.now() - SECOND)
    before = Change.objects.count()
    gate.expire()
    assert Change.objects.count() == before + 1
    assert Change.objects.latest("seq").subject_id == action.pk


def test_what_expired_stays_on_record(cast):
    action = pending(cast.caller(cast.scout))
    Action.objects.update(expires_at=timezone.now() - SECOND)
    gate.expire()
    assert Action.objects.visible_to(cast.bob).get(pk=action.pk).status == "expired"
    assert cast.workspace.audit.filter(subject_id=action.pk, event="action.expired").exists()


def test_neither_time_nor_other_calls_approve_what_waits(cast):
    caller = cast.caller(cast.scout)
    action = pending(caller)
    pending(caller, "echo yes")
    gate.delivered(action.pk)
    gate.expire()
    gate.supersede_outdated()
    assert gate.start(action.pk) is None
    assert Action.objects.get(pk=action.pk).status == "pending"
