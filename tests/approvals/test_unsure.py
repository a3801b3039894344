"""A line that the second parser could not check once, for want of time or of itself: nothing remembers that."""

import pytest

from approvals import decisions
from approvals.models import Rule
from approvals.rules import proving, suggesting
from approvals.shell import formatter
from tests.approvals.proposals import pending


def slow(monkeypatch, tmp_path) -> None:
    program = tmp_path / "shfmt"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(formatter, "SHFMT", program)
    monkeypatch.setattr(formatter, "TIMEOUT_S", 0.1)


def missing(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(formatter, "SHFMT", tmp_path / "missing")


def broken(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(formatter, "commands", lambda line: 1 // 0)


FAULTS = pytest.mark.parametrize("fault", [slow, missing, broken])


@FAULTS
def test_a_rules_tests_are_run_again(monkeypatch, tmp_path, fault) -> None:
    name = fault.__name__
    rule = Rule(effect="allow", tool="run", pattern="ls *", matches=["ls a", f"ls {name}"], does_not_match=["cat a"])
    with monkeypatch.context() as for_once:
        fault(for_once, tmp_path)
        assert [test.passes for test in proving.run(rule)][1] is False
    assert [test.passes for test in proving.run(rule)] == [True] * 3


def test_what_is_sure_is_kept(monkeypatch) -> None:
    rule = Rule(effect="allow", tool="run", pattern="ls *", matches=["ls kept"], does_not_match=["ls; kept"])
    first = proving.run(rule)
    monkeypatch.setattr(proving, "judge", lambda *asked: pytest.fail("judged again"))
    assert proving.run(rule) == first


@FAULTS
@pytest.mark.django_db
def test_what_was_approved_is_suggested_the_next_time(cast, monkeypatch, tmp_path, fault) -> None:
    for place in range(suggesting.AT_LEAST):
        action = pending(cast.caller(cast.scout), f"wc {fault.__name__}-{place}")
        decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    with monkeypatch.context() as for_once:
        fault(for_once, tmp_path)
        assert suggesting.suggest(cast.workspace) == []
    assert [each.pattern for each in suggesting.suggest(cast.workspace)] == ["wc"]
