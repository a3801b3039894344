import threading

import pytest
from django.db import connection

from approvals import decisions
from approvals.errors import AlreadyDecided, WrongDigest
from approvals.models import Action, Decision
from console.workspaces import permissions
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.models import Agent, Workspace
from tests.approvals.proposals import pending

pytestmark = pytest.mark.database


def decide(action, verdict="approve", **more):
    return decisions.decide(action, verdict, **{"digest": action.digest, "reason": "because", **more})


def test_the_second_decider_is_told_who_was_first(cast):
    action = pending(cast.caller(cast.scout))
    stale = Action.objects.get(pk=action.pk)
    decide(action, by=cast.bob)
    with pytest.raises(AlreadyDecided, match="Bob approved this first, at"):
        decide(stale, "deny", by=cast.alice)
    assert Decision.objects.count() == 1


def test_a_digest_that_is_not_the_one_on_the_page_decides_nothing(cast):
    action = pending(cast.caller(cast.scout))
    with pytest.raises(WrongDigest):
        decide(action, by=cast.bob, digest="0" * 64)
    action.refresh_from_db()
    assert action.status == "pending"


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_denial_says_why(cast, reason):
    with pytest.raises(Invalid, match="The agent is told this"):
        decide(pending(cast.caller(cast.scout)), "deny", by=cast.bob, reason=reason)


def test_the_agent_is_given_exactly_the_reason(cast):
    action = decide(pending(cast.caller(cast.scout)), "deny", by=cast.bob, reason="use staging")
    assert action.outcome()["reason"] == "use staging"
    assert action.outcome()["executed"] is False
    assert not action.outcome()["may_retry"]


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_only_members_of_the_workspace_with_the_permission_decide(cast, verdict):
    action = pending(cast.caller(cast.scout))
    decide_by = [cast.mallory]
    cast.alice.permissions.filter(name=permissions.APPROVALS_REVIEW).delete()
    for member in [*decide_by, cast.alice]:
        with pytest.raises(PermissionDenied):
            decide(action, verdict, by=member)
    assert Action.objects.get(pk=action.pk).status == "pending"


def test_a_superuser_decides_no_more_than_anybody(cast):
    cast.alice.permissions.filter(name=permissions.APPROVALS_REVIEW).delete()
    cast.alice.user.is_superuser = cast.alice.user.is_staff = True
    cast.alice.user.save()
    with pytest.raises(PermissionDenied):
        decide(pending(cast.caller(cast.scout)), by=cast.alice)


def test_nobody_approves_for_an_agent_they_own_but_may_deny(cast):
    Agent.objects.filter(pk=cast.scout.pk).update(owner=cast.bob)
    action = pending(cast.caller(cast.scout))
    with pytest.raises(PermissionDenied, match="agent they own"):
        decide(action, by=cast.bob)
    assert decide(action, "deny", by=cast.bob).status == "denied"


def test_deciding_by_key_is_off_until_the_workspace_turns_it_on(cast):
    action = pending(cast.caller(cast.scout))
    reviewer = cast.caller(cast.bob, permissions.APPROVALS_REVIEW)
    with pytest.raises(PermissionDenied, match="off in this workspace"):
        decisions.decide_by_key(action, "approve", caller=reviewer, digest=action.digest)
    Workspace.objects.update(key_decisions=True)
    with pytest.raises(PermissionDenied, match="never decides"):
        decisions.decide_by_key(action, "approve", caller=cast.caller(cast.scout), digest=action.digest)
    decided = decisions.decide_by_key(action, "approve", caller=reviewer, digest=action.digest)
    assert (decided.status, decided.decisions.get().via) == ("approved", "api")


@pytest.mark.django_db(transaction=True)
def test_twenty_deciders_at_once_make_one_decision(committed_cast):
    cast = committed_cast
    action = pending(cast.caller(cast.scout))
    outcomes: list[str] = []
    barrier = threading.Barrier(20)

    def click(number: int) -> None:
        mine = Action.objects.get(pk=action.pk)
        barrier.wait()
        try:
            decide(mine, "approve" if number % 2 else "deny", by=(cast.alice, cast.bob)[number % 2])
            outcomes.append("won")
        except AlreadyDecided:
            outcomes.append("lost")
        finally:
            connection.close()

    threads = [threading.Thread(target=click, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 19 + ["won"]
    assert Decision.objects.count() == 1
