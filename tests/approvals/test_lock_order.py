"""The workspace first, every other row after it: two acts in unlike order could wait for each other on PostgreSQL."""

import pytest
from django.db import connection

from approvals import edits
from approvals.models import Action
from approvals.rules import acts, grants, proving
from console.workspaces import ledger
from sandboxes import commands
from tests.approvals.proposals import run
from tests.approvals.test_crashes import Scene

pytestmark = pytest.mark.django_db
ENDED = {"status": "exited", "exit_code": 0, "timed_out": False, "stdout_bytes": 0, "stderr_bytes": 0, "duration_ms": 1}


def made(scene) -> acts.Rule:
    return acts.make(by=scene.cast.alice, effect="allow", tool="run", pattern="git status", matches=["git status"])


def edit(scene):
    action = Action.objects.get(pk=scene.waiting().pk)
    proposal = run(scene.caller, "echo other", sandbox_id=scene.sandbox.pk, profile=action.profile)
    return lambda: edits.put(action, proposal, by=scene.cast.bob, digest_before=action.digest)


def make(scene):
    return lambda: made(scene)


def change(scene):
    rule = made(scene)
    return lambda: acts.change(rule, by=scene.cast.alice, note="Looked at again")


def disable(scene):
    rule = made(scene)
    return lambda: acts.disable(rule, by=scene.cast.alice)


def adopt(scene):
    rule = made(scene)
    return lambda: acts.adopt(rule, by=scene.cast.alice)


def end_grant(scene):
    action = scene.waiting()
    grant = grants.approve_and_grant(action, by=scene.cast.bob, digest=action.digest)
    return lambda: grants.end(grant, by=scene.cast.bob)


def end_in_background(scene):
    action_id = scene.running().action_id
    return lambda: commands.end_in_background(action_id, ENDED)


def lose_in_background(scene):
    action_id = scene.running().action_id
    return lambda: commands.lose_in_background(action_id, {})


ACTS = [edit, make, change, disable, adopt, end_grant, end_in_background, lose_in_background]


@pytest.mark.parametrize("of", ACTS)
def test_the_workspace_is_held_before_anything_is_written(cast, monkeypatch, of) -> None:
    act, done = of(Scene(cast)), []
    monkeypatch.setattr(ledger, "hold", lambda workspace_id: done.append(("hold", workspace_id)))

    def note(execute, sql, params, many, context):
        if sql.split(maxsplit=1)[0] in ("INSERT", "UPDATE", "DELETE"):
            done.append(("write", sql))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        act()
    assert done[0] == ("hold", cast.workspace.pk)
    assert any(what == "write" for what, _ in done)


@pytest.mark.parametrize("of", [make, change, adopt])
def test_the_tests_of_a_rule_run_before_its_transaction(cast, monkeypatch, of) -> None:
    """They start a process for each line, and there is one writer."""
    act, inside, real = of(Scene(cast)), [], proving.run
    outside = len(connection.savepoint_ids)

    def noted(rule):
        inside.append(len(connection.savepoint_ids) - outside)
        return real(rule)

    monkeypatch.setattr(proving, "run", noted)
    act()
    assert inside == [0]


def test_who_changed_a_rule_while_its_tests_ran_is_not_overwritten(cast, monkeypatch) -> None:
    rule, real = made(Scene(cast)), proving.run

    def overtaken(tested):
        monkeypatch.setattr(proving, "run", real)
        acts.change(acts.Rule.objects.get(pk=rule.pk), by=cast.alice, note="First")
        return real(tested)

    monkeypatch.setattr(proving, "run", overtaken)
    with pytest.raises(acts.Conflict, match="meanwhile"):
        acts.change(rule, by=cast.alice, note="Second")
    assert acts.Rule.objects.get().note == "First"
