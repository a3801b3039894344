"""What an agent is told of an end: whether it ran, why not, and what helps to do it right."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from approvals import gate, told
from approvals.models import Action
from tests.approvals.proposals import pending


def action(status: str, **fields) -> Action:
    return Action(pk="act_1", status=status, **fields)


@pytest.mark.parametrize("status", ["pending", "approved", "running"])
def test_a_wait_that_is_over_is_no_refusal(status):
    words = told.waits(action(status))
    assert "act_1" in words
    assert "go on waiting" in words
    assert "denied" not in words


def test_a_denial_says_that_it_was_not_run_and_why():
    assert told.ended(action("denied", decided_by="reviewer", end_reason="Use staging.")).endswith(
        "It was not run. Reason: Use staging."
    )


def test_an_unknown_end_says_to_look_first():
    words = told.ended(action("unknown", end_reason="The host was lost."))
    assert words.startswith("It began")
    assert "The host was lost." in words
    assert "Look before" in words


@pytest.mark.parametrize(
    ("by", "who"),
    [
        ("reviewer", "A reviewer denied this."),
        ("rule", "A rule of the workspace denied this."),
        ("system", "Sandgate denied this."),
    ],
)
def test_a_denial_says_who_said_no(by, who):
    assert told.ended(action("denied", decided_by=by, end_reason="No.")) == f"{who} It was not run. Reason: No."


def test_what_was_taken_back_did_not_run():
    assert told.ended(action("cancelled", end_reason="Why.")) == "This was cancelled. It was not run. Why."


def test_silence_is_neither_consent_nor_a_denial(cast):
    waits = pending(cast.caller(cast.scout))
    Action.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    gate.expire()
    waits.refresh_from_db()
    words = told.ended(waits)
    assert words.startswith("This expired. Nobody decided in time. It was not run: silence is not consent")
    assert "not a denial" in words
    assert (waits.outcome()["executed"], waits.outcome()["human_decided"]) == (False, False)


def test_a_refused_edit_brings_the_lines_as_they_are_with_gaps_shown():
    error = {
        "code": "stale_edit",
        "detail": "Nothing was written.",
        "lines": [[1, "kqzt", "a"], [2, "bdwm", ""], [9, "", "x"]],
    }
    assert told.ended(action("failed", error=error)).splitlines() == [
        "Nothing was written.", "1kqzt|a", "2bdwm|", "…", "9|x",
    ]  # fmt: skip


def test_a_refused_edit_names_the_version_to_send_next_time():
    error = {"detail": "Nothing was written.", "version": "3f9c0b71d2ae", "lines": [[1, "kqzt", "a"]]}
    assert told.ended(action("failed", error=error)).splitlines() == [
        "Nothing was written.", "The file is at version 3f9c0b71d2ae now:", "1kqzt|a",
    ]  # fmt: skip
    del error["lines"]
    assert told.ended(action("failed", error=error)).splitlines()[1:] == ["The file is at version 3f9c0b71d2ae now."]


def test_a_directory_that_is_shown_in_part_says_so():
    folder = {"detail": "It is a directory.", "names": ["a.txt"], "truncated": True}
    assert told.ended(action("failed", error=folder)).splitlines()[1:] == [
        "a.txt", "[Only the first names; there are more.]",
    ]  # fmt: skip


ODD = st.text(st.sampled_from('ab\n\r\x0b\x0c\x1b\x1c\x85\u2028\u2029\u202e"\\:/ é'), min_size=1, max_size=8)


@given(ODD)
def test_a_name_is_one_line_and_can_be_read_back(name):
    shown = told.named(name)
    assert len(shown.splitlines()) == 1
    assert shown.isprintable()
    assert (json.loads(shown) if shown.startswith('"') else shown) == name


@given(st.lists(ODD, min_size=1, max_size=3))
def test_no_name_forges_a_line_of_a_refusal(names):
    folder = told.aids({"names": names})
    assert len("\n".join(folder).splitlines()) == len(names)
    assert len("\n".join(told.aids({"nearest": names})).splitlines()) == 1


def test_a_wrong_path_brings_the_nearest_and_a_directory_what_is_in_it():
    missing = {"detail": "There is no such file.", "nearest": ["/work/app.py", "/work/api.py"]}
    assert told.ended(action("failed", error=missing)).endswith("\nNearest: /work/app.py, /work/api.py")
    folder = {"detail": "It is a directory.", "names": ["a.txt", "src/"]}
    assert told.ended(action("failed", error=folder)).splitlines()[1:] == ["a.txt", "src/"]


def test_without_an_error_of_its_own_the_reason_is_told():
    assert told.ended(action("superseded", end_reason="The Agent Tools changed.")) == "The Agent Tools changed."
