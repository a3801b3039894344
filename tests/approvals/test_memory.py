from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from approvals import decisions, gate, memory, payloads
from approvals.errors import TooMany
from approvals.models import Action, Execution, Suspension
from approvals.room import PROPOSALS_A_MINUTE
from console.workspaces import agents, audit
from console.workspaces.errors import Conflict, Invalid, PermissionDenied
from console.workspaces.models import Agent
from tests.approvals.proposals import pending, run


def deny(action, by, reason="use staging"):
    return decisions.decide(action, "deny", by=by, digest=action.digest, reason=reason)


def approve(action, by):
    return decisions.decide(action, "approve", by=by, digest=action.digest)


def again(caller, command="echo hi", **more) -> Action:
    """The same call by a new Idempotency-Key, so that it joins nothing."""
    more.setdefault("idempotency_key", f"again-{Action.objects.count()}")
    return Action.objects.get(pk=gate.submit(run(caller, command, **more)).action_id)


def move_back(minutes):
    """Denials lie so long ago; the clock stays."""
    for action in Action.objects.filter(status="denied"):
        Action.objects.filter(pk=action.pk).update(
            decided_at=action.decided_at - timedelta(minutes=minutes),
            retry_at=action.retry_at and action.retry_at - timedelta(minutes=minutes),
            ended_at=action.ended_at - timedelta(minutes=minutes),
        )


def test_a_denied_call_made_again_is_denied_at_once_with_the_same_reason(cast):
    caller = cast.caller(cast.scout)
    first = deny(pending(caller), cast.bob)
    move_back(4)
    second = again(caller)
    assert second.pk != first.pk
    assert (second.status, second.decided_by, second.asked, second.executed) == ("denied", "system", False, False)
    assert f"denied 4 min ago by Bob ({first.pk}): use staging. It may be proposed again after" in second.end_reason
    assert 25 * 60 < second.outcome()["retry_after"] <= 26 * 60
    assert second.outcome()["human_decided"] is False
    assert not second.outcome()["may_retry"]
    assert not Execution.objects.exists()


def test_the_denial_itself_says_when_it_may_be_proposed_again(cast):
    action = deny(pending(cast.caller(cast.scout)), cast.bob)
    assert 29 * 60 < action.outcome()["retry_after"] <= 30 * 60
    assert action.outcome()["human_decided"] is True
    move_back(31)
    assert "retry_after" not in Action.objects.get(pk=action.pk).outcome()


def test_after_its_cool_down_a_denied_call_asks_again(cast):
    caller = cast.caller(cast.scout)
    deny(pending(caller), cast.bob)
    move_back(30)
    assert again(caller).status == "pending"


def test_repeats_do_not_make_the_cool_down_longer(cast):
    caller = cast.caller(cast.scout)
    first = deny(pending(caller), cast.bob)
    move_back(29)
    assert again(caller).retry_at == Action.objects.get(pk=first.pk).retry_at
    move_back(1)
    assert again(caller).status == "pending"


def test_each_agent_has_its_own_cool_down_within_a_maximum(cast):
    agent = agents.change_tools(cast.scout, by=cast.alice, cool_down_min=0)
    profile = {**run(cast.caller(agent)).profile, "settings_version": agent.settings_version}
    caller = cast.caller(agent)
    deny(pending(caller, profile=profile), cast.bob)
    assert again(caller, profile=profile).status == "pending"
    for wrong in (-1, agents.COOL_DOWN_MOST_MIN + 1, True, "30", None, 1.5):
        with pytest.raises(Invalid, match="cool_down_min"):
            agents.change_tools(agent, by=cast.alice, cool_down_min=wrong)


def test_another_agent_or_another_call_does_not_cool_down(cast):
    deny(pending(cast.caller(cast.scout)), cast.bob)
    assert again(cast.caller(cast.other)).status == "pending"
    assert again(cast.caller(cast.scout), "echo ho").status == "pending"


SAME = [
    {"cwd": "/work/"}, {"cwd": "//work/."}, {"cwd": "/work/a/.."}, {"command": " rm -r a"}, {"command": "rm -r a \n"},
    {"command": "rm -r a #"}, {"command": "rm -r a # again"}, {"command": "rm -r a ;"}, {"timeout_s": 9},
    {"background": True},
]  # fmt: skip
OTHER = [
    {"cwd": "/work/a"}, {"command": "rm -r  a"}, {"command": "rm -r a '#'"}, {"command": "rm -r a#"}, {"stdin": " "},
    {"env": {"A": "1"}}, {"command": "rm -r ' a'"},
]  # fmt: skip
ASKED = {"command": "rm -r a", "cwd": "/work", "env": {}, "stdin": "", "timeout_s": 120}


