"""What pages say: quantities, lists, and what became of an action."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals.models import Action
from console.pages import fates, words
from console.workspaces.models import Member, User


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (words.number(1, "line"), "1 line"),
        (words.number(12_345, "byte"), "12\u2009345 bytes"),
        (words.size(1), "1 byte"),
        (words.size(104_200_000), "104.2 MB"),
        (words.duration(0), "0 ms"),
        (words.duration(2_400), "2.4 s"),
        (words.duration(3_725_000), "62 min 5 s"),
        (words.span(timedelta(hours=23, minutes=57)), "23 h 57 min"),
        (words.span(timedelta(seconds=-3)), "0 s"),
        (words.listed([]), ""),
        (words.listed(["Ines"]), "Ines"),
        (words.listed(["Bob", "Ines"]), "Bob and Ines"),
        (words.listed(["Alice", "Bob", "Ines"]), "Alice, Bob and Ines"),
    ],
)
def test_quantities_and_lists(said: str, expected: str) -> None:
    assert said == expected


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"status": "running"}, "It is running."),
        ({"status": "succeeded", "tool": "run", "result": {"exit_code": 3}}, "It ran: exit 3."),
        ({"status": "succeeded", "tool": "write"}, "It is done."),
        ({"status": "denied"}, "It was not run."),
        ({"status": "unknown"}, "Nobody knows how it ended."),
    ],
)
def test_a_lost_race_says_who_when_and_what_is_now(fields: dict, said: str) -> None:
    ines, bob = Member(pk="mem_1", user=User(name="Ines")), Member(pk="mem_2", user=User(name="Bob"))
    at = timezone.now()
    decision = fates.Decision(by=ines, verdict="deny" if fields["status"] == "denied" else "approve", at=at)
    verb = "denied" if fields["status"] == "denied" else "approved"
    late = at + timedelta(seconds=3)
    told = fates.lost_race(Action(**fields), mine=bob, mine_at=late, decision=decision)
    assert told == f"Ines {verb} this 3 seconds before you. {said}"
    told = fates.lost_race(Action(**fields), mine=ines, mine_at=late, decision=decision)
    assert told == f"You {verb} this already. {said}"


@pytest.mark.parametrize(
    ("status", "said"),
    [("pending", "This expired"), ("expired", "This expired"), ("cancelled", "This was taken back")],
)
def test_what_nobody_decided_ended_by_itself(status: str, said: str) -> None:
    told = fates.lost_race(Action(status=status), mine=Member(), mine_at=timezone.now(), decision=None)
    assert told == f"{said} before you decided. It was not run."


def test_who_approved_what_could_not_start_is_not_told_of_24_hours() -> None:
    late = Action(status="expired", start_by=timezone.now(), end_reason="It was approved but could not start in time.")
    assert fates.sentence(late) == "It was approved but could not start in time."
