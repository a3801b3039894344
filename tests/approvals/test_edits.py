"""An edited call has another digest, takes no approval of the old one, and is approved by somebody else."""

import pytest

from approvals import decisions, edits, gate
from approvals.errors import AlreadyDecided, NoReviewer, WrongDigest
from approvals.models import Action, Edit
from console.workspaces import agents, audit, members, permissions
from console.workspaces.errors import Conflict, Invalid, PermissionDenied
from console.workspaces.models import Agent, AuditEntry, Change
from tests import people
from tests.approvals.proposals import pending, run
from tests.approvals.test_rules import rule


@pytest.fixture
def carol(cast):
    return people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])


def put(cast, action, by, command="echo edited", **more):
    found = Action.objects.get(pk=action.pk)
    proposal = run(cast.caller(cast.scout), command, profile=found.profile)
    return edits.put(found, proposal, by=by, **{"digest_before": found.digest, **more})


def approve(action, by, **more):
    found = Action.objects.get(pk=action.pk)
    return decisions.decide(found, "approve", by=by, **{"digest": found.digest, **more})


def test_what_runs_is_the_edited_call_and_both_texts_stay(cast) -> None:
    action = pending(cast.caller(cast.scout), "echo proposed")
    edited = put(cast, action, cast.bob)
    assert edited.digest != action.digest
    assert approve(action, cast.alice).status == "approved"
    pass_ = gate.start(action.pk)
    assert pass_ is not None
    assert pass_.arguments["command"] == "echo edited"
    kept = Edit.objects.get()
    assert (kept.arguments_before["command"], kept.arguments["command"]) == ("echo proposed", "echo edited")
    gate.finish(pass_, status="succeeded", result={"exit_code": 0})
    outcome = Action.objects.get().outcome()
    assert outcome["edited"] is True
    assert "-echo proposed" in outcome["diff_of_edit"]
    assert "+echo edited" in outcome["diff_of_edit"]


def test_an_unedited_call_says_so(cast) -> None:
    action = pending(cast.caller(cast.scout))
    denied = decisions.decide(action, "deny", by=cast.bob, digest=action.digest, reason="no")
    assert denied.outcome()["edited"] is False
    assert "diff_of_edit" not in denied.outcome()


def test_an_approval_of_the_old_text_is_refused_and_those_given_are_reset(cast, carol) -> None:
    agents.change_tools(cast.scout, by=None, approvals_needed=2)
    version = Agent.objects.get(pk=cast.scout.pk).settings_version
    profile = {"image": "sha256:1", "network": "none", "user": "agent", "settings_version": version}
    people.member(cast.workspace, "dan", *permissions.PRESETS["reviewer"])
    action = pending(cast.caller(cast.scout), profile=profile)
    old = action.digest
    approve(action, cast.alice)
    put(cast, action, cast.bob)
    with pytest.raises(WrongDigest):
        approve(action, carol, digest=old)
    assert approve(action, carol).status == "pending"  # alice approved another text
    assert approve(action, cast.alice).status == "approved"
    assert AuditEntry.objects.get(event="action.edited").data["approvals_reset"] == ["Alice"]


def test_whoever_edited_does_not_approve_unless_the_agent_allows_its_own(cast) -> None:
    action = pending(cast.caller(cast.scout))
    put(cast, action, cast.bob)
    with pytest.raises(PermissionDenied, match="approves what they have edited"):
        approve(action, cast.bob)
    Agent.objects.filter(pk=cast.scout.pk).update(self_approval=True)
    assert approve(action, cast.bob).status == "approved"
    assert AuditEntry.objects.get(event="action.approved").data["self"] is True


def test_nobody_edits_what_nobody_could_then_approve(cast) -> None:
    members.take(cast.alice, permissions.APPROVALS_REVIEW, by=cast.alice)
    action = pending(cast.caller(cast.scout))
    with pytest.raises(NoReviewer, match="nobody else could"):
        put(cast, action, cast.bob)
    assert Action.objects.get().digest == action.digest


def test_only_reviewers_of_the_workspace_edit(cast) -> None:
    action = pending(cast.caller(cast.scout))
    with pytest.raises(PermissionDenied):
        put(cast, action, cast.mallory)
    cast.bob.permissions.filter(name=permissions.APPROVALS_REVIEW).delete()
    with pytest.raises(PermissionDenied):
        put(cast, action, cast.bob)


def test_what_is_decided_is_not_edited(cast) -> None:
    action = pending(cast.caller(cast.scout))
    approve(action, cast.bob)
    with pytest.raises(AlreadyDecided):
        put(cast, action, cast.alice)


def test_of_two_edits_of_one_text_the_second_is_told(cast, carol) -> None:
    action = pending(cast.caller(cast.scout))
    put(cast, action, cast.bob, "echo first")
    with pytest.raises(WrongDigest, match="not what was on your page"):
        put(cast, action, carol, "echo second", digest_before=action.digest)
    assert Action.objects.get().arguments["command"] == "echo first"


def test_an_edit_that_changes_nothing_is_none(cast) -> None:
    action = pending(cast.caller(cast.scout), "echo hi")
    with pytest.raises(Invalid, match="Nothing is different"):
        put(cast, action, cast.bob, "echo hi")


def test_the_same_call_made_again_joins_the_edited_one(cast) -> None:
    caller = cast.caller(cast.scout)
    action = pending(caller, "echo proposed")
    put(cast, action, cast.bob)
    again = gate.submit(run(caller, "echo proposed"))
    assert (again.action_id, again.joined) == (action.pk, True)
    other = gate.submit(run(caller, "echo edited"))
    assert other.action_id != action.pk  # its agent never asked for that


def test_a_denied_edit_cools_down_what_its_agent_asked_for(cast) -> None:
    caller = cast.caller(cast.scout)
    action = pending(caller, "echo proposed")
    put(cast, action, cast.bob)
    found = Action.objects.get()
    decisions.decide(found, "deny", by=cast.alice, digest=found.digest, reason="no")
    gate.delivered(action.pk)
    again = gate.submit(run(caller, "echo proposed"))
    assert Action.objects.get(pk=again.action_id).status == "denied"


def test_an_edit_rings_and_is_in_the_chain(cast) -> None:
    action = pending(cast.caller(cast.scout))
    before = Change.objects.count()
    put(cast, action, cast.bob)
    assert Change.objects.count() == before + 1
    row = AuditEntry.objects.get(event="action.edited")
    assert (row.actor_id, row.data["digest_before"]) == (cast.bob.pk, action.digest)
    cast.workspace.refresh_from_db()
    assert list(audit.broken_links(cast.workspace)) == []


def test_rules_judge_the_edited_call_again(cast) -> None:
    action = pending(cast.caller(cast.scout), "make test")
    rule(cast, "git status", effect="deny")
    with pytest.raises(Conflict, match="Nothing was edited"):
        put(cast, action, cast.bob, "git status")
    assert Action.objects.get().digest == action.digest


def test_a_rule_that_allows_the_edited_call_does_not_approve_it(cast) -> None:
    action = pending(cast.caller(cast.scout), "make test")
    rule(cast, "git status")
    assert put(cast, action, cast.bob, "git status").status == "pending"
    assert "a person approves it" in Action.objects.get().why_asked