@pytest.mark.parametrize(("change", "status"), [(c, "denied") for c in SAME] + [(c, "pending") for c in OTHER])
def test_what_comes_to_the_same_as_a_denied_command_is_denied_and_nothing_else(cast, change, status):
    caller = cast.caller(cast.scout)
    first = deny(pending(caller, arguments=ASKED), cast.bob)
    found = again(caller, arguments={**ASKED, **change})
    assert found.status == status
    assert found.digest != first.digest
    assert Action.objects.get(pk=found.pk).arguments == {**ASKED, **change}


def test_a_long_denied_command_is_the_same_with_a_blank_more(cast):
    caller, long = cast.caller(cast.scout), "# long\n" * 1000
    one, two = (
        {**ASKED, "command": payloads.keep(payloads.hold(text.encode()))} for text in (long + "rm a", long + "rm a ")
    )
    deny(pending(caller, arguments=one), cast.bob)
    assert again(caller, arguments=two).status == "denied"


def test_a_later_approval_of_what_comes_to_the_same_ends_a_cool_down(cast):
    caller = cast.caller(cast.scout)
    first, second = pending(caller, "echo hi"), pending(caller, "echo hi ")
    deny(first, cast.bob)
    approve(second, cast.alice)
    assert again(caller, " echo hi").status == "pending"


def test_a_later_approval_of_the_same_call_ends_its_cool_down(cast):
    caller = cast.caller(cast.scout)
    first, second = pending(caller), again(caller, sandbox_id="sbx_2")
    deny(first, cast.bob)
    assert again(caller).status == "denied"
    approve(second, cast.alice)
    assert again(caller).status == "pending"


def test_an_undelivered_denial_is_joined_and_not_repeated(cast):
    caller = cast.caller(cast.scout)
    action = deny(pending(caller), cast.bob)
    assert gate.submit(run(caller)) == gate.Wait(action.pk, joined=True)
    gate.delivered(action.pk)
    repeated = gate.submit(run(caller))
    assert repeated.action_id != action.pk
    assert not repeated.joined


