"""Grants: exactly what was on the card, for one conversation, for some minutes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import decisions, gate
from approvals.errors import AlreadyDecided
from approvals.models import Action, Grant
from approvals.rules import acts, grants
from console.workspaces import agents, members, permissions
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.models import AuditEntry
from tests.approvals.proposals import pending, run


@pytest.fixture
def scout(cast):
    return cast.caller(cast.scout)


def granted(cast, scout, line="cat notes.txt", minutes=15, by=None, **more) -> Grant:
    action = pending(scout, line, **more)
    return grants.approve_and_grant(action, by=by or cast.bob, digest=action.digest, minutes=minutes)


def runs(proposal) -> bool:
    return isinstance(gate.submit(proposal), gate.Pass)


def test_p62_the_next_twenty_run_each_with_the_grant_on_record_and_then_it_asks_again(cast, scout):
    grant = granted(cast, scout, "cat notes.txt && wc -l notes.txt", conversation="c")
    assert gate.start(grant.action_id)
    for n in range(20):
        arguments = {**run(scout, "cat notes.txt && wc -l notes.txt").arguments, "timeout_s": 60 + n}
        answer = gate.submit(run(scout, arguments=arguments, conversation="c"))
        assert isinstance(answer, gate.Pass)
        action = Action.objects.get(pk=answer.action_id)
        assert (action.decided_by, action.under) == ("grant", [{"grant": grant.pk}])
        assert AuditEntry.objects.get(subject_id=action.pk).data["under"] == [{"grant": grant.pk}]
    grant.refresh_from_db()
    assert grant.use_count == 20
    Grant.objects.update(expires_at=timezone.now())
    assert not runs(run(scout, "cat notes.txt", conversation="c", idempotency_key="k"))


@pytest.mark.parametrize(
    "other", ["cat notes.txt x", "cat", "cat *", "cat notes.txt; ls", "X=1 cat notes.txt", "/tmp/cat notes.txt"]
)
def test_a_grant_is_of_exactly_these_words(cast, scout, other):
    granted(cast, scout)
    assert not runs(run(scout, other))


@pytest.mark.parametrize(
    "other",
    [
        "rm -rf data", "cd scratch", "cd scratch || rm -rf data", "cd scratch ; rm -rf data",
        "cd scratch & rm -rf data", "rm -rf data && cd scratch", "cd scratch && cd scratch && rm -rf data",
        "cd scratch && rm -rf data &", "cd scratch && rm -rf data 2>&1", "! cd scratch && rm -rf data",
        "cd scratch | rm -rf data",
    ],
)  # fmt: skip
def test_a_grant_is_of_the_whole_line_and_of_no_part_or_other_order_of_it(cast, scout, other):
    granted(cast, scout, "cd scratch && rm -rf data")
    assert not runs(run(scout, other, idempotency_key="o"))
    assert runs(run(scout, "cd scratch && rm -rf data", idempotency_key="k"))


@pytest.mark.parametrize(
    "other", [{"cwd": "/work/other"}, {"background": True}, {"env": {"A": "b"}}, {"stdin": "y"}, {"new": 1}]
)
def test_a_grant_is_of_the_same_place_and_manner_whatever_the_time_it_may_take(cast, scout, other):
    granted(cast, scout, "rm -rf data")
    same = run(scout, "rm -rf data").arguments
    assert not runs(run(scout, arguments={**same, **other}, idempotency_key="o"))
    assert runs(run(scout, arguments={**same, "timeout_s": 7}, idempotency_key="k"))


def test_a_grant_of_words_is_of_no_line_and_a_rule_does_not_stretch_it(cast, scout):
    same = {name: value for name, value in run(scout).arguments.items() if name != "command"}
    granted(cast, scout, arguments={**same, "argv": ["rm", "x"]})
    acts.make(by=cast.alice, effect="allow", tool="run", pattern="ls")
    assert not runs(run(scout, "rm x", idempotency_key="a"))
    assert not runs(run(scout, "ls && rm x", idempotency_key="b"))
    assert runs(run(scout, arguments={**same, "argv": ["rm", "x"]}, idempotency_key="k"))


def test_a_grant_is_for_one_conversation_in_one_sandbox_of_one_agent(cast, scout):
    granted(cast, scout, conversation="c")
    assert not runs(run(scout, "cat notes.txt", conversation="d"))
    assert not runs(run(scout, "cat notes.txt"))
    assert not runs(run(scout, "cat notes.txt", conversation="c", sandbox_id="sbx_2"))
    assert not runs(run(cast.caller(cast.other), "cat notes.txt", conversation="c"))
    assert runs(run(scout, "cat notes.txt", conversation="c", idempotency_key="k"))


def test_a_grant_of_a_path_is_of_that_path(cast, scout):
    def write(path, tool="write", **more):
        arguments = {"path": path, "content": "x", "mode": None}
        return run(scout, kind="write", tool=tool, arguments=arguments, **more)

    action = Action.objects.get(pk=gate.submit(write("/work/rates.ini")).action_id)
    grants.approve_and_grant(action, by=cast.bob, digest=action.digest)
    assert runs(write("/work/rates.ini", idempotency_key="k"))
    assert not runs(write("/work/rates.ini.bak"))
    assert not runs(write("/work/rates.ini", tool="edit"))


@pytest.mark.parametrize(
    "line",
    [
        "bash -c ls",
        "cat $HOME",
        "ls > out",
        f"echo {'x' * 120}",
        "find . -name x",
        "l\u200bs",
        "python3 x.py",
        "ls *.py",
    ],
)
def test_p9_what_cannot_be_shown_whole_or_remembered_is_not_offered(cast, scout, line):
    action = pending(scout, line)
    assert grants.offer(action) is None
    with pytest.raises(Invalid):
        grants.approve_and_grant(action, by=cast.bob, digest=action.digest)
    action.refresh_from_db()
    assert action.status == "pending"


@pytest.mark.parametrize("setting", [{"command_mode": "always"}, {"approvals_needed": 2}])
def test_where_one_reviewer_alone_does_not_decide_nothing_is_granted(cast, setting):
    members.give(cast.alice, permissions.APPROVALS_REVIEW, by=cast.alice)
    agent = agents.change_tools(cast.scout, by=cast.alice, **setting)
    version = {"image": "sha256:1", "network": "none", "user": "agent", "settings_version": agent.settings_version}
    assert grants.offer(pending(cast.caller(agent), "cat notes.txt", profile=version)) is None


@pytest.mark.parametrize("minutes", [0, 61, -1])
def test_no_grant_is_longer_than_an_hour(cast, scout, minutes):
    with pytest.raises(Invalid):
        granted(cast, scout, minutes=minutes)
    assert Action.objects.get().status == "pending"


def test_who_may_not_approve_grants_nothing(cast, scout):
    for who in (cast.mallory, add_runner(cast)):
        with pytest.raises(PermissionDenied):
            granted(cast, scout, by=who)
    assert not Grant.objects.exists()


def add_runner(cast):
    members.take(cast.bob, permissions.APPROVALS_REVIEW, by=cast.alice)
    return cast.bob


def test_a_grant_comes_with_an_approval_or_not_at_all(cast, scout):
    action = pending(scout, "cat notes.txt")
    decisions.decide(action, "deny", by=cast.bob, digest=action.digest, reason="no")
    with pytest.raises(AlreadyDecided):
        grants.approve_and_grant(action, by=cast.bob, digest=action.digest)
    assert not Grant.objects.exists()


@pytest.mark.database
def test_a_grant_ends_with_the_agent_tools_that_it_was_given_under(cast, scout):
    grant = granted(cast, scout)
    assert list(Grant.objects.in_force()) == [grant]
    agents.change_tools(cast.scout, by=cast.alice, toolset=1)
    assert not runs(run(scout, "cat notes.txt", idempotency_key="k"))
    assert not Grant.objects.in_force().exists(), "nor is it listed"


def test_a_grant_is_ended_at_once_and_once(cast, scout):
    grant = granted(cast, scout)
    assert grants.end(grant, by=cast.bob)
    assert not grants.end(grant, by=cast.bob)
    assert not runs(run(scout, "cat notes.txt", idempotency_key="k"))
    assert AuditEntry.objects.filter(event="grant.ended", subject_id=grant.pk).count() == 1


def test_a_grant_ends_with_its_givers_permission_and_membership(cast, scout):
    granted(cast, scout)
    members.take(cast.bob, permissions.APPROVALS_REVIEW, by=cast.alice)
    members.give(cast.alice, permissions.APPROVALS_REVIEW, by=cast.alice)
    assert not runs(run(scout, "cat notes.txt", idempotency_key="k"))


def test_a_deny_beats_a_grant(cast, scout):
    granted(cast, scout)
    acts.make(by=cast.alice, effect="deny", tool="run", pattern="cat notes.txt")
    answer = gate.submit(run(scout, "cat notes.txt", idempotency_key="k"))
    assert Action.objects.get(pk=answer.action_id).status == "denied"


def test_three_denials_suspend_grants_too(cast, scout, monkeypatch):
    from approvals import memory

    granted(cast, scout)
    monkeypatch.setattr(memory, "suspended", lambda agent_id: True)
    assert not runs(run(scout, "cat notes.txt", idempotency_key="k"))
    assert Grant.objects.get().expires_at - Grant.objects.get().created_at <= timedelta(minutes=16)
