import pytest

from approvals import decisions, gate, memory, twins
from approvals.models import Action, Execution
from console.workspaces import audit
from tests.approvals.proposals import pending, run


@pytest.fixture
def caller(cast):
    return cast.caller(cast.scout)


def three(caller, **more) -> list[Action]:
    return [pending(caller, idempotency_key=f"k{number}", **more) for number in range(3)]


def decide(action, verdict, by):
    return decisions.decide(action, verdict, by=by, digest=action.digest, reason="because")


def fresh(actions) -> list[Action]:
    return [Action.objects.get(pk=action.pk) for action in actions]


def test_identical_proposals_with_keys_of_their_own_are_one_card(cast, caller):
    actions = three(caller)
    assert len({action.pk for action in actions}) == 3
    assert [card.pk for card in Action.objects.pending().cards()] == [actions[0].pk]
    assert twins.ids_of(actions[:1]) == {actions[0].pk: [actions[1].pk, actions[2].pk]}


def test_another_agent_sandbox_or_call_is_a_card_of_its_own(cast, caller):
    first = pending(caller, idempotency_key="a")
    others = [
        pending(caller, sandbox_id="sbx_2", idempotency_key="b"),
        pending(caller, "echo ho", idempotency_key="c"),
        pending(cast.caller(cast.other), idempotency_key="d"),
    ]
    assert Action.objects.pending().cards().count() == 4
    decide(first, "approve", cast.bob)
    assert {action.status for action in fresh(others)} == {"pending"}


def test_approved_it_runs_once_and_the_others_name_the_one_that_runs(cast, caller):
    actions = three(caller)
    decide(actions[1], "approve", cast.bob)  # whichever card was open
    first, decided, last = fresh(actions)
    assert (first.status, decided.status, last.status) == ("superseded", "approved", "superseded")
    for merged in (first, last):
        assert twins.runs_as(merged) == decided.pk
        assert merged.outcome()["error"]["code"] == "merged"
        assert (merged.outcome()["executed"], merged.outcome()["may_retry"]) == (False, False)
        assert gate.start(merged.pk) is None
    assert gate.start(decided.pk)
    assert Execution.objects.count() == 1
    assert twins.runs_as(decided) == ""


def test_denied_all_are_denied_with_the_reason_and_one_denial_counts(cast, caller):
    actions = three(caller)
    decide(actions[0], "deny", cast.bob)
    for action in fresh(actions):
        assert (action.status, action.decided_by, action.end_reason) == ("denied", "reviewer", "because")
        assert [decision.verdict for decision in action.decisions.all()] == ["deny"]
        assert action.retry_at
    decide(pending(caller, "echo 2"), "deny", cast.bob)
    assert not memory.suspended(cast.scout.pk)


def test_when_the_first_is_taken_back_the_next_stands_for_the_rest(cast, caller):
    actions = three(caller)
    assert gate.cancel(actions[0], by=caller)
    assert [card.pk for card in Action.objects.pending().cards()] == [actions[1].pk]
    decide(actions[1], "approve", cast.bob)
    assert [action.status for action in fresh(actions)] == ["cancelled", "approved", "superseded"]


def test_one_that_comes_after_the_approval_is_a_new_card(cast, caller):
    decide(pending(caller, idempotency_key="a"), "approve", cast.bob)
    later = pending(caller, idempotency_key="b")
    assert later.status == "pending"
    assert [card.pk for card in Action.objects.pending().cards()] == [later.pk]


def test_while_another_approval_is_needed_all_wait(cast, caller):
    actions = three(caller)
    Action.objects.update(approvals_needed=2)
    decide(Action.objects.get(pk=actions[0].pk), "approve", cast.bob)
    assert {action.status for action in fresh(actions)} == {"pending"}
    decide(Action.objects.get(pk=actions[0].pk), "approve", cast.alice)
    assert [action.status for action in fresh(actions)] == ["approved", "superseded", "superseded"]


def test_the_chain_has_each_of_them_and_holds(cast, caller):
    actions = three(caller)
    decide(actions[0], "deny", cast.bob)
    entries = cast.workspace.audit.filter(event="action.denied").order_by("seq")
    assert [entry.subject_id for entry in entries] == [action.pk for action in actions]
    assert [entry.data.get("same_as") for entry in entries] == [None, actions[0].pk, actions[0].pk]
    cast.workspace.refresh_from_db()
    assert list(audit.broken_links(cast.workspace)) == []


def test_the_same_key_is_still_answered_with_its_own_action(cast, caller):
    actions = three(caller)
    decide(actions[0], "approve", cast.bob)
    for number, action in enumerate(actions):
        assert gate.submit(run(caller, idempotency_key=f"k{number}")).action_id == action.pk
