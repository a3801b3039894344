from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from approvals import decisions, gate, room
from approvals.errors import NoReviewer, Outdated, PassSpent, TooMany, WrongDigest
from approvals.models import Action, Execution
from console.workspaces import agents, audit, keys, members, once, permissions
from console.workspaces.errors import IdempotencyMismatch
from tests.approvals.proposals import pending, run

pytestmark = pytest.mark.database


def approve(action, by):
    return decisions.decide(action, "approve", by=by, digest=action.digest)


def test_a_gated_call_waits_and_nothing_may_run_it(cast):
    action = pending(cast.caller(cast.scout))
    assert (action.status, action.asked) == ("pending", True)
    assert gate.start(action.pk) is None
    assert gate.again(action.pk) is None
    assert not Execution.objects.exists()


def test_a_workspace_key_is_let_through_with_one_pass(cast):
    pass_ = gate.submit(run(cast.caller(cast.alice, permissions.SANDBOXES_RUN)))
    assert isinstance(pass_, gate.Pass)
    action = Action.objects.get(pk=pass_.action_id)
    assert (action.status, action.asked, action.decided_by) == ("running", False, "system")


@pytest.mark.parametrize(
    ("mode", "kind", "waits"),
    [("always", "command", True), ("rules", "command", True), ("never", "command", False), ("always", "read", False)],
)
def test_the_mode_of_agent_tools_decides_whether_a_call_asks(cast, mode, kind, waits):
    agent = agents.change_tools(cast.scout, by=cast.alice, command_mode=mode)
    caller = cast.caller(agent)
    answer = gate.submit(run(caller, kind=kind))
    assert isinstance(answer, gate.Wait) is waits


def test_commands_and_writes_have_modes_of_their_own(cast):
    agents.change_tools(cast.scout, by=cast.alice, command_mode="never")
    caller = cast.caller(cast.scout)
    assert isinstance(gate.submit(run(caller)), gate.Pass)
    assert isinstance(gate.submit(run(caller, kind="write", tool="write")), gate.Wait)


def test_a_pass_is_made_by_the_gate_alone(cast):
    with pytest.raises(PassSpent):
        gate.Pass(object(), pending(cast.caller(cast.scout)))


def test_a_pass_is_spent_once_and_only_for_what_it_names(cast):
    pass_ = gate.submit(run(cast.caller(cast.alice, permissions.SANDBOXES_RUN)))
    for sandbox_id, tool in (("sbx_2", "run"), ("sbx_1", "write")):
        with pytest.raises(PassSpent):
            pass_.spend(sandbox_id, tool)
    pass_.spend("sbx_1", "run")
    with pytest.raises(PassSpent):
        pass_.spend("sbx_1", "run")


def test_an_approved_action_starts_once(cast):
    action = approve(pending(cast.caller(cast.scout)), cast.bob)
    first, second = gate.start(action.pk), gate.start(action.pk)
    assert isinstance(first, gate.Pass)
    assert second is None
    assert Execution.objects.count() == 1


def test_a_second_execution_row_cannot_be_written(cast):
    action = approve(pending(cast.caller(cast.scout)), cast.bob)
    gate.start(action.pk)
    with pytest.raises(IntegrityError), transaction.atomic():
        Execution.objects.create(action=action, nonce="another")


def test_an_approval_that_could_not_start_in_time_expires(cast):
    action = approve(pending(cast.caller(cast.scout)), cast.bob)
    Action.objects.filter(pk=action.pk).update(start_by=timezone.now() - timedelta(seconds=1))
    assert gate.start(action.pk) is None
    assert gate.expire() == 1
    action.refresh_from_db()
    assert (action.status, action.decided_by, action.outcome()["executed"]) == ("expired", "clock", False)


