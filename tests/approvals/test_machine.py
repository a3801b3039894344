"""Agents, deciders, workers, a clock and crashes in any order: one decision, at most one execution, every end named."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from approvals import decisions, gate, states
from approvals.errors import AlreadyDecided, TooMany, WrongDigest
from approvals.models import Action, Decision, Execution
from console.workspaces import agents, audit
from console.workspaces.models import Agent
from tests import people
from tests.approvals.proposals import run

pytestmark = pytest.mark.database


class Crash(Exception):
    """The process died before its transaction was committed."""


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
        transaction.set_rollback(True)
        self.outer.__exit__(None, None, None)

    def remember(self) -> None:
        for action in Action.objects.all():
            history = self.seen.setdefault(action.pk, [action.status])
            if history[-1] != action.status:
                assert action.status in states.TABLE[history[-1]], (history, action.status)
                history.append(action.status)

    @rule(target=actions, command=st.sampled_from(["a", "b", "c"]), key=st.sampled_from([None, "k1"]))
    def propose(self, command, key):
        try:
            version = Agent.objects.get(pk=self.cast.scout.pk).settings_version
            proposal = run(self.caller, command, idempotency_key=f"{key}-{command}" if key else None)
            proposal.profile["settings_version"] = version
            return gate.submit(proposal).action_id
        except (TooMany, gate.IdempotencyMismatch):
            return None

    @rule(action=actions, verdict=st.sampled_from(["approve", "deny"]), who=st.sampled_from(["alice", "bob"]))
    def decide(self, action, verdict, who):
        if action is None:
            return
        found = Action.objects.get(pk=action)
        try:
            decisions.decide(found, verdict, by=getattr(self.cast, who), digest=found.digest, reason="r")
        except WrongDigest:
            assert found.profile["settings_version"] != Agent.objects.get(pk=found.agent_id).settings_version
        except AlreadyDecided:
            assert found.status != "pending" or found.expires_at <= timezone.now()

    @rule(action=actions)
    def start(self, action):
        if action is not None and (pass_ := gate.start(action)) is not None:
            self.passes.setdefault(action, []).append(pass_)

    @rule(action=actions)
    def start_and_crash_before_commit(self, action):
        if action is None:
            return
        with suppress(Crash), transaction.atomic():
            gate.start(action)
            raise Crash

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
    def nothing_ran_that_nobody_approved(self):
        for action in Action.objects.exclude(started_at=None):
            assert list(action.decisions.values_list("verdict", flat=True)) == ["approve"]

    @invariant()
    def one_decision_counts(self):
        assert all(action.decisions.count() <= 1 for action in Action.objects.all())
        for decision in Decision.objects.filter(verdict="deny"):
            assert decision.action.status == "denied"

    @invariant()
    def the_chain_holds(self):
        self.cast.workspace.refresh_from_db()
        assert list(audit.broken_links(self.cast.workspace)) == []


@pytest.mark.django_db
def test_no_order_of_events_breaks_the_gate():
    run_state_machine_as_test(
        Approvals,
        settings=settings(
            max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
