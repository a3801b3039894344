"""What a card says of its agent is true at every state, and of a file that was written since."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import decisions, states
from approvals.models import Action
from console.pages import cards, titles
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db
SAID = {
    "pending": "wants to run a command",
    "approved": "asked to run a command",
    "running": "asked to run a command",
    "succeeded": "ran a command",
    "failed": "tried to run a command",
    "unknown": "began to run a command",
    "denied": "wanted to run a command",
    "expired": "wanted to run a command",
    "cancelled": "wanted to run a command",
    "superseded": "wanted to run a command",
}


def test_every_state_has_its_words() -> None:
    assert set(SAID) == set(states.ALL)


@pytest.mark.parametrize("status", states.ALL)
def test_nothing_that_did_not_run_is_said_to_have(status) -> None:
    assert titles.of(Action(tool="run", status=status)) == SAID[status]


def test_a_tool_that_has_no_words_is_drawn() -> None:
    assert titles.of(Action(tool="a\u200bb", status="pending")) == "wants to use a⟨U+200B⟩b"


def test_a_decided_card_needs_nothing_any_more_and_says_who_approved(cast) -> None:
    action = pending(cast.caller(cast.scout))
    assert ("Needs", "1 approval") in cards.matter(action).facts
    decided = decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    found = dict(cards.matter(decided).facts)
    assert "Needs" not in found
    assert found["Approved"] == "by Bob"


def write(cast, base, **more) -> Action:
    fields = {"tool": "write", "kind": "write", "arguments": {"path": "/work/a", "content": "x", "mode": None}}
    return pending(cast.caller(cast.scout), bases={"/work/a": base}, **{**fields, **more})


@pytest.mark.parametrize(("there", "flagged"), [("2" * 64, True), ("1" * 64, False)])
def test_a_file_written_since_is_a_flag(cast, there, flagged) -> None:
    waits, other = write(cast, "1" * 64), pending(cast.caller(cast.scout), "echo other")
    later = timezone.now() + timedelta(seconds=1)
    Action.objects.filter(pk=other.pk).update(
        tool="write", arguments={"path": "/work/a"}, status="succeeded", started_at=later, ended_at=later,
        result={"sha256": there},
    )  # fmt: skip
    words = [flag.word for flag in cards.matter(waits).flags]
    assert ("File changed since" in words) is flagged
