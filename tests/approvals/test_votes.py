"""Several approvals: each by another reviewer, of what would run now; a denial beats them until something starts."""

import threading
from contextlib import suppress

import pytest
from django.db import connection

from approvals import decisions, edits, gate, leaving, showing, together, votes
from approvals.errors import AlreadyDecided, NoReviewer
from approvals.models import Action, Decision
from console.workspaces import agents, audit, members, owners, permissions
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.models import Agent, AuditEntry, Change
from tests import people
from tests.approvals.proposals import pending, run


@pytest.fixture
def carol(cast):
    return people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])


def asked(cast, needed=2, **more):
    """Waits for `needed` approvals."""
    agent = agents.change_tools(cast.scout, by=None, approvals_needed=needed, **more)
    profile = {"image": "sha256:1", "network": "none", "user": "agent", "settings_version": agent.settings_version}
    return pending(cast.caller(cast.scout), profile=profile)


def decide(action, verdict="approve", **more):
    found = Action.objects.get(pk=action.pk)
    return decisions.decide(found, verdict, **{"digest": found.digest, "reason": "because", **more})


def test_one_of_two_approvals_starts_nothing_and_the_second_does(cast) -> None:
    action = asked(cast)
    assert decide(action, by=cast.bob).status == "pending"
    assert gate.start(action.pk) is None
    assert decide(action, by=cast.alice).status == "approved"
    assert gate.start(action.pk) is not None
    assert [vote.by for vote in votes.given(action)] == [cast.bob, cast.alice]
    assert votes.deciding(Action.objects.get(pk=action.pk)).by == cast.alice


def test_the_same_reviewer_counts_once(cast) -> None:
    action = asked(cast)
    decide(action, by=cast.bob)
    with pytest.raises(AlreadyDecided, match="You approved this already"):
        decide(action, by=cast.bob)
    assert Decision.objects.count() == 1
    assert Action.objects.get().status == "pending"


def test_an_approval_that_is_not_the_last_is_in_the_chain_and_rings(cast) -> None:
    action = asked(cast)
    before = Change.objects.filter(subject_id=action.pk).count()
    decide(action, by=cast.bob)
    row = AuditEntry.objects.get(event="action.approval")
    assert (row.actor_id, row.data["given"], row.data["needed"]) == (cast.bob.pk, 1, 2)
    assert Change.objects.filter(subject_id=action.pk).count() == before + 1
    cast.workspace.refresh_from_db()
    assert list(audit.broken_links(cast.workspace)) == []


@pytest.mark.parametrize("who", ["bob", "alice"])
def test_one_denial_ends_it_also_by_who_approved_before(cast, who) -> None:
    action = asked(cast)
    decide(action, by=cast.bob)
    assert decide(action, "deny", by=getattr(cast, who)).status == "denied"
    with pytest.raises(AlreadyDecided):
        decide(action, by=cast.alice)


def test_a_denial_beats_the_last_approval_until_it_starts(cast, carol) -> None:
    action = asked(cast)
    decide(action, by=cast.bob)
    decide(action, by=cast.alice)
    assert decide(action, "deny", by=carol).status == "denied"
    assert gate.start(action.pk) is None


def test_a_denial_comes_too_late_for_what_runs(cast, carol) -> None:
    action = asked(cast)
    decide(action, by=cast.bob)
    decide(action, by=cast.alice)
    assert gate.start(action.pk)
    with pytest.raises(AlreadyDecided, match="Alice approved this first"):
        decide(action, "deny", by=carol)
    assert Action.objects.get().status == "running"


def test_where_one_approval_is_enough_a_denial_does_not_undo_it(cast) -> None:
    action = pending(cast.caller(cast.scout))
    decide(action, by=cast.bob)
    with pytest.raises(AlreadyDecided):
        decide(action, "deny", by=cast.alice)


def test_who_lost_the_right_does_not_count_towards_the_last(cast, carol) -> None:
    action = asked(cast)
    decide(action, by=cast.bob)
    members.take(cast.bob, permissions.APPROVALS_REVIEW, by=cast.alice)
    assert decide(action, by=carol).status == "pending"
    assert decide(action, by=cast.alice).status == "approved"


def test_nothing_starts_when_one_of_them_lost_the_right_after_the_last(cast) -> None:
    action = asked(cast)
    decide(action, by=cast.bob)
    decide(action, by=cast.alice)
    members.take(cast.bob, permissions.APPROVALS_REVIEW, by=cast.alice)
    assert gate.start(action.pk) is None
    assert Action.objects.get().status == "cancelled"


def test_more_approvals_than_reviewers_are_refused_as_a_setting(cast) -> None:
    with pytest.raises(Invalid, match="3 approvals need 3 reviewers, and scout has 2") as caught:
        agents.change_tools(cast.scout, by=cast.alice, approvals_needed=3)
    assert caught.value.fields["field"] == "approvals_needed"


@pytest.mark.parametrize("wrong", [0, 6, -1, "2", True, 1.5, None])
def test_approvals_are_one_to_five(cast, wrong) -> None:
    with pytest.raises(Invalid):
        agents.change_tools(cast.scout, by=cast.alice, approvals_needed=wrong)


