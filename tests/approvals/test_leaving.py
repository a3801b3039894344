"""Removing a member: what rests on their word ends with them, and nothing of theirs is left without a word."""

import pytest

from approvals import decisions, gate, leaving
from console.workspaces import keys, members, owners, permissions
from console.workspaces.errors import Conflict, Invalid, PermissionDenied
from console.workspaces.models import Agent
from tests import people
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db


def remove(cast, member, heirs=None, by=None):
    return leaving.remove(member, by=by or cast.alice, heirs=heirs or {})


def own(agent: Agent, member) -> Agent:
    agent.owner = member
    agent.save(update_fields=["owner"])
    return agent


def approved(cast, by, command="echo hi"):
    action = pending(cast.caller(cast.scout), command)
    return decisions.decide(action, "approve", by=by, digest=action.digest)


def test_what_they_approved_and_has_not_started_is_cancelled_and_the_rest_is_not(cast):
    theirs, others, waiting = (
        approved(cast, cast.bob),
        approved(cast, cast.alice, "echo 2"),
        pending(cast.caller(cast.other)),
    )
    started = approved(cast, cast.bob, "echo started")
    assert gate.start(started.pk)
    assert remove(cast, cast.bob) == 1
    for action, status in ((theirs, "cancelled"), (others, "approved"), (waiting, "pending"), (started, "running")):
        action.refresh_from_db()
        assert action.status == status
    assert "Bob approved this and is no member any more" in theirs.end_reason
    assert gate.start(theirs.pk) is None
    assert gate.start(others.pk)


def test_their_keys_and_permissions_end(cast):
    secret = cast.workspace_key(cast.bob, permissions.SANDBOXES_READ)
    assert keys.authenticate(secret)
    remove(cast, cast.bob)
    assert keys.authenticate(secret) is None
    assert not cast.bob.permissions.exists()


def test_each_agent_of_theirs_gets_an_owner_or_none_by_name(cast):
    own(cast.scout, cast.bob), own(cast.other, cast.bob)
    with pytest.raises(Conflict, match="other"):
        remove(cast, cast.bob, {cast.scout.pk: None})
    assert cast.bob.permissions.exists(), "all or nothing"
    remove(cast, cast.bob, {cast.scout.pk: None, cast.other.pk: cast.alice})
    owned = dict(Agent.objects.values_list("pk", "owner_id"))
    assert owned == {cast.scout.pk: None, cast.other.pk: cast.alice.pk}
    rows = cast.workspace.audit.filter(event="agent.owner_changed").order_by("seq")
    assert [(row.subject_id, row.data["owner"]) for row in rows] == [
        (cast.other.pk, cast.alice.pk), (cast.scout.pk, ""),
    ]  # fmt: skip


@pytest.mark.parametrize("heir", ["mallory", "bob"])
def test_nobody_from_elsewhere_and_not_who_goes_takes_an_agent_over(cast, heir):
    own(cast.scout, cast.bob)
    with pytest.raises(Invalid):
        remove(cast, cast.bob, {cast.scout.pk: getattr(cast, heir)})
    assert members.Member.objects.current().filter(pk=cast.bob.pk).exists()


def test_it_takes_members_manage_here_and_is_never_oneself(cast):
    for by in (cast.bob, cast.mallory):
        with pytest.raises(PermissionDenied):
            remove(cast, cast.alice, by=by)
    with pytest.raises(Conflict, match="yourself"):
        remove(cast, cast.alice)


def test_sessions_end_where_it_was_the_last_workspace_and_else_do_not(cast):
    ines = people.member(cast.workspace, "ines")
    members.add(cast.elsewhere, cast.bob.user, by=None)
    before = {each: each.user.get_session_auth_hash() for each in (cast.bob, ines)}
    for each in before:
        remove(cast, each)
        each.user.refresh_from_db()
    assert cast.bob.user.get_session_auth_hash() == before[cast.bob]
    assert ines.user.get_session_auth_hash() != before[ines]


def test_a_session_hash_of_nobody_removed_is_as_it_was_before_there_were_epochs(cast):
    plain = super(type(cast.bob.user), cast.bob.user).get_session_auth_hash()
    assert cast.bob.user.get_session_auth_hash() == plain


def test_a_hand_over_is_by_who_manages_members(cast):
    with pytest.raises(PermissionDenied):
        owners.hand_over(cast.scout, cast.alice, by=cast.bob)
