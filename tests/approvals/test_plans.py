"""Plans: one card, one act, one order. Each item its own digest and its own single start."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import decisions, gate, halting, room, together, twins, votes
from approvals.errors import AlreadyDecided, NotSeen, TooMany, WrongDigest
from approvals.models import Action, Execution, Plan, Suspension
from approvals.plans import deciding, fate, proposing
from console.pages import voting
from console.workspaces import agents
from console.workspaces.errors import Conflict, IdempotencyMismatch, Invalid, PermissionDenied
from console.workspaces.models import AuditEntry
from sandboxes import dispatch
from tests import people
from tests.approvals.plans import approve, items, planned, states
from tests.approvals.proposals import pending, run

pytestmark = pytest.mark.django_db
OK = {"exit_code": 0}


@pytest.fixture
def plan(cast):
    return planned(cast.caller(cast.scout))


def start(plan, at):
    return gate.start(items(plan)[at].pk)


def end(plan, at, exit_code=0, **more):
    pass_ = start(plan, at)
    assert pass_ is not None
    assert gate.finish(pass_, **{"status": "succeeded", "result": {"exit_code": exit_code}, **more})


def waits_for_turn() -> list[str]:
    return [action_id for action_id, _ in dispatch.approved()]


def test_each_call_is_an_action_of_its_own_and_all_are_one_card(cast, plan):
    found = items(plan)
    assert [(item.plan_place, item.status, item.asked) for item in found] == [(n, "pending", True) for n in (1, 2, 3)]
    assert [item.digest for item in found] == [
        replace(run(cast.caller(cast.scout), command)).digest() for command in ("one", "two", "three")
    ]
    assert [card.pk for card in Action.objects.pending().cards()] == [found[0].pk]


def test_approved_it_runs_in_order_and_each_starts_only_when_the_one_before_is_done(cast, plan):
    approve(plan, cast.bob)
    assert states(plan) == ["approved"] * 3
    for at in range(3):
        assert waits_for_turn() == [items(plan)[at].pk]
        assert all(start(plan, later) is None for later in range(at + 1, 3))
        end(plan, at)
        assert start(plan, at) is None
    assert (states(plan), fate.status(items(plan))) == (["succeeded"] * 3, "succeeded")
    assert Execution.objects.count() == 3


def test_an_item_does_not_start_while_the_one_before_runs(cast, plan):
    approve(plan, cast.bob)
    assert start(plan, 0)
    assert start(plan, 1) is None
    assert states(plan) == ["running", "approved", "approved"]


def test_an_exit_code_that_is_not_zero_ends_the_rest_which_is_told_why(cast, plan):
    approve(plan, cast.bob)
    end(plan, 0)
    end(plan, 1, exit_code=3)
    first, second, third = items(plan)
    assert states(plan) == ["succeeded", "succeeded", "cancelled"]
    assert third.error == {
        "code": "plan_stopped", "item": 2, "action_id": second.pk,
        "detail": f"Item 2 of its plan, run {second.pk}, ended with exit code 3. This was not run.",
    }  # fmt: skip
    assert Plan.objects.get().stopped_by == second.pk
    assert fate.status(items(plan)) == "failed"
    assert not Execution.objects.filter(action=third).exists()


@pytest.mark.parametrize(
    ("status", "words"), [("failed", "failed."), ("unknown", "began, and how it ended is not known.")]
)
def test_a_failure_or_a_lost_end_ends_the_rest(cast, plan, status, words):
    approve(plan, cast.bob)
    end(plan, 0, status=status, result=None, error={"code": "x", "detail": "It broke."})
    assert states(plan) == [status, "cancelled", "cancelled"]
    assert all(f"Item 1 of its plan, run {items(plan)[0].pk}, {words}" in item.end_reason for item in items(plan)[1:])
    assert fate.status(items(plan)) == status


def test_a_changed_base_ends_the_rest(cast, plan):
    approve(plan, cast.bob)
    end(plan, 0)
    gate.supersede(items(plan)[1], "Its file changed.", code="stale_edit")
    assert states(plan) == ["succeeded", "superseded", "cancelled"]
    assert "Item 2 of its plan" in items(plan)[2].end_reason


def test_items_left_out_are_denied_with_the_reason_and_hold_up_nothing(cast, plan):
    approve(plan, cast.bob, 0, reason="Use staging")
    first, second, third = items(plan)
    assert (first.status, first.end_reason, first.decided_by) == ("denied", "Use staging", "reviewer")
    assert first.decisions.get().verdict == "deny"
    assert first.retry_at > timezone.now()
    end(plan, 1)
    end(plan, 2)
    assert (states(plan), fate.status(items(plan))) == (["denied", "succeeded", "succeeded"], "succeeded")


def test_leaving_out_needs_a_reason_and_not_all_can_be_left_out(cast, plan):
    with pytest.raises(Invalid, match="Say why items"):
        approve(plan, cast.bob, 1, reason=" ")
    with pytest.raises(Invalid, match="Every item"):
        approve(plan, cast.bob, 0, 1, 2)
    other = planned(cast.caller(cast.other))
    with pytest.raises(Invalid, match="no waiting item"):
        deciding.decide(
            plan, "approve", by=cast.bob, digest=deciding.digest_of(plan), left_out=[items(other)[0].pk], reason="x"
        )
    assert states(plan) == ["pending"] * 3


def test_denied_it_is_one_denial_of_every_item(cast, plan):
    deciding.decide(plan, "deny", by=cast.bob, digest=deciding.digest_of(plan), reason="Too broad")
    assert states(plan) == ["denied"] * 3
    assert fate.status(items(plan)) == "denied"
    assert not Suspension.objects.exists(), "three items of one plan are one denial"


def test_a_denial_without_a_reason_decides_nothing(cast, plan):
    with pytest.raises(Invalid):
        deciding.decide(plan, "deny", by=cast.bob, digest=deciding.digest_of(plan))
    assert states(plan) == ["pending"] * 3


def test_an_item_alone_is_not_decided(cast, plan):
    item = items(plan)[0]
    with pytest.raises(Conflict, match=plan.pk):
        decisions.decide(item, "approve", by=cast.bob, digest=item.digest)
    assert states(plan) == ["pending"] * 3


def test_whoever_may_not_approve_an_item_approves_no_plan(cast, plan):
    agents.change_tools(cast.scout, by=None)
    cast.scout.owner = cast.bob
    cast.scout.save()
    with pytest.raises(PermissionDenied):
        approve(plan, cast.bob)
    with pytest.raises(PermissionDenied):
        approve(plan, cast.mallory)
    assert states(plan) == ["pending"] * 3


def test_the_second_to_decide_hears_who_was_first(cast, plan):
    digest = deciding.digest_of(plan)
    approve(plan, cast.bob)
    with pytest.raises(AlreadyDecided, match="Bob"):
        deciding.decide(plan, "deny", by=cast.alice, digest=digest, reason="x")


def test_another_digest_decides_nothing(cast, plan):
    with pytest.raises(WrongDigest):
        deciding.decide(plan, "approve", by=cast.bob, digest="0" * 64)
    assert states(plan) == ["pending"] * 3


def test_a_page_that_did_not_show_the_whole_plan_cannot_approve_it(cast, plan):
    with pytest.raises(NotSeen):
        deciding.decide(plan, "approve", by=cast.bob, digest=deciding.digest_of(plan), via="page")
    assert states(plan) == ["pending"] * 3


def test_of_two_needed_the_first_leaves_out_and_the_second_sees_what_is_left(cast):
    agents.change_tools(cast.scout, by=None, approvals_needed=2)
    caller = cast.caller(cast.scout)
    version = cast.scout.settings_version
    calls = [run(caller, text, profile={"settings_version": version}, conversation="m") for text in ("a", "b")]
    plan = Plan.objects.get(pk=proposing.submit(proposing.PlanProposal(calls)).plan_id)
    approve(plan, cast.bob, 0)
    assert states(plan) == ["denied", "pending"]
    approve(plan, cast.alice)
    assert states(plan) == ["denied", "approved"]


def test_silence_ends_all_of_it_as_expired(cast, plan):
    Action.objects.filter(plan=plan, plan_place=1).update(expires_at=timezone.now() - timedelta(seconds=1))
    gate.expire()
    assert states(plan) == ["expired"] * 3
    assert {item.decided_by for item in items(plan)} == {"clock"}


def test_changed_agent_tools_end_all_that_waits(cast, plan):
    agents.change_tools(cast.scout, by=None, toolset=1)
    gate.supersede_outdated()
    assert states(plan) == ["superseded"] * 3


def test_its_agent_takes_back_one_and_so_all(cast, plan):
    gate.cancel(items(plan)[1], by=cast.caller(cast.scout))
    assert states(plan) == ["cancelled"] * 3


def test_taken_back_after_the_approval_what_comes_before_it_still_runs(cast, plan):
    approve(plan, cast.bob)
    gate.cancel(items(plan)[1], by=cast.caller(cast.scout))
    assert states(plan) == ["approved", "cancelled", "cancelled"]
    end(plan, 0)
    assert states(plan) == ["succeeded", "cancelled", "cancelled"]


def test_a_halt_ends_what_has_not_started_and_counts_it(cast, plan):
    approve(plan, cast.bob)
    assert start(plan, 0)
    found, _ = halting.halt(cast.workspace, cast.scout, by=cast.bob, reason="Odd")
    assert states(plan) == ["running", "cancelled", "cancelled"]
    assert found.cancelled == 2
    assert {item.error["code"] for item in items(plan)[1:]} == {"halted"}


def test_what_cannot_start_in_its_time_ends_the_rest_and_the_time_begins_with_the_turn(cast, plan):
    approve(plan, cast.bob)
    first, second, _ = items(plan)
    assert second.start_by - first.start_by > timedelta(hours=1)
    end(plan, 0)
    assert items(plan)[1].start_by < timezone.now() + timedelta(minutes=11)
    Action.objects.filter(pk=second.pk).update(start_by=timezone.now() - timedelta(seconds=1))
    assert start(plan, 1) is None
    gate.expire()
    assert states(plan) == ["succeeded", "expired", "cancelled"]


def test_a_crash_between_two_items_leaves_the_next_in_turn(cast, plan):
    """What is in the table is all there is: nothing of the order is in memory."""
    approve(plan, cast.bob)
    end(plan, 0)
    assert waits_for_turn() == [items(plan)[1].pk]


def test_what_is_denied_refuses_the_plan_and_is_alone_on_record(cast):
    caller = cast.caller(cast.scout)
    denied = pending(caller, "rm -rf /")
    decisions.decide(denied, "deny", by=cast.bob, digest=denied.digest, reason="No")
    calls = [run(caller, "ls"), run(caller, "rm -rf /")]
    answer = proposing.submit(proposing.PlanProposal(calls))
    assert isinstance(answer, proposing.Refused)
    assert answer.place == 2
    assert Action.objects.get(pk=answer.action_id).status == "denied"
    assert not Plan.objects.exists()
    assert not Action.objects.pending().exists()


def test_what_nothing_would_ask_about_waits_with_its_plan(cast):
    agents.change_tools(cast.scout, by=None, command_mode="never")
    caller = cast.caller(cast.scout)
    version = cast.scout.settings_version
    calls = [run(caller, text, profile={"settings_version": version}) for text in ("a", "b")]
    answer = proposing.submit(proposing.PlanProposal(calls))
    plan = Plan.objects.get(pk=answer.plan_id)
    assert states(plan) == ["pending"] * 2
    assert items(plan)[0].why_asked == proposing.ALLOWED


def test_a_plan_is_one_open_proposal_and_each_item_counts_for_the_pace(cast, monkeypatch):
    caller = cast.caller(cast.scout)
    planned(caller, *map(str, range(20)))
    room.check(cast.scout, more_bytes=0)
    monkeypatch.setattr(room, "OPEN_PROPOSALS", 1)
    with pytest.raises(TooMany, match="waiting for a person"):
        room.check(cast.scout, more_bytes=0)
    monkeypatch.undo()
    with pytest.raises(TooMany, match="within a minute"):
        room.check(cast.scout, more_bytes=0, more=41)
    room.check(cast.scout, more_bytes=0, more=40)


def test_the_same_plan_again_joins_the_one_that_waits_and_a_single_call_never_does(cast, plan):
    caller = cast.caller(cast.scout)
    calls = [run(caller, command, conversation="march") for command in ("one", "two", "three")]
    assert proposing.submit(proposing.PlanProposal(calls)) == proposing.Recorded(plan.pk, joined=True)
    alone = gate.submit(run(caller, "one", conversation="march"))
    assert not alone.joined
    assert {card.pk for card in Action.objects.pending().cards()} == {items(plan)[0].pk, alone.action_id}


def test_two_equal_items_both_run(cast):
    plan = planned(cast.caller(cast.scout), "make", "make")
    assert not twins.of(items(plan)[0])
    approve(plan, cast.bob)
    end(plan, 0)
    end(plan, 1)
    assert Execution.objects.count() == 2


def test_an_idempotency_key_names_one_plan(cast):
    caller = cast.caller(cast.scout)
    plan = planned(caller, "a", "b", idempotency_key="k")
    assert planned(caller, "a", "b", idempotency_key="k") == plan
    with pytest.raises(IdempotencyMismatch):
        planned(caller, "a", "c", idempotency_key="k")
    with pytest.raises(IdempotencyMismatch):
        planned(caller, "a", idempotency_key="k")


def test_denied_with_others_of_its_conversation_it_ends_as_a_whole(cast, plan):
    alone = pending(cast.caller(cast.scout), "four", conversation="march")
    became = together.decide_each(
        together.of_conversation(alone), "deny", by=cast.bob, session="s", reason="Ask me first"
    )
    assert [each.said for each in became] == [""] * 4
    assert states(plan) == ["denied"] * 3


def test_ticked_among_others_a_plan_is_not_approved(cast, plan):
    (became,) = together.decide_each(items(plan)[:1], "approve", by=cast.bob, session="s")
    assert became.said == together.OF_A_PLAN
    assert states(plan) == ["pending"] * 3


def test_every_end_of_every_item_leaves_nothing_behind_it_to_start(cast):
    """For each place and each way an approved item can end badly: none behind it is ever in turn again."""
    caller = cast.caller(cast.scout)
    for at in range(3):
        for new in ("failed", "unknown", "superseded", "expired", "cancelled"):
            plan = planned(caller, *(f"{new} {at} {n}" for n in range(3)))
            approve(plan, cast.bob)
            for before in range(at):
                end(plan, before)
            if new in ("failed", "unknown"):
                end(plan, at, status=new, result=None, error={"code": "x", "detail": "x"})
            elif new == "expired":
                Action.objects.filter(pk=items(plan)[at].pk).update(start_by=timezone.now() - timedelta(seconds=1))
                gate.expire()
            elif new == "superseded":
                gate.supersede(items(plan)[at], "x")
            else:
                gate.cancel_approved(items(plan)[at], "x")
            assert states(plan) == ["succeeded"] * at + [new] + ["cancelled"] * (2 - at)
            assert waits_for_turn() == []
            Action.objects.filter(plan=plan).update(created_at=timezone.now() - timedelta(hours=1))


def test_a_plan_is_seen_by_its_own(cast, plan):
    assert Plan.objects.visible_to(cast.caller(cast.scout)).count() == 1
    for other in (cast.caller(cast.other), cast.caller(cast.mallory), cast.mallory):
        assert not Plan.objects.visible_to(other).exists()


def test_a_vote_for_the_whole_plan_is_none_for_what_is_left_of_it(cast):
    """Copy, verify, remove: without the middle one it is another plan."""
    carol = people.member(cast.workspace, "carol", "approvals:review")
    agents.change_tools(cast.scout, by=None, approvals_needed=2)
    caller = cast.caller(cast.scout)
    version = cast.scout.settings_version
    texts = ("copy", "verify", "remove")
    calls = [run(caller, text, profile={"settings_version": version}, conversation="m") for text in texts]
    plan = Plan.objects.get(pk=proposing.submit(proposing.PlanProposal(calls)).plan_id)
    approve(plan, cast.bob)
    approve(plan, cast.alice, 1)
    assert states(plan) == ["pending", "denied", "pending"]
    assert [str(vote.by) for vote in votes.given(items(plan)[0])] == ["Alice"]
    reset = AuditEntry.objects.filter(event="action.approvals_reset").order_by("seq")
    assert [row.data["approvals_reset"] for row in reset] == [["Bob"], ["Bob"]]
    assert "Items were left out" in voting.shown(items(plan)[0], carol)["votes"]
    approve(plan, carol)
    assert states(plan) == ["approved", "denied", "approved"]


@pytest.mark.parametrize("started", [0, 1])
def test_a_denial_beats_the_last_approval_for_what_has_not_started(cast, plan, started):
    Action.objects.update(approvals_needed=2)
    carol = people.member(cast.workspace, "carol", "approvals:review")
    approve(plan, cast.bob)
    approve(plan, cast.alice)
    if started:
        assert start(plan, 0)
    deciding.decide(plan, "deny", by=carol, digest=deciding.digest_of(plan), reason="Not on a Friday")
    assert states(plan) == ["running"] * started + ["denied"] * (3 - started)
    with pytest.raises(AlreadyDecided):
        deciding.decide(plan, "deny", by=cast.bob, digest=deciding.digest_of(plan), reason="x")


def test_where_one_approval_is_enough_a_denial_does_not_undo_a_plan(cast, plan):
    approve(plan, cast.bob)
    with pytest.raises(AlreadyDecided):
        deciding.decide(plan, "deny", by=cast.alice, digest=deciding.digest_of(plan), reason="x")
    assert states(plan) == ["approved"] * 3
