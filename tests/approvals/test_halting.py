"""A halt cancels what waits, and nothing of it starts, whatever came at the same instant."""

import threading

import pytest
from django.db import connection

from approvals import decisions, gate, halting
from approvals.errors import AlreadyDecided
from approvals.models import Action
from console.workspaces import agents, halts, members, permissions
from console.workspaces.errors import Halted, Invalid, PermissionDenied
from console.workspaces.models import Halt
from tests.approvals.proposals import pending, run

pytestmark = pytest.mark.django_db


def halt(cast, agent=None, *, by=None, **more) -> Halt:
    return halting.halt(cast.workspace, agent, by=by or cast.bob, **more)[0]


def approved(cast, caller) -> Action:
    action = pending(caller)
    return decisions.decide(action, "approve", by=cast.bob, digest=action.digest)


def test_what_waits_and_what_was_approved_is_cancelled_with_the_reason(cast):
    caller = cast.caller(cast.scout)
    waiting, ready = pending(caller, "echo 1"), approved(cast, caller)
    found = halt(cast, cast.scout, reason="Unknown uploads")
    for action in (waiting, ready):
        action.refresh_from_db()
        assert (action.status, action.error["code"]) == ("cancelled", "halted")
        assert "Unknown uploads" in action.end_reason
        assert not action.outcome()["may_retry"]
    assert found.cancelled == 2
    assert gate.start(ready.pk) is None


def test_actions_of_others_wait_on(cast):
    other = pending(cast.caller(cast.other))
    halt(cast, cast.scout)
    other.refresh_from_db()
    assert other.status == "pending"
    assert gate.submit(run(cast.caller(cast.other), "echo 2"))


def test_a_workspace_halt_is_for_every_agent_and_key_of_it_and_no_other(cast):
    scouts, alices, mallorys = (cast.caller(who) for who in (cast.scout, cast.alice, cast.mallory))
    waiting = pending(scouts)
    halt(cast)
    waiting.refresh_from_db()
    assert waiting.status == "cancelled"
    for caller in (scouts, alices):
        with pytest.raises(Halted):
            gate.submit(run(caller))
    assert isinstance(gate.submit(run(mallorys)), gate.Pass)


@pytest.mark.parametrize("kind", ["read", "command", "write"])
@pytest.mark.parametrize("mode", ["never", "rules", "always"])
def test_no_kind_of_proposal_passes_in_any_mode(cast, kind, mode):
    agents.change_tools(cast.scout, by=None, command_mode=mode, write_mode=mode)
    halt(cast, cast.scout)
    with pytest.raises(Halted, match="halted by Bob"):
        gate.submit(run(cast.caller(cast.scout), kind=kind))
    assert not Action.objects.exists()


def test_what_was_approved_behind_a_halt_does_not_start(cast):
    """As when the row of the approval came in from another server, after the halt had looked."""
    action = approved(cast, cast.caller(cast.scout))
    halts.declare(cast.workspace, cast.scout, by=cast.bob)
    assert gate.start(action.pk) is None
    action.refresh_from_db()
    assert (action.status, action.error["code"]) == ("cancelled", "halted")


def test_a_decision_after_the_halt_is_told_that_it_came_second(cast):
    action = pending(cast.caller(cast.scout))
    halt(cast, cast.scout, reason="Unknown uploads")
    with pytest.raises(AlreadyDecided, match="Unknown uploads"):
        decisions.decide(action, "approve", by=cast.alice, digest=action.digest)


def test_halting_takes_a_reviewer_and_no_reason(cast):
    newcomer = members.add(cast.workspace, cast.mallory.user, by=None)
    for by in (newcomer, cast.mallory):
        with pytest.raises(PermissionDenied):
            halt(cast, cast.scout, by=by)
    assert halt(cast, cast.scout, reason="  ").reason == halts.NO_REASON


def test_halting_again_changes_nothing_and_keeps_the_first_words(cast):
    first = halt(cast, cast.scout, reason="One")
    again, is_new = halting.halt(cast.workspace, cast.scout, by=cast.alice, reason="Two")
    assert (again.pk, again.reason, is_new) == (first.pk, "One", False)


def test_lifting_takes_agents_manage_and_a_reason_and_brings_nothing_back(cast):
    action = pending(cast.caller(cast.scout))
    found = halt(cast, cast.scout)
    with pytest.raises(PermissionDenied, match=permissions.AGENTS_MANAGE):
        halts.lift(found, by=cast.bob, reason="All clear")
    with pytest.raises(PermissionDenied, match="no member"):
        halts.lift(found, by=cast.mallory, reason="All clear")
    with pytest.raises(Invalid):
        halts.lift(found, by=cast.alice, reason=" ")
    assert halts.lift(found, by=cast.alice, reason="All clear")
    assert not halts.lift(found, by=cast.alice, reason="All clear")
    action.refresh_from_db()
    assert action.status == "cancelled"
    assert gate.submit(run(cast.caller(cast.scout)))


def test_lifting_the_agents_halt_leaves_that_of_the_workspace(cast):
    own = halt(cast, cast.scout)
    halt(cast)
    halts.lift(own, by=cast.alice, reason="All clear")
    with pytest.raises(Halted, match="Harbour Works"):
        gate.submit(run(cast.caller(cast.scout)))


def test_halting_and_lifting_are_links_of_the_chain(cast):
    found = halt(cast, cast.scout, reason="Unknown uploads")
    halts.lift(found, by=cast.alice, reason="All clear")
    rows = cast.workspace.audit.filter(event__in=["agent.halted", "agent.lifted"]).order_by("seq")
    assert [(row.event, row.actor_id, row.subject_id, row.data["reason"]) for row in rows] == [
        ("agent.halted", cast.bob.pk, cast.scout.pk, "Unknown uploads"),
        ("agent.lifted", cast.alice.pk, cast.scout.pk, "All clear"),
    ]


@pytest.mark.django_db(transaction=True)
def test_of_many_proposals_at_the_instant_of_a_halt_none_is_left_waiting(committed_cast):
    """Each was before it, and is cancelled, or came after it, and was refused."""
    cast, came = committed_cast, []
    caller, begin = cast.caller(cast.scout), threading.Barrier(5)

    def propose(number: int) -> None:
        begin.wait()
        try:
            for at in range(4):
                came.append(gate.submit(run(caller, f"echo {number} {at}")))
        except Halted:
            came.append("halted")
        finally:
            connection.close()

    threads = [threading.Thread(target=propose, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    begin.wait()
    found = halt(cast, cast.scout)
    for thread in threads:
        thread.join()
    found.refresh_from_db()
    assert not Action.objects.open().exists()
    assert found.cancelled == Action.objects.filter(status="cancelled").count()
    assert len(came) >= 4
