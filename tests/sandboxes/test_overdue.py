"""What becomes of a sandbox because time passed. The rows are moved, not the time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import decisions, gate
from approvals.models import Action
from console.workspaces import audit
from console.workspaces.models import Agent
from sandboxes import lifecycle, overdue
from sandboxes.models import Command, Sandbox
from sandboxes.overdue import Due
from tests.approvals.proposals import pending
from tests.sandboxes.test_lifecycle import running

HOUR = timedelta(hours=1)


@pytest.fixture
def caller(cast):
    Agent.objects.filter(pk=cast.scout.pk).update(persistent_allowed=True)
    return cast.caller(cast.scout)


def ago(sandbox, **spans):
    Sandbox.objects.filter(pk=sandbox.pk).update(**{name: timezone.now() - span for name, span in spans.items()})
    sandbox.refresh_from_db()
    return sandbox


def due(**how):
    return overdue.due(**{"can_stop": True, **how})


def status(sandbox):
    sandbox.refresh_from_db()
    return sandbox.status, sandbox.ended_reason


def test_one_that_is_used_is_not_due(caller):
    running(caller)
    running(caller, persistent=True)
    assert due() == []


def test_an_idle_one_ends(caller):
    sandbox = ago(running(caller), last_activity_at=HOUR)
    assert due() == [Due(sandbox.pk, "ended", "idle")]
    assert overdue.act(due()[0], can_stop=True)
    assert status(sandbox) == ("ended", "idle")


def test_each_has_an_idle_time_of_its_own_and_tests_may_divide_it(caller):
    running(caller, idle_timeout_s=7200)
    ago(running(caller, idle_timeout_s=7200), last_activity_at=HOUR)
    assert due() == []
    assert len(due(divisor=3)) == 1


def test_activity_a_moment_before_the_sweep_keeps_it(caller):
    sandbox = ago(running(caller), last_activity_at=HOUR)
    (found,) = due()
    lifecycle.touch(sandbox.pk)
    assert not overdue.act(found, can_stop=True)
    assert status(sandbox) == ("running", None)


def test_a_command_that_runs_is_activity_however_long_it_says_nothing(caller):
    sandbox = ago(running(caller), last_activity_at=20 * HOUR, created_at=-HOUR)
    command = Command.objects.create(sandbox=sandbox, action_id="act_1", background=True)
    assert due() == []
    Command.objects.filter(pk=command.pk).update(status="exited")
    assert due() == [Due(sandbox.pk, "ended", "idle")]


def test_while_an_action_waits_for_a_person_it_is_stopped_and_not_ended(caller):
    sandbox = ago(running(caller), last_activity_at=HOUR)
    action = pending(caller, sandbox_id=sandbox.pk)
    assert due() == [Due(sandbox.pk, "stopped", "idle")]
    assert due(can_stop=False) == []
    assert overdue.act(due()[0], can_stop=True)
    assert (status(sandbox), Action.objects.get(pk=action.pk).status) == (("stopped", None), "pending")
    assert due() == []


def test_what_was_approved_keeps_it_until_it_has_run(caller, cast):
    sandbox = ago(running(caller), last_activity_at=HOUR)
    action = pending(caller, sandbox_id=sandbox.pk)
    decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    assert due() == []
    lifecycle.stop(sandbox, "idle")
    assert due() == []


def test_once_nothing_waits_any_more_there_is_its_idle_time_to_do_something_else(caller):
    sandbox = ago(running(caller), last_activity_at=HOUR)
    action = pending(caller, sandbox_id=sandbox.pk)
    lifecycle.stop(sandbox, "idle")
    gate.cancel(action, by=caller)
    assert due() == []
    Action.objects.filter(pk=action.pk).update(ended_at=timezone.now() - HOUR)
    assert due() == [Due(sandbox.pk, "ended", "idle")]


@pytest.mark.parametrize("is_stopped", [False, True])
def test_the_lifetime_ends_it_even_when_something_runs_or_waits(caller, is_stopped, cast):
    sandbox = running(caller)
    action = pending(caller, sandbox_id=sandbox.pk)
    Command.objects.create(sandbox=sandbox, action_id="act_1")
    if is_stopped:
        lifecycle.stop(sandbox, "idle")
    ago(sandbox, expires_at=timedelta(seconds=1))
    assert due() == [Due(sandbox.pk, "ended", "max_lifetime")]
    assert overdue.act(due()[0], can_stop=True)
    assert status(sandbox) == ("ended", "max_lifetime")
    assert Action.objects.get(pk=action.pk).status == "superseded"
    assert audit.CLOCK.kind in cast.workspace.audit.filter(event="sandbox.ended").values_list("actor", flat=True)


def test_a_persistent_one_is_stopped_when_idle_and_kept(caller):
    sandbox = ago(running(caller, persistent=True), last_activity_at=HOUR)
    assert due() == [Due(sandbox.pk, "stopped", "idle")]
    assert due(can_stop=False) == []
    assert overdue.act(due()[0], can_stop=True)
    ago(sandbox, last_activity_at=timedelta(days=13), expires_at=-timedelta(days=1))
    assert due() == []


def test_a_persistent_one_ends_when_nobody_used_it_for_two_weeks(caller):
    sandbox = running(caller, persistent=True)
    lifecycle.stop(sandbox, "idle")
    ago(sandbox, last_activity_at=timedelta(days=14, minutes=1), expires_at=timedelta(minutes=1))
    assert due() == [Due(sandbox.pk, "ended", "idle")]


def test_a_persistent_one_runs_for_its_lifetime_at_a_stretch_and_is_then_stopped(caller):
    sandbox = ago(running(caller, persistent=True), started_at=9 * HOUR, created_at=100 * HOUR)
    Command.objects.create(sandbox=sandbox, action_id="act_1", background=True)
    assert due() == [Due(sandbox.pk, "stopped", "max_lifetime")]
    ago(sandbox, started_at=7 * HOUR)
    assert due() == []


def test_what_is_starting_or_ended_is_nobodys_business_here(caller):
    from tests.sandboxes.test_lifecycle import make

    ago(make(caller), last_activity_at=HOUR, expires_at=HOUR)
    ended = ago(running(caller), last_activity_at=HOUR)
    lifecycle.end(ended, "deleted", deleted=True)
    assert due() == []
