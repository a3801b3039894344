"""Agents, deciders, workers, a clock and crashes in any order: one decision, at most one execution, every end named."""

import os
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from approvals import decisions, gate, room, states
from approvals.errors import AlreadyDecided, NoReviewer, TooMany, WrongDigest
from approvals.models import Action, Decision, Execution
from console.workspaces import agents, audit, members, permissions
from console.workspaces.errors import IdempotencyMismatch, PermissionDenied
from console.workspaces.models import Agent, Change
from tests import people
from tests.approvals.crashes import dies_at
from tests.approvals.proposals import run

pytestmark = pytest.mark.database
EXAMPLES, STEPS = int(os.environ.get("SANDGATE_EXAMPLES", "12")), 30  # each run takes others; for a night: 1000


class Approvals(RuleBasedStateMachine):
    actions = Bundle("actions")

    def __init__(self) -> None:
        super().__init__()
        self.outer = transaction.atomic()
        self.outer.__enter__()
        self.cast = people.cast()
        self.caller = self.cast.caller(self.cast.scout)
        self.passes: dict[str, list[gate.Pass]] = {}
        self.seen: dict[str, list[str]] = {}

    def teardown(self) -> None:
        try:
            self.everything_ends_in_a_named_state()
        finally:
            transaction.set_rollback(True)
            self.outer.__exit__(None, None, None)

    def everything_ends_in_a_named_state(self) -> None:
        """When people, agents and workers are gone, the clock and a restart end all that is left."""
        late = timezone.now() - timedelta(seconds=1)
        Action.objects.filter(status="pending").update(expires_at=late)
        Action.objects.filter(status="approved").update(start_by=late)
        gate.expire()
        for action in Action.objects.filter(status="running"):
            assert gate.finish(gate.again(action.pk), status="unknown", error={"code": "lost", "detail": "lost"})
        assert not Action.objects.open().exists()
        assert {action.status for action in Action.objects.all()} <= set(states.ENDED)
        self.remember()

    def remember(self) -> None:
        for action in Action.objects.all():
            history = self.seen.setdefault(action.pk, [action.status])
            if history[-1] != action.status:
                assert action.status in states.TABLE[history[-1]], (history, action.status)
                history.append(action.status)

    @rule(target=actions, command=st.sampled_from(["a", "b", "c"]), key=st.sampled_from([None, "k1", "k2"]))
    def propose(self, command, key):
        try:
            version = Agent.objects.get(pk=self.cast.scout.pk).settings_version
            proposal = run(self.caller, command, idempotency_key=f"{key}-{command}" if key else None)
            proposal.profile["settings_version"] = version
            return gate.submit(proposal).action_id
        except (TooMany, IdempotencyMismatch):
            return None
        except NoReviewer:
            assert not room.reviewers(Agent.objects.get(pk=self.cast.scout.pk)).exists()

    @rule(action=actions, verdict=st.sampled_from(["approve", "deny"]), who=st.sampled_from(["alice", "bob"]))
    def decide(self, action, verdict, who):
        if action is None:
            return
        found = Action.objects.get(pk=action)
        try:
            decisions.decide(found, verdict, by=getattr(self.cast, who), digest=found.digest, reason="r")
        except WrongDigest:
            assert found.profile["settings_version"] != Agent.objects.get(pk=found.agent_id).settings_version
        except PermissionDenied:
            assert not getattr(self.cast, who).may(permissions.APPROVALS_REVIEW)
        except AlreadyDecided:
            voted = found.decisions.filter(verdict="approve", by=getattr(self.cast, who)).exists()
            assert found.status != "pending" or found.expires_at <= timezone.now() or voted

    @rule(action=actions)
    def start(self, action):
        if action is not None and (pass_ := gate.start(action)) is not None:
            self.passes.setdefault(action, []).append(pass_)

    @rule(action=actions, act=st.sampled_from(["start", "approve", "deny", "cancel"]), write=st.integers(1, 9))
    def the_process_dies_at_a_write(self, action, act, write):
        """Whatever it was about to do did not happen; another one takes up what is there."""
        if action is None:
            return
        before = Action.objects.get(pk=action)
        status = before.status  # an act reads its action again
        acts = {
            "start": lambda: gate.start(action),
            "cancel": lambda: gate.cancel(before, by=self.caller),
            "approve": lambda: decisions.decide(before, "approve", by=self.cast.bob, digest=before.digest),
            "deny": lambda: decisions.decide(before, "deny", by=self.cast.bob, digest=before.digest, reason="r"),
        }
        with suppress(AlreadyDecided, WrongDigest, PermissionDenied), transaction.atomic():
            if not dies_at(write, acts[act]):
                transaction.set_rollback(True)  # it had fewer writes: it dies right before its commit
        assert Action.objects.get(pk=action).status == status

    @rule()
    def the_server_starts_again(self):
        """What was running is asked for by its id: a Pass to ask with, never a second execution."""
        for action in Action.objects.filter(status="running"):
            assert gate.again(action.pk).action_id == action.pk
            assert gate.start(action.pk) is None

    @rule(action=actions)
    def another_approval_is_needed(self, action):
        Action.objects.filter(pk=action, status="pending").exclude(decisions__verdict="approve").update(
            approvals_needed=2
        )

    @rule(back=st.booleans())
    def a_reviewer_leaves_or_comes_back(self, back):
        (members.give if back else members.take)(self.cast.bob, permissions.APPROVALS_REVIEW, by=self.cast.alice)

    @rule(action=actions, end=st.sampled_from(["succeeded", "failed", "unknown"]))
    def finish(self, action, end):
        for pass_ in self.passes.get(action, []):  # which may have ended
            error = None if end == "succeeded" else {"code": "x", "detail": "x"}
            assert gate.finish(pass_, status=end, error=error) in (True, False)

    @rule(action=actions)
    def cancel(self, action):
        if action is not None:
            gate.cancel(Action.objects.get(pk=action), by=self.caller)

    @rule(action=actions)
    def deliver(self, action):
        if action is not None:
            gate.delivered(action)

    @rule(hours=st.sampled_from([0, 25]))
    def time_passes(self, hours):
        late = timezone.now() - timedelta(seconds=1)
        if hours:
            Action.objects.filter(status="pending").update(expires_at=late)
            Action.objects.filter(status="approved").update(start_by=late)
        gate.expire()
        gate.supersede_outdated()

    @rule()
    def settings_change(self):
        agent = Agent.objects.get(pk=self.cast.scout.pk)
        mode = "rules" if agent.write_mode == "always" else "always"
        agents.change_tools(agent, by=self.cast.alice, write_mode=mode)

    @invariant()
    def every_move_is_in_the_table(self):
        self.remember()

    @invariant()
    def at_most_one_pass_and_one_execution_each(self):
        assert all(len(passes) == 1 for passes in self.passes.values())
        ran = set(Execution.objects.values_list("pk", flat=True))
        assert ran == set(Action.objects.exclude(started_at=None).values_list("pk", flat=True))
        assert ran == set(self.passes)

    @invariant()
    def what_ran_is_what_enough_reviewers_approved_and_nobody_denied(self):
        for action in Action.objects.exclude(started_at=None):
            votes = list(action.decisions.values_list("verdict", "digest"))
            assert set(votes) == {("approve", action.digest)}
            assert len(votes) >= action.approvals_needed
        for pass_ in (each for found in self.passes.values() for each in found):
            assert pass_.digest == Action.objects.get(pk=pass_.action_id).digest

    @invariant()
    def one_decision_counts(self):
        for decision in Decision.objects.filter(verdict="deny"):
            assert decision.action.status == "denied"
        for action in Action.objects.filter(status="approved"):
            assert action.decisions.filter(verdict="approve").count() >= action.approvals_needed

    @invariant()
    def what_ended_undone_never_starts_and_unknown_never_again(self):
        for action in Action.objects.filter(status__in=[*states.ENDED]):
            assert gate.start(action.pk) is None
            assert gate.again(action.pk) is None
            assert (action.status in ("succeeded", "failed", "unknown")) == (action.pk in self.passes)

    @invariant()
    def both_records_hold(self):
        self.cast.workspace.refresh_from_db()
        assert list(audit.broken_links(self.cast.workspace)) == []
        seqs = list(Change.objects.filter(workspace=self.cast.workspace).order_by("seq").values_list("seq", flat=True))
        assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.django_db
def test_no_order_of_events_breaks_the_gate():
    run_state_machine_as_test(
        Approvals,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