def test_silence_expires_and_is_no_denial(cast):
    action = pending(cast.caller(cast.scout))
    Action.objects.filter(pk=action.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert gate.expire() == 1
    action.refresh_from_db()
    assert action.status == "expired"
    assert "not a denial" in action.outcome()["reason"]
    assert action.outcome()["may_retry"]


def test_new_settings_supersede_what_waits_and_nobody_can_approve_it_meanwhile(cast):
    action, of_other = pending(cast.caller(cast.scout)), pending(cast.caller(cast.other))
    agents.change_tools(cast.scout, by=cast.alice, write_mode="always")
    with pytest.raises(WrongDigest, match="Agent Tools of scout changed"):
        approve(Action.objects.get(pk=action.pk), cast.bob)
    assert gate.supersede_outdated() == 1
    assert gate.supersede_outdated() == 0
    action.refresh_from_db()
    of_other.refresh_from_db()
    assert (action.status, of_other.status) == ("superseded", "pending")


def test_what_ends_while_it_is_found_outdated_stays_ended(cast, monkeypatch):
    caller = cast.caller(cast.scout)
    action = pending(caller)
    agents.change_tools(cast.scout, by=None, write_mode="never")
    found = gate.outdated()
    assert found == [action.pk]
    gate.cancel(action, by=caller)
    monkeypatch.setattr(gate, "outdated", lambda: found)
    assert gate.supersede_outdated() == 0
    assert Action.objects.get().status == "cancelled"
    assert not Execution.objects.exists()


def test_new_settings_supersede_what_was_approved_under_the_old(cast):
    action = approve(pending(cast.caller(cast.scout)), cast.bob)
    agents.change_tools(cast.scout, by=cast.alice, write_mode="always")
    assert gate.start(action.pk) is None
    action.refresh_from_db()
    assert action.status == "superseded"


@pytest.mark.parametrize("what", ["switched off", "permission taken"])
def test_an_agent_that_may_no_longer_run_starts_nothing(cast, what):
    action = approve(pending(cast.caller(cast.scout)), cast.bob)
    if what == "switched off":
        agents.change_tools(cast.scout, by=cast.alice, sandbox_enabled=False)
    else:
        members.take(cast.scout, permissions.SANDBOXES_RUN, by=cast.alice)
    assert gate.start(action.pk) is None
    action.refresh_from_db()
    assert action.status == "cancelled"


def test_a_reviewer_who_lost_the_right_takes_their_approval_along(cast):
    action = approve(pending(cast.caller(cast.scout)), cast.bob)
    members.remove(cast.bob, by=cast.alice)
    assert gate.start(action.pk) is None
    action.refresh_from_db()
    assert action.status == "cancelled"


def test_the_same_call_joins_while_its_outcome_is_not_delivered(cast):
    caller = cast.caller(cast.scout)
    action = pending(caller)
    assert gate.submit(run(caller)) == gate.Wait(action.pk, joined=True)
    approve(action, cast.bob)
    gate.finish(gate.start(action.pk), status="succeeded", result={"exit_code": 0})
    assert gate.submit(run(caller)) == gate.Wait(action.pk, joined=True)
    gate.delivered(action.pk)
    assert gate.submit(run(caller)).action_id != action.pk


def test_another_agent_sandbox_or_argument_never_joins(cast):
    action = pending(cast.caller(cast.scout))
    others = [
        run(cast.caller(cast.other)),
        run(cast.caller(cast.scout), sandbox_id="sbx_2"),
        run(cast.caller(cast.scout), "echo hi "),
    ]
    for other in others:
        assert gate.submit(other) != gate.Wait(action.pk, joined=True)
        assert gate.submit(other).action_id != action.pk


def test_what_ended_long_ago_is_not_joined(cast):
    caller = cast.caller(cast.scout)
    action = pending(caller)
    decisions.decide(action, "deny", by=cast.bob, digest=action.digest, reason="no")
    Action.objects.filter(pk=action.pk).update(ended_at=timezone.now() - timedelta(minutes=16))
    assert gate.submit(run(caller)).action_id != action.pk


def test_an_idempotency_key_names_one_action(cast):
    caller = cast.caller(cast.scout)
    first = gate.submit(run(caller, idempotency_key="a"))
    assert gate.submit(run(caller, idempotency_key="a")).action_id == first.action_id
    assert gate.submit(run(caller, idempotency_key="b")).action_id != first.action_id
    with pytest.raises(IdempotencyMismatch):
        gate.submit(run(caller, "echo other", idempotency_key="a"))


def test_other_words_for_a_reviewer_are_another_body(cast):
    caller = cast.caller(cast.scout)
    gate.submit(run(caller, idempotency_key="a", reason="to see"))
    with pytest.raises(IdempotencyMismatch):
        gate.submit(run(caller, idempotency_key="a", reason="to look"))


def test_an_idempotency_key_older_than_a_day_may_be_used_anew(cast):
    caller = cast.caller(cast.alice, permissions.SANDBOXES_RUN)
    first = gate.submit(run(caller, idempotency_key="a"))
    Action.objects.update(created_at=timezone.now() - once.KEPT_FOR + timedelta(minutes=1))
    assert gate.submit(run(caller, idempotency_key="a")) == gate.Wait(first.action_id)
    Action.objects.update(created_at=timezone.now() - once.KEPT_FOR)
    anew = gate.submit(run(caller, "echo other", idempotency_key="a"))
    assert isinstance(anew, gate.Pass)
    assert gate.submit(run(caller, "echo other", idempotency_key="a")) == gate.Wait(anew.action_id)


def test_an_idempotency_key_never_runs_a_let_through_call_twice(cast):
    caller = cast.caller(cast.alice, permissions.SANDBOXES_RUN)
    first = gate.submit(run(caller, idempotency_key="a"))
    second = gate.submit(run(caller, idempotency_key="a"))
    assert isinstance(first, gate.Pass)
    assert second == gate.Wait(first.action_id)


def test_without_a_reviewer_the_agent_hears_so_at_once(cast):
    for member in (cast.alice, cast.bob):
        members.take(member, permissions.APPROVALS_REVIEW, by=cast.alice)
    with pytest.raises(NoReviewer):
        gate.submit(run(cast.caller(cast.scout)))
    assert not Action.objects.exists()


def test_open_proposals_are_bounded(cast):
    caller = cast.caller(cast.scout)
    for number in range(room.OPEN_PROPOSALS):
        pending(caller, f"echo {number}")
    with pytest.raises(TooMany):
        gate.submit(run(caller, "echo more"))


def test_proposals_a_minute_are_bounded_cancelled_ones_included(cast):
    caller = cast.caller(cast.scout)
    for number in range(room.PROPOSALS_A_MINUTE):
        assert gate.cancel(pending(caller, f"echo {number}"), by=caller)
    with pytest.raises(TooMany):
        gate.submit(run(caller, "echo more"))


def test_an_agent_takes_back_what_has_not_started_and_nothing_else(cast):
    caller = cast.caller(cast.scout)
    action = approve(pending(caller), cast.bob)
    assert gate.cancel(action, by=caller)
    assert gate.start(action.pk) is None
    other = approve(pending(caller, "echo 2"), cast.bob)
    gate.start(other.pk)
    assert not gate.cancel(other, by=caller)


def test_every_step_is_in_the_chain_and_the_chain_holds(cast):
    action = approve(pending(cast.caller(cast.scout)), cast.bob)
    gate.finish(gate.start(action.pk), status="succeeded", result={})
    events = list(cast.workspace.audit.filter(subject_id=action.pk).order_by("seq").values_list("event", flat=True))
    assert events == ["action.pending", "action.approved", "action.running", "action.succeeded"]
    cast.workspace.refresh_from_db()
    assert list(audit.broken_links(cast.workspace)) == []


def test_reads_are_recorded_but_are_no_links_of_the_chain(cast):
    before = cast.workspace.audit.count()
    pass_ = gate.submit(run(cast.caller(cast.scout), kind="read", tool="read"))
    made_by_the_key = 1
    assert Action.objects.filter(pk=pass_.action_id, status="running").exists()
    assert cast.workspace.audit.count() == before + made_by_the_key


def test_free_text_is_not_in_the_digest_and_everything_else_is(cast):
    caller = cast.caller(cast.scout)
    plain = run(caller)
    assert run(caller, reason="please").digest() == plain.digest()
    base = plain.arguments
    different = [
        run(caller, arguments={**base, "command": "echo hi "}),
        run(caller, arguments={**base, "cwd": "/work/x"}),
        run(caller, arguments={**base, "env": {"A": "1"}}),
        run(caller, arguments={**base, "stdin": "x"}),
        run(caller, arguments={**base, "timeout_s": 121}),
        run(caller, profile={**plain.profile, "image": "sha256:2"}),
        run(caller, profile={**plain.profile, "network": "public"}),
        run(caller, bases={"/work/a": None}),
        run(caller, tool_version=2),
        run(cast.caller(cast.other)),
    ]
    digests = {proposal.digest() for proposal in different}
    assert len(digests) == len(different)
    assert plain.digest() not in digests


def test_a_key_of_a_removed_member_or_archived_agent_opens_nothing(cast):
    secret = cast.workspace_key(cast.bob, permissions.SANDBOXES_READ)
    assert keys.authenticate(secret)
    members.remove(cast.bob, by=cast.alice)
    assert keys.authenticate(secret) is None


def write(caller, base, **more):
    arguments = {"path": "/work/a", "content": "new", "mode": None}
    fields = {"kind": "write", "tool": "write", "arguments": arguments, "bases": {"/work/a": base}}
    return run(caller, **{**fields, **more})


def written(cast, caller, **more):
    """A write that was approved and ran; now the file is what it wrote."""
    action = Action.objects.get(pk=gate.submit(write(caller, "old", **more)).action_id)
    approve(action, cast.bob)
    gate.finish(gate.start(action.pk), status="succeeded", result={"sha256": "new"})
    return action


def test_a_write_that_is_done_is_joined_though_it_changed_its_own_base(cast):
    caller = cast.caller(cast.scout)
    action = written(cast, caller)
    assert gate.submit(write(caller, "new")) == gate.Wait(action.pk, joined=True)
    assert gate.submit(write(caller, "changed by somebody else since")).action_id != action.pk


def test_an_idempotency_key_still_names_a_write_that_is_done(cast):
    caller = cast.caller(cast.scout)
    action = written(cast, caller, idempotency_key="k")
    agents.change_tools(cast.scout, by=cast.alice, write_mode="always")
    profile = {**write(caller, "new").profile, "settings_version": 3}
    again = write(caller, "new", idempotency_key="k", profile=profile)
    assert gate.submit(again) == gate.Wait(action.pk)


@pytest.mark.parametrize("mode", ["never", "rules", "always"])
def test_what_was_put_together_under_other_agent_tools_neither_runs_nor_waits(cast, mode):
    """The door read them a moment before; somebody changed them since."""
    agents.change_tools(cast.scout, by=cast.alice, command_mode=mode)
    proposal = run(cast.caller(cast.scout))
    agents.change_tools(cast.scout, by=cast.alice, network="none")
    with pytest.raises(Outdated, match="Propose it again"):
        gate.submit(proposal)
    with pytest.raises(Outdated):
        gate.refused(proposal)
    assert not Action.objects.exists()
    gate.submit(run(cast.caller(cast.scout)))
    assert Action.objects.count() == 1
