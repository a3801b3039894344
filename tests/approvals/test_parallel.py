"""Agents, reviewers, workers and the clock in real threads, each with a database handle of its own."""

import os
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.utils import timezone

from approvals import decisions, gate
from approvals.errors import AlreadyDecided, Outdated, TooMany, WrongDigest
from approvals.models import Action, Decision, Execution
from console.workspaces import agents, audit
from console.workspaces.errors import IdempotencyMismatch
from console.workspaces.models import Agent, Change
from sandboxes import dispatch, ends, lifecycle, overdue
from sandboxes.models import Command, Sandbox
from tests.api.conftest import make_sandbox
from tests.approvals.proposals import pending, run

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]
EXPECTED = (AlreadyDecided, Outdated, WrongDigest, TooMany, IdempotencyMismatch)


class Crowd:
    """Threads that begin together; what one of them raises fails the test."""

    def __init__(self) -> None:
        self.works, self.faults = [], []
        self.did, self._lock = Counter(), threading.Lock()

    def note(self, what) -> None:
        with self._lock:  # `+=` is read, then written
            self.did[what] += 1

    def add(self, work, times=1):
        self.works += [work] * times

    def go(self) -> None:
        barrier = threading.Barrier(len(self.works))
        threads = [threading.Thread(target=self._one, args=(work, barrier)) for work in self.works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads), "they wait for each other"
        assert not self.faults, self.faults[:3]

    def _one(self, work, barrier) -> None:
        try:
            barrier.wait(30)
            work()
        except Exception as error:
            self.faults.append(f"{type(error).__name__}: {error}")
        finally:
            connections.close_all()


def test_twenty_deciders_and_ten_workers_make_one_decision_and_one_execution(committed_cast):
    cast, crowd = committed_cast, Crowd()
    action = pending(cast.caller(cast.scout))

    def decide(verdict, by):
        mine = Action.objects.get(pk=action.pk)
        try:
            decisions.decide(mine, verdict, by=by, digest=mine.digest, reason="r")
            crowd.note("decided")
        except AlreadyDecided:
            crowd.note("late")

    def work():
        until = time.monotonic() + 3
        while time.monotonic() < until and not crowd.did["denied"]:
            if gate.start(action.pk):
                crowd.note("started")
            if Action.objects.get(pk=action.pk).status not in ("pending", "approved"):
                return

    crowd.add(lambda: decide("approve", cast.bob), 18)
    crowd.add(lambda: decide("approve", cast.alice), 2)
    crowd.add(work, 10)
    crowd.go()
    assert (crowd.did["decided"], crowd.did["late"], crowd.did["started"]) == (1, 19, 1)
    assert (Decision.objects.count(), Execution.objects.count()) == (1, 1)
    assert Action.objects.get(pk=action.pk).status == "running"


def test_of_an_approval_and_a_denial_at_once_one_counts_and_what_was_denied_never_starts(committed_cast):
    cast, caller = committed_cast, committed_cast.caller(committed_cast.scout)
    for number in range(6):
        crowd, action = Crowd(), pending(caller, f"echo {number}")

        def start(crowd=crowd, action=action):
            if gate.start(action.pk):
                crowd.note("started")

        def decide(verdict, by, crowd=crowd, action=action):
            mine = Action.objects.get(pk=action.pk)
            try:
                crowd.note(decisions.decide(mine, verdict, by=by, digest=mine.digest, reason="r").status)
            except AlreadyDecided:
                crowd.note("late")

        crowd.add(lambda: decide("approve", cast.bob), 2)
        crowd.add(lambda: decide("deny", cast.alice), 2)
        crowd.add(start, 2)
        crowd.go()
        started = crowd.did["started"] + bool(gate.start(action.pk))
        found = Action.objects.get(pk=action.pk)
        assert crowd.did["late"] == 3
        assert started == Execution.objects.filter(pk=action.pk).count() == (found.status == "running")


