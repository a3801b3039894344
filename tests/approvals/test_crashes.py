"""A crash between any two writes of any act leaves nothing half done, and the same act then does it, once."""

import pytest

from approvals import again, decisions, gate, memory
from approvals.models import Action, Decision, Execution
from console.workspaces import agents, audit
from console.workspaces.models import Change
from sandboxes import dispatch, ends, lifecycle
from sandboxes.models import Command
from tests.api.conftest import make_sandbox
from tests.approvals.crashes import crash_at, dies_at, everything
from tests.approvals.proposals import pending, run

pytestmark = pytest.mark.database


class Scene:
    """One action of scout's, moved as far as an act needs it."""

    def __init__(self, cast) -> None:
        self.cast, self.sandbox = cast, make_sandbox(cast.scout)
        self.caller = cast.caller(cast.scout)

    def waiting(self, command="echo hi", **more) -> Action:
        return pending(self.caller, command, sandbox_id=self.sandbox.pk, **more)

    def decide(self, action, verdict, by=None):
        return decisions.decide(action, verdict, by=by or self.cast.bob, digest=action.digest, reason="r")

    def running(self) -> gate.Pass:
        return dispatch.begin(self.decide(self.waiting(), "approve").pk)


def propose(scene):
    return lambda: dispatch.submit(run(scene.caller, sandbox_id=scene.sandbox.pk, idempotency_key="k"))


def run_at_once(scene):
    agents.change_tools(scene.cast.scout, by=None, command_mode="never")
    return lambda: dispatch.submit(run(scene.caller, sandbox_id=scene.sandbox.pk, idempotency_key="k"))


def approve(scene):
    action = scene.waiting()
    return lambda: scene.decide(action, "approve")


def approve_of_two(scene):
    action = scene.waiting()
    Action.objects.update(approvals_needed=2)
    action.refresh_from_db()
    scene.decide(action, "approve", by=scene.cast.alice)
    return lambda: scene.decide(action, "approve")


def decide_three(verdict):
    def scene_of(scene):
        actions = [scene.waiting(idempotency_key=f"k{number}") for number in range(3)]
        return lambda: scene.decide(actions[0], verdict)

    return scene_of


def third_denial(scene):
    for number in range(2):
        scene.decide(scene.waiting(f"echo {number}"), "deny")
    action = scene.waiting("echo 3")
    return lambda: scene.decide(action, "deny")


def denied_again(scene):
    scene.decide(scene.waiting(), "deny")
    return lambda: scene.waiting(idempotency_key="k")


def lift(scene):
    third_denial(scene)()
    return lambda: memory.lift_suspension(scene.cast.scout, by=scene.cast.bob, reason="r")


def begin(scene):
    action = scene.decide(scene.waiting(), "approve")
    return lambda: dispatch.begin(action.pk)


def succeed(scene):
    pass_ = scene.running()
    return lambda: ends.succeed(pass_, {"exit_code": 0, "status": "exited", "duration_ms": 1})


def lose(scene):
    pass_ = scene.running()
    return lambda: ends.fail(pass_, status="unknown", code="lost", detail="lost")


def cancel(scene):
    action = scene.waiting()
    return lambda: gate.cancel(action, by=scene.caller)


def expire(scene):
    action = scene.waiting()
    Action.objects.update(expires_at=action.created_at)
    return lambda: gate.expire()


def supersede(scene):
    scene.waiting()
    agents.change_tools(scene.cast.scout, by=None, write_mode="always")
    return lambda: gate.supersede_outdated()


def stopped_at_start(scene):
    action = scene.decide(scene.waiting(), "approve")
    agents.change_tools(scene.cast.scout, by=None, sandbox_enabled=False)
    return lambda: dispatch.begin(action.pk)


def carry_over(scene):
    action = scene.decide(scene.waiting(), "approve")
    return lambda: again.propose_again(action, bases={"/work/a": None}, replaced={}, why="It changed.")


def sandbox_ends(scene):
    scene.waiting()
    scene.decide(scene.waiting("echo 2"), "approve")
    return lambda: lifecycle.end(scene.sandbox, "deleted")


ACTS = {
    "propose": propose, "run at once": run_at_once, "approve": approve, "approve of two": approve_of_two,
    "approve three as one": decide_three("approve"), "deny three as one": decide_three("deny"),
    "third denial": third_denial, "denied again": denied_again, "lift": lift, "begin": begin, "succeed": succeed,
    "lose": lose, "cancel": cancel, "expire": expire, "supersede": supersede, "stopped at start": stopped_at_start,
    "carry over": carry_over, "sandbox ends": sandbox_ends,
}  # fmt: skip


@pytest.mark.parametrize("name", ACTS)
def test_a_crash_between_any_two_writes_leaves_nothing_half_done(cast, name):
    act = ACTS[name](Scene(cast))
    before, number = everything(), 1
    while dies_at(number, act):
        assert everything() == before, f"half done after {number - 1} writes"
        number += 1
    assert number > 2, "it wrote nothing, or one row without its record"
    assert everything() != before
    whole(cast)


def whole(cast) -> None:
    """The records hold, and what ran is what was approved."""
    cast.workspace.refresh_from_db()
    assert list(audit.broken_links(cast.workspace)) == []
    seqs = list(Change.objects.filter(workspace=cast.workspace).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, len(seqs) + 1))
    ran = set(Execution.objects.values_list("pk", flat=True))
    assert ran == set(Action.objects.exclude(started_at=None).values_list("pk", flat=True))
    assert set(Command.objects.values_list("action_id", flat=True)) == ran
    for decision in Decision.objects.filter(action__in=ran):
        assert (decision.verdict, decision.digest) == ("approve", decision.action.digest)


def test_what_was_committed_as_running_is_asked_for_by_its_id_and_never_started_again(cast):
    """The server died after the start was committed, before or after it was sent: the runner knows which."""
    action_id = Scene(cast).running().action_id
    assert dispatch.interrupted() == [(action_id, Action.objects.get(pk=action_id).sandbox_id)]
    assert dispatch.begin(action_id) is None
    first, second = gate.again(action_id), gate.again(action_id)
    assert first.action_id == second.action_id == action_id
    assert gate.finish(first, status="unknown", error={"code": "lost", "detail": "lost"})
    assert not gate.finish(second, status="succeeded", result={})
    assert gate.again(action_id) is None
    assert dispatch.begin(action_id) is None
    assert dispatch.interrupted() == []
    assert Execution.objects.count() == 1


def test_a_crash_is_at_the_write_that_was_named(cast):
    """Else the tests above would show nothing."""
    with crash_at(0) as writes:
        propose(Scene(cast))()
    told = [" ".join(sql.split()[:3]) for sql in writes]
    assert any("approvals_action" in sql for sql in told)
    assert any("workspaces_auditentry" in sql for sql in told)
    assert any("workspaces_change" in sql for sql in told)
