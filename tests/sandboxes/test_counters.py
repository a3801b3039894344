"""What is counted: each verb moves its own series, and no label is free text."""

import pytest
from prometheus_client import generate_latest

from sandboxes import counters, states


def value(name: str, **labels: str) -> float:
    found = counters.REGISTRY.get_sample_value(name, labels)
    assert found is not None, f"{name} {labels} is not there"
    return found


def test_a_create_is_counted_by_how_and_timed_only_when_it_came_to_something() -> None:
    def seen() -> list[float]:
        return [
            value("sandgate_creates_total", how="pooled", outcome="ready"),
            value("sandgate_creates_total", how="pooled", outcome="failed"),
            value("sandgate_create_seconds_count", how="pooled"),
            value("sandgate_create_seconds_sum", how="pooled"),
        ]

    before = seen()
    counters.created(how="pooled", seconds=0.5)
    counters.created(how="pooled", seconds=9.0, outcome="failed")
    assert [now - was for now, was in zip(seen(), before, strict=True)] == pytest.approx([1, 1, 1, 0.5])


def test_the_overhead_of_a_command_is_what_it_did_not_take_itself() -> None:
    before = value("sandgate_command_overhead_seconds_sum"), value("sandgate_command_seconds_sum")
    counters.command_took(2.0, own_seconds=1.5)
    counters.command_took(1.0, own_seconds=1.2)  # two clocks: never negative
    assert value("sandgate_command_overhead_seconds_sum") - before[0] == pytest.approx(0.5)
    assert value("sandgate_command_seconds_sum") - before[1] == pytest.approx(3.0)


def test_reasons_and_ends_that_nobody_listed_make_no_new_series() -> None:
    counters.reaped("name of a workspace")
    counters.command_ended("rm -rf /")
    text = generate_latest(counters.REGISTRY).decode()
    assert "name of a workspace" not in text
    assert "rm -rf" not in text


def test_every_reason_a_sandbox_can_end_for_has_its_series() -> None:
    assert set(states.ENDED_REASONS) <= set(counters.REASONS)
    assert set(states.LIVE) == set(counters.STATUSES)
    for reason in states.ENDED_REASONS:
        value("sandgate_reaps_total", reason=reason)


def test_repairs_and_reconnects_count() -> None:
    before = value("sandgate_jail_repairs_total"), value("sandgate_runner_reconnects_total")
    counters.jail_repaired()
    counters.reconnected()
    assert value("sandgate_jail_repairs_total") == before[0] + 1
    assert value("sandgate_runner_reconnects_total") == before[1] + 1


def test_every_reason_of_an_end_is_counted_has_words_and_may_stand_in_a_row(cast):
    from console.pages.sandboxes import ENDED
    from sandboxes import lifecycle, states
    from sandboxes.engine.link import _WORDS
    from sandboxes.profiles import NewSandbox

    assert set(ENDED) == set(states.ENDED_REASONS)
    assert set(states.ENDED_REASONS) <= set(counters.REASONS)
    assert set(_WORDS) <= set(states.ENDED_REASONS)
    for reason in states.ENDED_REASONS:
        made = lifecycle.make(cast.caller(cast.scout), NewSandbox(), image_id="i", can_network=True)
        assert lifecycle.end(made, reason)
