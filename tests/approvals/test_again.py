"""An approved edit whose file changed elsewhere: a person is asked again, or it ends and says why."""

import pytest

from approvals import again, decisions, gate, room
from approvals.models import Action
from console.workspaces import agents, halts, members, permissions
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db


@pytest.fixture
def approved(cast) -> Action:
    action = pending(cast.caller(cast.scout))
    return decisions.decide(action, "approve", by=cast.bob, digest=action.digest)


def carry(action: Action) -> tuple[str, Action]:
    """Read anew, as the one who starts it does."""
    found = Action.objects.get(pk=action.pk)
    answer = again.propose_again(found, bases={"/work/a": "1" * 64}, replaced={}, why="It changed.")
    return answer, Action.objects.get(pk=action.pk)


def test_it_waits_for_a_person_again(approved) -> None:
    answer, first = carry(approved)
    assert (first.status, first.error["next_action"]) == ("superseded", answer)
    assert Action.objects.get(pk=answer).status == "pending"


def test_what_a_rule_or_a_grant_would_let_through_now_waits_all_the_same(cast, approved, monkeypatch) -> None:
    allow = gate.policy.Verdict("allow", by="grant", why="A grant allows it.", under=("grn_1",))
    monkeypatch.setattr(gate.policy, "judge", lambda **_: allow)
    answer, first = carry(approved)
    assert first.status == "superseded"
    came_back = Action.objects.get(pk=answer)
    assert (came_back.status, came_back.why_asked) == ("pending", again.ALLOWED)


def no_reviewer(cast, monkeypatch) -> None:
    for member in (cast.alice, cast.bob):
        members.take(member, permissions.APPROVALS_REVIEW, by=cast.alice)


def not_enabled(cast, monkeypatch) -> None:
    agents.change_tools(cast.scout, by=None, sandbox_enabled=False)


def halted(cast, monkeypatch) -> None:
    halts.declare(cast.workspace, cast.scout, by=cast.bob, reason="Odd")


def no_room(cast, monkeypatch) -> None:
    monkeypatch.setattr(room, "OPEN_PROPOSALS", 0)


def denied(cast, monkeypatch) -> None:
    monkeypatch.setattr(gate.policy, "judge", lambda **_: gate.policy.Verdict("deny", by="rule", why="A rule says no."))


@pytest.mark.parametrize("happens", [no_reviewer, not_enabled, halted, no_room, denied])
def test_where_nobody_may_be_asked_it_ends_and_says_why(cast, approved, monkeypatch, happens) -> None:
    happens(cast, monkeypatch)
    answer, first = carry(approved)
    assert (answer, first.status, first.error["code"]) == ("", "superseded", "stale_edit")
    assert first.end_reason.startswith("It changed. ")
    assert len(first.end_reason) > len("It changed. ")
    assert Action.objects.count() == 1