class Day:
    """What goes on in a console, through the transactions that the product has: each act once, at random."""

    def __init__(self, cast, crowd) -> None:
        self.cast, self.crowd = cast, crowd
        self.caller, self.sandbox = cast.caller(cast.scout), make_sandbox(cast.scout)
        self.passes: list[gate.Pass] = []

    def many(self, act, times):
        def loop():
            choose = random.Random(threading.get_ident())
            for _ in range(times):
                try:
                    act(choose)
                except EXPECTED:
                    self.crowd.note("refused")

        return loop

    def propose(self, choose):
        key = choose.choice([None, f"k{choose.randrange(9)}", f"k{choose.randrange(999)}"])
        version = Agent.objects.get(pk=self.cast.scout.pk).settings_version
        proposal = run(self.caller, f"echo {choose.randrange(99)}", sandbox_id=self.sandbox.pk, idempotency_key=key)
        proposal.profile["settings_version"] = version
        dispatch.submit(proposal)

    def decide(self, choose):
        if action := Action.objects.pending().order_by("?").first():
            verdict = choose.choice(["approve"] * 9 + ["deny"])
            by = choose.choice([self.cast.alice, self.cast.bob])
            decisions.decide(action, verdict, by=by, digest=action.digest, reason="r")

    def begin(self, choose):
        for action_id, _ in dispatch.approved():
            if pass_ := dispatch.begin(action_id):
                self.passes.append(pass_)

    def end(self, choose):
        if not self.passes:
            return
        pass_ = choose.choice(self.passes)
        if choose.random() < 0.7:
            ends.succeed(pass_, {"exit_code": 0, "status": "exited", "duration_ms": 1})
        else:
            ends.fail(pass_, status="unknown", code="lost", detail="lost")

    def clock(self, choose):
        gate.expire()
        gate.supersede_outdated()
        lifecycle.touch(self.sandbox.pk)
        Sandbox.objects.filter(pk=self.sandbox.pk).update(persistent=choose.random() < 0.5)
        overdue.act(overdue.Due(self.sandbox.pk, "stopped", "idle"), can_stop=True)

    def settings(self, choose):
        if choose.random() < 0.2:
            agent = Agent.objects.get(pk=self.cast.scout.pk)
            agents.change_tools(agent, by=self.cast.alice, write_mode=choose.choice(["always", "rules"]))
        if action := Action.objects.pending().order_by("?").first():
            gate.cancel(action, by=self.caller)


def test_whatever_happens_at_once_nobody_waits_in_a_circle_and_every_record_holds(committed_cast):
    crowd = Crowd()
    day = Day(committed_cast, crowd)
    for act, threads, times in (
        (day.propose, 5, 12), (day.decide, 4, 15), (day.begin, 3, 30), (day.end, 3, 20), (day.clock, 1, 20),
        (day.settings, 1, 8),
    ):  # fmt: skip
        crowd.add(day.many(act, times), threads)
    crowd.go()
    Action.objects.update(created_at=timezone.now() - timedelta(minutes=2))  # so that none are too many
    for _ in range(40):  # what the others left to do, and more, so that something certainly ran
        for act in (day.propose, day.decide):
            with suppress(*EXPECTED):
                act(random)
        day.begin(random)
    check(committed_cast, day.passes)


def check(cast, passes) -> None:
    ran = set(Execution.objects.values_list("pk", flat=True))
    assert ran == set(Action.objects.exclude(started_at=None).values_list("pk", flat=True))
    assert Counter(pass_.action_id for pass_ in passes) == Counter(ran)
    assert len(ran) > 3, "too little happened to show anything"
    for action in Action.objects.filter(pk__in=ran):
        assert [d.verdict for d in action.decisions.all()] == ["approve"]
        assert {d.digest for d in action.decisions.all()} == {action.digest}
    assert set(Command.objects.values_list("action_id", flat=True)) == ran
    seqs = list(Change.objects.filter(workspace=cast.workspace).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, len(seqs) + 1))
    cast.workspace.refresh_from_db()
    assert list(audit.broken_links(cast.workspace)) == []


def test_twenty_open_proposals_are_the_most_however_many_come_at_once(committed_cast):
    cast, crowd = committed_cast, Crowd()
    caller = cast.caller(cast.scout)
    for number in range(18):
        pending(caller, f"echo {number}")
    Action.objects.update(created_at=timezone.now() - timedelta(minutes=2))

    def propose(number):
        try:
            gate.submit(run(caller, f"echo more {number}"))
        except TooMany:
            crowd.note("refused")

    for number in range(8):
        crowd.add(lambda number=number: propose(number))
    crowd.go()
    assert (Action.objects.pending().count(), crowd.did["refused"]) == (20, 6)


def test_one_idempotency_key_at_once_from_ten_connections_is_one_action(committed_cast):
    cast, crowd = committed_cast, Crowd()
    caller, found = cast.caller(cast.scout), []
    crowd.add(lambda: found.append(gate.submit(run(caller, idempotency_key="k")).action_id), 10)
    crowd.go()
    assert len(set(found)) == 1
    assert Action.objects.count() == 1


def test_these_tests_run_where_they_say():
    """On PostgreSQL when bin/test says so; a part that quietly ran on SQLite would show nothing."""
    wanted = "postgresql" if os.environ.get("SANDGATE_DATABASE_URL") else "sqlite"
    assert connection.vendor == wanted
