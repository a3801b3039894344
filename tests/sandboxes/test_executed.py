"""`outcome.executed` and `may_retry` of what failed: one rule for all tools."""

import pytest

from approvals.gate import Pass, submit
from approvals.models import Action
from console.workspaces import permissions
from sandboxes import ends
from tests.approvals.proposals import run


@pytest.fixture
def let_through(cast):
    def made(tool: str) -> Pass:
        kind = "read" if tool == "read" else "write"
        answer = submit(run(cast.caller(cast.alice, permissions.SANDBOXES_RUN), kind=kind, tool=tool))
        assert isinstance(answer, Pass)
        return answer

    return made


def outcome_of(pass_: Pass):
    return Action.objects.get(pk=pass_.action_id).outcome()


@pytest.mark.parametrize("tool", ["write", "edit", "unseal", "read"])
@pytest.mark.parametrize(
    ("code", "may_retry"), [("protected_path", False), ("stale_edit", True), ("bad_edit", True), ("no_space", True)]
)
def test_what_its_sandbox_refused_has_not_been_executed(let_through, tool, code, may_retry):
    pass_ = let_through(tool)
    ends.fail(pass_, status="failed", code=code, detail="Nothing was written. It is so.", began=False)
    outcome = outcome_of(pass_)
    assert (outcome["executed"], outcome["may_retry"]) == (False, may_retry)
    assert outcome["error"] == {"code": code, "detail": "Nothing was written. It is so."}


def test_what_was_cut_off_may_have_been(let_through):
    pass_ = let_through("write")
    ends.fail(pass_, status="failed", code="sandbox_gone", detail="It ended.")
    assert outcome_of(pass_)["executed"] is True
    pass_ = let_through("write")
    ends.fail(pass_, status="unknown", code="lost", detail="Nobody knows.")
    assert outcome_of(pass_)["executed"] is None