def test_silence_does_not_cool_down(cast):
    caller = cast.caller(cast.scout)
    action = pending(caller)
    Action.objects.filter(pk=action.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    gate.expire()
    gate.delivered(action.pk)
    assert again(caller).status == "pending"


def test_a_flood_of_repeats_is_bounded(cast):
    caller = cast.caller(cast.scout)
    deny(pending(caller), cast.bob)
    for number in range(PROPOSALS_A_MINUTE - 1):
        again(caller, idempotency_key=f"k{number}")
    with pytest.raises(TooMany):
        again(caller)


def test_a_repeat_is_in_the_chain_and_names_the_denial(cast):
    caller = cast.caller(cast.scout)
    first = deny(pending(caller), cast.bob)
    second = again(caller)
    entry = cast.workspace.audit.get(subject_id=second.pk)
    assert (entry.event, entry.actor, entry.data["denied_before"]) == ("action.denied", "system", first.pk)
    cast.workspace.refresh_from_db()
    assert list(audit.broken_links(cast.workspace)) == []


def test_later_proposals_of_that_conversation_say_that_they_come_after_a_denial(cast):
    caller = cast.caller(cast.scout)
    denied = deny(pending(caller, "rm -r /work", conversation="c"), cast.bob)
    later = pending(caller, "rm -r /work/a", conversation="c")
    assert (later.flags, later.denied_before) == (["after_denial"], denied.pk)
    for elsewhere in (pending(caller, conversation="d"), pending(cast.caller(cast.other), conversation="c")):
        assert (elsewhere.flags, elsewhere.denied_before) == ([], "")


def test_of_several_denials_the_last_of_the_same_tool_is_named(cast):
    caller = cast.caller(cast.scout)
    first = deny(pending(caller, "a", conversation="c"), cast.bob)
    second = deny(pending(caller, "b", conversation="c"), cast.bob)
    of_write = deny(pending(caller, conversation="c", tool="write", kind="write"), cast.bob)
    assert pending(caller, "c", conversation="c").denied_before == second.pk
    assert pending(caller, "d", conversation="c", tool="write", kind="write").denied_before == of_write.pk
    assert first.pk not in (second.pk, of_write.pk)


def test_without_a_conversation_its_sandbox_is_one(cast):
    caller = cast.caller(cast.scout)
    denied = deny(pending(caller), cast.bob)
    assert pending(caller, "echo ho").denied_before == denied.pk
    assert pending(caller, "echo ho", sandbox_id="sbx_2").denied_before == ""


def three_denials(cast, *, minutes_between=0):
    caller = cast.caller(cast.scout)
    for number in range(3):
        move_back(minutes_between)
        deny(pending(caller, f"echo {number}"), cast.bob)


def test_three_denials_in_half_an_hour_suspend_what_was_allowed_without_asking(cast):
    caller = cast.caller(cast.scout)
    for number, suspended in enumerate([False, False, True]):
        deny(pending(caller, f"echo {number}"), cast.bob)
        assert memory.suspended(cast.scout.pk) is suspended
    assert not memory.suspended(cast.other.pk)
    entry = cast.workspace.audit.get(event="agent.rules_suspended")
    assert (entry.subject_id, entry.data["why"]) == (cast.scout.pk, "3 denials within 30 minutes.")


def test_three_denials_over_a_longer_time_suspend_nothing(cast):
    three_denials(cast, minutes_between=16)
    assert not memory.suspended(cast.scout.pk)


def test_repeats_that_nobody_looked_at_count_as_no_denial(cast):
    caller = cast.caller(cast.scout)
    deny(pending(caller), cast.bob)
    assert [again(caller).status for _ in range(5)] == ["denied"] * 5
    deny(pending(caller, "echo 2"), cast.bob)
    assert not memory.suspended(cast.scout.pk)


def test_a_reviewer_lifts_a_suspension_and_says_why(cast):
    three_denials(cast)
    with pytest.raises(Invalid, match="Say why"):
        memory.lift_suspension(cast.scout, by=cast.bob, reason=" ")
    lifted = memory.lift_suspension(cast.scout, by=cast.bob, reason="It knows better now")
    assert (lifted.lifted_by, lifted.lift_reason) == (cast.bob, "It knows better now")
    assert not memory.suspended(cast.scout.pk)
    entry = cast.workspace.audit.get(event="agent.suspension_lifted")
    assert (entry.actor_id, entry.data["reason"]) == (cast.bob.pk, "It knows better now")
    with pytest.raises(Conflict, match="not suspended"):
        memory.lift_suspension(cast.scout, by=cast.alice, reason="me too")


def test_denials_from_before_a_lift_do_not_count_again(cast):
    three_denials(cast)
    memory.lift_suspension(cast.scout, by=cast.bob, reason="ok")
    deny(pending(cast.caller(cast.scout), "echo 4"), cast.bob)
    assert not memory.suspended(cast.scout.pk)
    for number in (5, 6):
        deny(pending(cast.caller(cast.scout), f"echo {number}"), cast.bob)
    assert memory.suspended(cast.scout.pk)


def test_who_may_not_approve_for_an_agent_does_not_lift_its_suspension(cast):
    three_denials(cast)
    for change in ({"owner": cast.bob}, {"owner": None, "reviewers": [cast.alice.pk]}):
        Agent.objects.filter(pk=cast.scout.pk).update(**change)
        cast.scout.refresh_from_db()
        with pytest.raises(PermissionDenied, match="does not approve"):
            memory.lift_suspension(cast.scout, by=cast.bob, reason="let me")
    assert memory.suspended(cast.scout.pk)
    memory.lift_suspension(cast.scout, by=cast.alice, reason="it is fine")


def test_only_reviewers_of_its_workspace_lift_a_suspension(cast):
    three_denials(cast)
    with pytest.raises(Conflict):
        memory.lift_suspension(cast.scout, by=cast.mallory, reason="let me")
    cast.alice.permissions.all().delete()
    with pytest.raises(PermissionDenied):
        memory.lift_suspension(cast.scout, by=cast.alice, reason="let me")
    assert memory.suspended(cast.scout.pk)


def test_an_agent_is_suspended_once_at_a_time(cast):
    three_denials(cast)
    with pytest.raises(IntegrityError), transaction.atomic():
        Suspension.objects.create(agent=cast.scout, why="again")
