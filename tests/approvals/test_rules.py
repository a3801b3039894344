"""What rules let through, ask about and deny, at the real gate."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import decisions, gate, memory, told
from approvals.models import Action, Rule
from approvals.rules import acts, judging
from console.workspaces import agents, audit, members
from console.workspaces.errors import Conflict, Invalid, PermissionDenied
from console.workspaces.models import AuditEntry
from tests.approvals.proposals import pending, run

WRITE = {"tool": "write", "kind": "write"}


def rule(cast, pattern="git status", effect="allow", tool="run", by=None, **more) -> Rule:
    return acts.make(by=by or cast.alice, effect=effect, tool=tool, pattern=pattern, **more)


def writes(caller, path, **more):
    return run(caller, **WRITE, arguments={"path": path, "content": "x", "mode": None}, **more)


def submitted(proposal) -> Action:
    return Action.objects.get(pk=gate.submit(proposal).action_id)


@pytest.fixture
def scout(cast):
    return cast.caller(cast.scout)


def test_without_rules_everything_asks(cast, scout):
    assert submitted(run(scout)).why_asked == "Asked because no rule allows this line."


def test_what_a_rule_allows_runs_without_a_person_and_names_the_rule_and_its_version(cast, scout):
    made = rule(cast)
    action = submitted(run(scout, "git status"))
    assert (action.status, action.asked, action.decided_by) == ("running", False, "rule")
    assert action.under == [{"rule": made.pk, "version": 1}]
    entry = AuditEntry.objects.get(subject_id=action.pk)
    assert entry.data["under"] == action.under
    made.refresh_from_db()
    assert made.use_count == 1
    assert made.last_used_at


def test_each_command_of_a_line_must_be_allowed_by_some_rule(cast, scout):
    first, second = rule(cast, "git status"), rule(cast, "head")
    action = submitted(run(scout, "git status && head -3"))
    assert action.under == [{"rule": first.pk, "version": 1}, {"rule": second.pk, "version": 1}]
    assert submitted(run(scout, "git status && git push")).status == "pending"


def test_the_strictest_wins(cast, scout):
    rule(cast, "git push")
    rule(cast, "git push upstream", "ask")
    rule(cast, "git push --force", "deny", note="Never rewrite what others have.")
    assert submitted(run(scout, "git push origin")).status == "running"
    assert submitted(run(scout, "git push upstream")).status == "pending"
    action = submitted(run(scout, "git push --force"))
    assert (action.status, action.decided_by) == ("denied", "rule")
    assert action.end_reason == "Never rewrite what others have."


def test_a_denied_call_never_gets_a_pass_and_its_agent_is_told_why(cast, scout):
    denying = rule(cast, "curl", "deny", note="Use the mirror.")
    answer = gate.submit(run(scout, "curl http://x"))
    assert isinstance(answer, gate.Wait)
    action = Action.objects.get(pk=answer.action_id)
    assert gate.start(action.pk) is None
    assert gate.again(action.pk) is None
    outcome = action.outcome()
    assert (outcome["executed"], outcome["decided_by"], outcome["may_retry"]) == (False, "rule", False)
    assert told.ended(action) == "A rule of the workspace denied this. It was not run. Reason: Use the mirror."
    entry = AuditEntry.objects.get(subject_id=action.pk)
    assert (entry.actor, entry.actor_id) == ("rule", denying.pk)


def test_what_a_rule_decided_is_never_joined(cast, scout):
    rule(cast)
    rule(cast, "curl", "deny")
    for line in ("git status", "curl x"):
        first, second = gate.submit(run(scout, line)), gate.submit(run(scout, line))
        assert first.action_id != second.action_id


def test_p30_a_prefix_that_changes_which_program_runs_asks(cast, scout):
    rule(cast)
    assert submitted(run(scout, "PATH=/tmp git status")).status == "pending"


def test_p26_a_rule_for_one_address_is_not_one_for_another(cast, scout):
    rule(cast, "fetch https://x.example")
    assert submitted(run(scout, "fetch https://x.example")).status == "running"
    assert submitted(run(scout, "fetch https://y.example")).status == "pending"


def test_p67_a_copied_stream_needs_no_prompt(cast, scout):
    rule(cast, "pnpm compile <nothing>")
    assert submitted(run(scout, "pnpm compile 2>&1")).status == "running"


@pytest.mark.parametrize(
    ("arguments", "profile"),
    [
        ({"env": {"A": "1"}}, {}),
        ({"stdin": "yes"}, {}),
        ({"cwd": "/"}, {}),
        ({"cwd": "/workshop"}, {}),
        ({"cwd": "/work/../etc"}, {}),
        ({}, {"env": {"A": "1"}}),
    ],
)
def test_an_allow_is_for_plain_calls_in_work_alone(cast, scout, arguments, profile):
    rule(cast)
    plain = run(scout, "git status")
    strange = run(scout, arguments={**plain.arguments, **arguments}, profile={**plain.profile, **profile})
    assert submitted(strange).status == "pending"
    assert submitted(plain).status == "running"


def test_a_line_beyond_4_kib_is_judged_too(cast, scout):
    from approvals import payloads

    rule(cast, "curl", "deny")
    held = payloads.keep(payloads.hold(f"curl {'x' * 5000}".encode()))
    assert submitted(run(scout, arguments={**run(scout).arguments, "command": held})).status == "denied"


@pytest.mark.parametrize("more", [8 << 10, 60 << 10])
def test_a_line_is_denied_however_much_is_put_around_it(cast, scout, more):
    rule(cast, "rm -rf", "deny")
    padded = f"echo {'x' * more}; rm -rf ~"
    assert submitted(run(scout, padded)).status == "denied"


@pytest.mark.parametrize("mode", ["rules", "always"])
def test_what_always_asks_can_be_denied_and_not_allowed(cast, mode):
    agent = agents.change_tools(cast.scout, by=cast.alice, command_mode=mode)
    caller = cast.caller(agent)
    rule(cast)
    rule(cast, "curl", "deny")
    assert submitted(run(caller, "git status")).status == ("pending" if mode == "always" else "running")
    assert submitted(run(caller, "curl x")).status == "denied"


def test_scopes(cast, scout):
    other = cast.caller(cast.other)
    rule(cast, "one", agent=cast.scout)
    rule(cast, "two", agent=cast.scout, conversation="c")
    assert submitted(run(scout, "one")).status == "running"
    assert submitted(run(other, "one")).status == "pending"
    assert submitted(run(scout, "two")).status == "pending"
    assert submitted(run(scout, "two", conversation="c")).status == "running"
    assert submitted(run(other, "two", conversation="c")).status == "pending"


def test_rules_of_another_workspace_say_nothing(cast, scout):
    rule(cast, by=cast.mallory)
    assert submitted(run(scout, "git status")).status == "pending"


def test_paths_are_allowed_as_they_stand_and_denied_however_they_are_written(cast, scout):
    rule(cast, "/work/docs/**", tool="write")
    rule(cast, "/work/docs/private", "deny", tool="write")
    assert submitted(writes(scout, "/work/docs/a/b.md")).status == "running"
    for path in ("/work/docs/../run.sh", "/work/Docs/a.md", "/work/docsx/a", "/work/docs"):
        assert submitted(writes(scout, path)).status == "pending", path
    for path in ("/work/docs/private/x", "/work/docs/PRIVATE", "/work/docs/./private/x", "/work/docs/priv\u200bate/x"):
        assert submitted(writes(scout, path)).status == "denied", path


def test_a_rule_of_writes_says_nothing_of_commands(cast, scout):
    rule(cast, "/work/**", tool="write")
    assert submitted(run(scout, "/work/run")).status == "pending"
    assert (
        submitted(run(scout, kind="write", tool="edit", arguments={"path": "/work/x", "edits": []})).status == "pending"
    )


def test_what_no_rule_can_speak_of_asks(cast, scout):
    rule(cast, "/work/**", tool="write")
    assert submitted(run(scout, kind="write", tool="unseal", arguments={"path": "/work/.env"})).status == "pending"
    assert submitted(run(scout, tool="install", arguments={"packages": ["gawk"]})).status == "pending"


def test_judging_that_fails_denies_and_is_logged(cast, scout, monkeypatch, caplog):
    rule(cast)

    def broken(*_):
        raise RuntimeError("boom")

    monkeypatch.setattr(judging, "judge", broken)
    action = submitted(run(scout, "git status"))
    assert (action.status, action.decided_by) == ("denied", "system")
    assert "boom" in caplog.text


@pytest.mark.parametrize("ending", ["expires", "disabled", "owner gone", "suspended"])
def test_a_rule_that_is_over_allows_nothing(cast, scout, ending):
    made = rule(cast)
    if ending == "expires":
        Rule.objects.filter(pk=made.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    elif ending == "disabled":
        assert acts.disable(made, by=cast.alice)
        assert not acts.disable(made, by=cast.alice)
    elif ending == "owner gone":
        members.give(cast.bob, "members:manage", by=None)
        members.remove(cast.alice, by=cast.bob)
    else:
        assert acts.suspend_of(cast.alice, by=None) == 1
    assert submitted(run(scout, "git status")).status == "pending"


def test_a_deny_stays_when_its_owner_goes_and_an_allow_until_it_is_adopted(cast, scout):
    allowing = rule(cast)
    rule(cast, "curl", "deny")
    acts.suspend_of(cast.alice, by=None)
    assert submitted(run(scout, "curl x")).status == "denied"
    members.give(cast.bob, "rules:manage", by=None)
    allowing.refresh_from_db()
    acts.adopt(allowing, by=cast.bob)
    action = submitted(run(scout, "git status"))
    assert action.under == [{"rule": allowing.pk, "version": 2}]


def test_a_deny_made_meanwhile_stops_what_was_approved(cast, scout):
    action = pending(scout, "curl x")
    decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    rule(cast, "curl", "deny", note="Not today.")
    assert gate.start(action.pk) is None
    action.refresh_from_db()
    assert (action.status, action.decided_by) == ("denied", "rule")
    assert "Not today." in action.end_reason


def test_an_allow_taken_away_meanwhile_does_not_stop_what_a_person_approved(cast, scout):
    made = rule(cast, "other")
    action = pending(scout, "git status")
    decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    acts.disable(made, by=cast.alice)
    rule(cast, "git status", "ask")
    assert gate.start(action.pk)


def test_a_change_of_rules_supersedes_nothing_that_waits(cast, scout):
    action = pending(scout, "git status")
    rule(cast)
    assert gate.supersede_outdated() == 0
    action.refresh_from_db()
    assert action.status == "pending"


def test_only_rules_manage_changes_rules(cast):
    made = rule(cast)
    for act in (
        lambda: rule(cast, by=cast.bob),
        lambda: acts.change(made, by=cast.bob, note="x"),
        lambda: acts.disable(made, by=cast.bob),
        lambda: acts.adopt(made, by=cast.bob),
    ):
        with pytest.raises(PermissionDenied):
            act()


def test_each_change_is_another_version_and_the_log_has_it_whole(cast):
    made = rule(cast, matches=["git status -s"])
    changed = acts.change(made, by=cast.alice, pattern="git log", matches=["git log -n 3"])
    assert changed.version == 2
    entry = AuditEntry.objects.get(event="rule.changed", subject_id=made.pk)
    assert entry.data["before"]["pattern"] == "git status"
    assert entry.data["rule"]["pattern"] == "git log"
    assert not list(audit.broken_links(cast.workspace.__class__.objects.get(pk=cast.workspace.pk)))


def test_two_who_change_one_rule_do_not_both_win(cast):
    made = rule(cast)
    mine, theirs = Rule.objects.get(pk=made.pk), Rule.objects.get(pk=made.pk)
    acts.change(mine, by=cast.alice, note="mine")
    with pytest.raises(Conflict):
        acts.change(theirs, by=cast.alice, note="theirs")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"pattern": ""}, "pattern"),
        ({"pattern": "git 'status"}, "pattern"),
        ({"pattern": "git\u200b"}, "pattern"),
        ({"pattern": "a\nb"}, "pattern"),
        ({"tool": "write", "pattern": "docs/x"}, "pattern"),
        ({"tool": "write", "pattern": "/work/../etc"}, "pattern"),
        ({"tool": "read"}, "tool"),
        ({"effect": "maybe"}, "effect"),
        ({"conversation": "c"}, "agent"),
        ({"note": "a\nb"}, "note"),
        ({"matches": ["git push"]}, "matches"),
        ({"does_not_match": ["git status"]}, "does_not_match"),
        ({"matches": [""]}, "matches"),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "expires_at"),
        ({"stranger": 1}, "stranger"),
    ],
)
def test_what_cannot_be_a_rule_names_its_field_and_is_not_kept(cast, fields, field):
    with pytest.raises(Invalid) as refused:
        acts.make(by=cast.alice, **{"effect": "allow", "tool": "run", "pattern": "git status", **fields})
    assert refused.value.fields["field"] == field
    assert not Rule.objects.exists()


def test_a_rule_for_an_agent_of_others_is_none(cast):
    with pytest.raises(Invalid):
        rule(cast, agent=cast.scout, by=cast.mallory)


def test_a_suspended_agent_is_held_by_what_tightens_alone(cast, scout, monkeypatch):
    rule(cast)
    rule(cast, "curl", "deny")
    monkeypatch.setattr(memory, "suspended", lambda agent_id: agent_id == cast.scout.pk)
    assert submitted(run(scout, "git status")).status == "pending"
    assert submitted(run(scout, "curl x")).status == "denied"
    assert submitted(run(cast.caller(cast.other), "git status")).status == "running"
