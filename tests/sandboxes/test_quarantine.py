"""What a halt does to rows of sandboxes: they end at once, and their disks are kept for a week."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import gate
from console.workspaces import agents, halts
from console.workspaces.errors import Halted
from sandboxes import counters, ends, lifecycle, overdue, pooled, quarantine
from sandboxes.errors import BoxGone, is_halt
from sandboxes.models import PooledSandbox, Sandbox
from sandboxes.profiles import NewSandbox
from tests.approvals.proposals import run
from tests.sandboxes.test_lifecycle import make, running

pytestmark = pytest.mark.django_db


def now(sandbox: Sandbox) -> Sandbox:
    return Sandbox.objects.get(pk=sandbox.pk)


def test_every_live_sandbox_of_the_agent_ends_and_no_other(cast):
    caller = cast.caller(cast.scout)
    runs, starts = running(caller), make(caller)
    stopped, others = running(caller), running(cast.caller(cast.other))
    lifecycle.stop(stopped, "idle")
    quarantine.halt(cast.workspace, cast.scout, by=cast.bob)
    assert [(now(each).status, now(each).ended_reason) for each in (runs, starts, stopped)] == [("ended", "halted")] * 3
    assert now(others).status == "running"
    assert quarantine.running() == {runs.pk: "c1"}
    assert quarantine.kept() == {runs.pk, stopped.pk}


def test_nothing_is_made_and_no_pooled_one_is_given_while_a_halt_is_in_force(cast):
    caller = cast.caller(cast.scout)
    first = make(caller)
    fields = {name: getattr(first, name) for name in ("cpus", "memory_mb", "disk_mb", "processes", "open_files")}
    PooledSandbox.objects.create(
        workspace=cast.workspace, image="default", image_id="sha256:1", network="none", output_mb=10,
        ready_at=timezone.now(), **fields,
    )  # fmt: skip
    quarantine.halt(cast.workspace, cast.scout, by=cast.bob)
    with pytest.raises(Halted):
        make(caller)
    assert PooledSandbox.objects.count() == 1
    assert make(cast.caller(cast.other)).pooled


def test_a_halted_workspace_wishes_for_no_pool(cast):
    make(cast.caller(cast.scout))
    assert [wish.workspace_id for wish in pooled.wishes(can_network=False)] == [cast.workspace.pk]
    quarantine.halt(cast.workspace, None, by=cast.bob)
    assert pooled.wishes(can_network=False) == []


def test_what_is_in_quarantine_is_neither_deleted_nor_started_again(cast):
    caller = cast.caller(cast.scout)
    sandbox = running(caller, network="none")
    found = quarantine.halt(cast.workspace, cast.scout, by=cast.bob)
    halts.lift(found, by=cast.alice, reason="All clear")
    with pytest.raises(Halted, match="kept until"):
        quarantine.check_removable(now(sandbox))
    assert not lifecycle.started(now_as_stopped(sandbox), container_id="c2", boot="b2")
    with pytest.raises(BoxGone):
        lifecycle.check_live(now(sandbox))


def now_as_stopped(sandbox: Sandbox) -> Sandbox:
    sandbox.status = "stopped"  # as whoever starts it again had read it before the halt
    return sandbox


def test_a_disk_that_is_not_there_is_not_said_to_be_kept(cast):
    sandbox = running(cast.caller(cast.scout))
    quarantine.halt(cast.workspace, cast.scout, by=cast.bob)
    quarantine.down(sandbox.pk, is_kept=False)
    assert (quarantine.running(), quarantine.kept()) == ({}, set())


def test_after_a_week_it_is_kept_no_more_and_the_chain_says_so(cast):
    sandbox = running(cast.caller(cast.scout))
    quarantine.halt(cast.workspace, cast.scout, by=cast.bob)
    left = now(sandbox).quarantined_until - timezone.now()
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)
    assert quarantine.due() == []
    Sandbox.objects.filter(pk=sandbox.pk).update(quarantined_until=timezone.now() - timedelta(seconds=1))
    assert quarantine.due() == [sandbox.pk]
    quarantine.end(sandbox.pk)
    assert (quarantine.due(), quarantine.kept()) == ([], set())
    assert cast.workspace.audit.filter(event="sandbox.quarantine_over", subject_id=sandbox.pk).count() == 1
    assert overdue.due(can_stop=True) == []


def test_what_ran_when_the_server_died_mid_halt_failed_as_halted(cast):
    agents.change_tools(cast.scout, by=None, command_mode="never")
    caller = cast.caller(cast.scout)
    sandbox = running(caller)
    pass_ = gate.submit(run(caller, sandbox_id=sandbox.pk))
    quarantine.halt(cast.workspace, cast.scout, by=cast.bob)
    ends.lose(pass_)
    action = gate.Action.objects.get(pk=pass_.action_id)
    assert (action.status, action.error["code"]) == ("failed", "halted")
    assert not action.outcome()["may_retry"]


def test_halts_are_counted_once(cast):
    def counted() -> float:
        return counters.REGISTRY.get_sample_value("sandgate_halts_total", {"of": "agent"}) or 0

    before = counted()
    for _ in range(2):
        quarantine.halt(cast.workspace, cast.scout, by=cast.bob)
    assert counted() == before + 1


@pytest.mark.parametrize("ended_by", ["halted", "deleted", "idle"])
def test_a_create_whose_row_ended_meanwhile_is_answered_as_that_row_says(cast, ended_by):
    sandbox = lifecycle.make(cast.caller(cast.scout), NewSandbox(), image_id="sha256:1", can_network=False)
    if ended_by == "halted":
        quarantine.halt(cast.workspace, cast.scout, by=cast.bob)
    else:
        lifecycle.end(sandbox, ended_by)
    assert not lifecycle.started(sandbox, container_id="c1", boot="b1")
    lifecycle.end(sandbox, "crashed", deleted=True)  # as whoever was making it undoes that
    told = lifecycle.ended_meanwhile(sandbox.pk)
    assert told.reason == told.fields["ended_reason"] == ended_by
    assert is_halt(told) is (ended_by == "halted")
    assert ("deleted" in told.detail) is (ended_by == "deleted")
