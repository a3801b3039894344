"""When somebody is told: at once for what is urgent, else every five minutes at most, and of each thing once."""

from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from approvals.notices.deciding import QUIET, URGENT, URGENT_QUIET, Waiting, news
from approvals.notices.models import EVENTS

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def waits(id="act_1", *, flagged=False, left=timedelta(hours=23), **more):
    return Waiting(id, "agt_1", flagged, NOW + left, **more)


def asked(*actions, told=(), ago=None, wants=EVENTS):
    last_at = None if ago is None else NOW - ago
    wants = {action.id: frozenset(wants) for action in actions}
    return news(actions, wants=wants, told=dict(told), last_at=last_at, now=NOW)


def test_the_first_one_is_told_at_once():
    said = asked(waits())
    assert (said.event, said.told) == ("waiting", {"act_1": frozenset({"waiting"})})


def test_ordinary_ones_wait_until_five_minutes_after_the_last_and_come_together():
    assert asked(waits(), waits("act_2"), ago=QUIET - timedelta(seconds=1)) is None
    assert set(asked(waits(), waits("act_2"), ago=QUIET).told) == {"act_1", "act_2"}


def test_flagged_ones_are_told_at_once_and_bring_the_others_along():
    said = asked(waits(), waits("act_2", flagged=True), ago=timedelta(minutes=1))
    assert (said.event, set(said.told)) == ("flagged", {"act_1", "act_2"})


def test_a_storm_of_flagged_ones_is_one_notice_each_half_minute():
    assert asked(waits(flagged=True), ago=URGENT_QUIET - timedelta(seconds=1)) is None


def test_one_that_was_told_is_told_again_an_hour_before_its_end_and_once():
    told = {"act_1": frozenset({"waiting"})}
    assert asked(waits(left=timedelta(minutes=61)), told=told, ago=QUIET) is None
    said = asked(waits(left=timedelta(minutes=60)), told=told, ago=timedelta(minutes=1))
    assert (said.event, said.told) == ("expiring", {"act_1": frozenset({"expiring"})})
    assert asked(waits(left=timedelta(minutes=60)), told={"act_1": told["act_1"] | {"expiring"}}, ago=QUIET) is None


def test_nearly_over_goes_before_flagged_and_both_are_told_by_one():
    said = asked(waits(flagged=True, left=timedelta(minutes=30)))
    assert (said.event, said.told["act_1"]) == ("expiring", {"expiring", "flagged", "waiting"})


def test_an_escalated_one_is_told_again_and_at_once_to_who_wants_that():
    told = {"act_1": frozenset({"waiting"})}
    said = asked(waits(is_escalated=True), told=told, ago=timedelta(minutes=1))
    assert (said.event, said.told) == ("escalated", {"act_1": frozenset({"escalated"})})
    assert asked(waits(is_escalated=True), told=told, ago=QUIET, wants=["waiting"]) is None
    assert asked(waits(), wants=["escalated"]) is None


def test_who_wants_only_flagged_ones_hears_of_no_other():
    assert asked(waits(), wants=["flagged"]) is None
    assert set(asked(waits(), waits("act_2", flagged=True), wants=["flagged"]).told) == {"act_2"}


steps = some.lists(
    some.tuples(some.integers(0, 5), some.booleans(), some.integers(1, 1500), some.integers(1, 400)), max_size=40
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(steps)
def test_whatever_comes_when_no_one_is_told_twice_or_more_often_than_is_said(steps):
    """Actions by number, flagged or not, with some minutes left, some seconds after the step before."""
    told, last_at, now = {}, None, NOW
    there = {}
    for at, flagged, left_min, later_s in steps:
        now += timedelta(seconds=later_s)
        there.setdefault(at, Waiting(f"act_{at}", "agt_1", flagged, now + timedelta(minutes=left_min)))
        wants = dict.fromkeys((action.id for action in there.values()), frozenset(EVENTS))
        said = news(there.values(), wants=wants, told=told, last_at=last_at, now=now)
        if said is None:
            continue
        for id, events in said.told.items():
            assert events.isdisjoint(told.get(id, ()))
            told[id] = told.get(id, frozenset()) | events
        if last_at is not None:
            assert now - last_at >= (URGENT_QUIET if said.event in URGENT else QUIET)
        last_at = now
        assert news(there.values(), wants=wants, told=told, last_at=None, now=now) is None