def test_too_few_reviewers_are_no_reviewer_at_once(cast) -> None:
    agents.change_tools(cast.scout, by=None, approvals_needed=2)
    members.take(cast.bob, permissions.APPROVALS_REVIEW, by=cast.alice)
    with pytest.raises(NoReviewer, match="needs 2 approvals, and only 1"):
        gate.submit(run(cast.caller(cast.scout)))


def test_an_agent_names_who_approves_for_it(cast, carol) -> None:
    action = asked(cast, 1, reviewers=[carol.pk])
    with pytest.raises(PermissionDenied, match="not among them"):
        decide(action, by=cast.bob)
    assert decide(action, by=carol).status == "approved"


def test_whoever_may_review_may_deny_for_every_agent(cast, carol) -> None:
    assert decide(asked(cast, 1, reviewers=[carol.pk]), "deny", by=cast.bob).status == "denied"


def test_an_agent_whose_only_named_reviewer_left_has_none(cast, carol) -> None:
    agents.change_tools(cast.scout, by=None, reviewers=[carol.pk])
    members.remove(carol, by=cast.alice)
    with pytest.raises(NoReviewer, match="none of those it names"):
        gate.submit(run(cast.caller(cast.scout)))


def test_only_those_who_may_review_here_can_be_named(cast) -> None:
    for stranger in (cast.mallory.pk, "mem_nobody"):
        with pytest.raises(Invalid, match="no member with `approvals:review`"):
            agents.change_tools(cast.scout, by=cast.alice, reviewers=[stranger])


def test_self_approval_is_off_and_said_when_it_is_on(cast) -> None:
    Agent.objects.filter(pk=cast.scout.pk).update(owner=cast.bob)
    cast.scout.refresh_from_db()
    with pytest.raises(PermissionDenied, match="agent they own"):
        decide(pending(cast.caller(cast.scout), "first"), by=cast.bob)
    decide(asked(cast, 1, self_approval=True), by=cast.bob)
    assert AuditEntry.objects.get(event="action.approved").data["self"] is True


@pytest.mark.django_db(transaction=True)
def test_deny_and_approve_at_the_same_instant_deny_wins(committed_cast) -> None:
    cast = committed_cast
    reviewers = [people.member(cast.workspace, name, "approvals:review") for name in ("carol", "dan", "eve", "finn")]
    for _ in range(5):
        agents.change_tools(cast.scout, by=None, approvals_needed=1)
        cast.scout.refresh_from_db()
        action = asked(cast, 2)
        barrier = threading.Barrier(len(reviewers))

        def click(number: int, action=action, barrier=barrier) -> None:
            barrier.wait()
            with suppress(AlreadyDecided):
                decide(action, "deny" if number == 0 else "approve", by=reviewers[number])
            connection.close()

        threads = [threading.Thread(target=click, args=(number,)) for number in range(len(reviewers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Action.objects.get(pk=action.pk).status == "denied"
        cast.scout.refresh_from_db()


def test_together_an_approval_that_is_not_the_last_is_said_to_wait(cast) -> None:
    action = asked(cast)
    token = showing.show(action, to=cast.bob, session="s1")
    showing.read(showing.seen(action, by=cast.bob, session="s1", token=token))
    (became,) = together.decide_each([action], "approve", by=cast.bob, session="s1")
    assert (became.action.status, became.said) == ("pending", together.COUNTED)


def test_who_became_the_owner_after_approving_does_not_count(cast, carol) -> None:
    action = asked(cast)
    decide(action, by=cast.bob)
    owners.hand_over(cast.scout, cast.bob, by=cast.alice)
    assert decide(action, by=carol).status == "pending"
    assert decide(action, by=cast.alice).status == "approved"
    assert gate.start(action.pk) is not None, "two who may still approve it have"


@pytest.mark.parametrize("needed", [1, 2])
def test_nothing_starts_on_the_word_of_who_became_its_owner(cast, carol, needed) -> None:
    action = asked(cast, needed)
    for reviewer in (cast.bob, carol)[:needed]:
        decide(action, by=reviewer)
    owners.hand_over(cast.scout, cast.bob, by=cast.alice)
    assert gate.start(action.pk) is None
    ended = Action.objects.get()
    assert (ended.status, "Bob approved this" in ended.end_reason) == ("cancelled", True)


def test_an_edit_that_brings_the_text_back_brings_no_approval_back(cast, carol) -> None:
    people.member(cast.workspace, "dan", *permissions.PRESETS["reviewer"])
    action = asked(cast)
    decide(action, by=cast.bob)
    for text in ("echo other", "echo hi"):
        found = Action.objects.get()
        edited = run(cast.caller(cast.scout), text, profile=found.profile)
        edits.put(found, edited, by=carol, digest_before=found.digest)
    assert Action.objects.get().digest == action.digest
    assert votes.given(Action.objects.get()) == []
    assert decide(action, by=cast.alice).status == "pending"
    assert decide(action, by=cast.bob).status == "approved", "they approve it anew"


def test_who_was_removed_and_came_back_has_approved_nothing(cast, carol) -> None:
    action = asked(cast)
    decide(action, by=cast.bob)
    leaving.remove(cast.bob, by=cast.alice, heirs={})
    bob = members.add(cast.workspace, cast.bob.user, by=cast.alice)
    members.give(bob, permissions.APPROVALS_REVIEW, by=cast.alice)
    assert decide(action, by=carol).status == "pending"
    assert decide(action, by=bob).status == "approved"
