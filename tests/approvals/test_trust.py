"""What runs files of the workspace is let through only while all there was written with a person's knowledge."""

import pytest

from approvals import decisions, gate, shell
from approvals.models import Action
from approvals.rules import acts, grants, ticking, trusting
from console.workspaces import agents
from tests.approvals.proposals import pending, run

WRITE = {"tool": "write", "kind": "write"}


def allow(cast, pattern, tool="run"):
    return acts.make(by=cast.alice, effect="allow", tool=tool, pattern=pattern)


def writes(caller, path, **more):
    return run(caller, **{**WRITE, "arguments": {"path": path, "content": "x", "mode": None}, **more})


def submitted(proposal) -> Action:
    return Action.objects.get(pk=gate.submit(proposal).action_id)


def ended(proposal, **result) -> Action:
    answer = gate.submit(proposal)
    assert isinstance(answer, gate.Pass), Action.objects.get(pk=answer.action_id).why_asked
    gate.finish(answer, status="succeeded", result=result)
    return Action.objects.get(pk=answer.action_id)


def approved(cast, proposal) -> Action:
    """By a person, and done."""
    action = submitted(proposal)
    assert action.status == "pending"
    decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    gate.finish(gate.start(action.pk), status="succeeded", result={})
    return action


def asks(proposal, because) -> bool:
    action = submitted(proposal)
    assert action.status == "pending", action.status
    return because in action.why_asked


@pytest.fixture
def scout(cast):
    allow(cast, "/work/**", tool="write")
    ticking.tick("local_git", by=cast.alice)
    return cast.caller(cast.scout)


@pytest.mark.parametrize(
    "line",
    ["git status", "git diff", "git add -A", "git commit -m x", "git log -p", "cat x && git status"],
)
def test_git_asks_once_a_rule_let_the_agent_write_a_repository(cast, scout, line):
    ticking.tick("read_only_shell", by=cast.alice)
    wrote = ended(writes(scout, "/work/r/config"))
    action = submitted(run(scout, line))
    assert action.status == "pending"
    why = "Asked because `git` runs what files of the workspace say, and {} wrote without anybody having seen it."
    assert action.why_asked == why.format(wrote.pk)


def test_git_is_let_through_while_nothing_was_written_or_a_person_saw_all_of_it(cast, scout):
    approved(cast, writes(scout, "/work/.hidden"))
    for _ in range(3):
        assert ended(run(scout, "git status")).decided_by == "rule"


@pytest.mark.parametrize(
    "line", ["npm ci --ignore-scripts", "npm install --ignore-scripts a@1.0.0", "pip install a==1.0"]
)
def test_packages_ask_once_a_rule_let_the_agent_write_settings(cast, scout, line):
    ticking.tick("package_install", by=cast.alice)
    ended(writes(scout, "/work/npmrc"))
    assert asks(run(scout, line), "runs what files of the workspace say")


@pytest.mark.parametrize(
    "line", ["pytest", "make test", "cargo build", "npm run x", "/usr/bin/git status", "pip3.11 x"]
)
def test_programs_of_that_kind_are_known_however_they_are_named(line):
    assert trusting.program_in(shell.read(line))
    assert trusting.program_in(shell.read(f"timeout 5 {line}"))


@pytest.mark.parametrize("name", [*"behave inv invoke nox rake bundle just task dotnet".split()])
def test_what_runs_recipes_of_the_workspace_is_known(name):
    assert trusting.program_in(shell.read(f"{name} x"))


@pytest.mark.parametrize("name", ["pytest-3", "pip-3.2", "pip3", "nox-3.12", "rebar3", "coverage-3.11", "pytest-3-"])
def test_a_version_in_its_name_hides_no_program(name):
    assert trusting.program_in(shell.read(f"/opt/{name} x"))


def test_writes_of_a_mode_that_never_asks_count(cast, scout):
    agent = agents.change_tools(cast.scout, by=cast.alice, write_mode="never")
    profile = {"image": "sha256:1", "network": "none", "user": "agent", "settings_version": agent.settings_version}
    ended(writes(scout, "/work/x", profile=profile))
    assert asks(run(scout, "git status", profile=profile), "without anybody having seen it")


def test_commands_that_a_rule_lets_through_count_unless_they_only_read(cast, scout):
    for pack in ("read_only_shell", "search"):
        ticking.tick(pack, by=cast.alice)
    allow(cast, "unpack")
    for line in ("cat x", "rg x", "git status", "ls | sort"):
        ended(run(scout, line))
    assert ended(run(scout, "git status"))
    ended(run(scout, "cat x && unpack x.zip"))
    assert asks(run(scout, "git status"), "without anybody having seen it")


def test_commands_that_a_grant_lets_through_count(cast, scout):
    action = pending(scout, "unpack x")
    grants.approve_and_grant(action, by=cast.bob, digest=action.digest)
    gate.finish(gate.start(action.pk), status="succeeded", result={})
    ended(run(scout, "git status"))
    ended(run(scout, "unpack x", idempotency_key="k"))
    assert asks(run(scout, "git status"), "without anybody having seen it")


def test_a_grant_of_such_a_program_is_held_to_it_too(cast, scout):
    action = pending(scout, "pytest -q")
    grants.approve_and_grant(action, by=cast.bob, digest=action.digest)
    gate.finish(gate.start(action.pk), status="succeeded", result={})
    ended(writes(scout, "/work/conftest.py"))
    assert asks(run(scout, "pytest -q", idempotency_key="k"), "`pytest` runs what files")


def test_what_a_person_approves_after_it_was_written_makes_it_known(cast, scout):
    ended(writes(scout, "/work/x"))
    approved(cast, run(scout, "echo hi"))
    assert asks(run(scout, "git status", idempotency_key="a"), "without anybody")
    approved(cast, run(scout, "git diff", idempotency_key="b"))
    ended(run(scout, "git status", idempotency_key="c"))
    ended(writes(scout, "/work/y"))
    assert asks(run(scout, "git status", idempotency_key="d"), "without anybody")


UNSEEN = "unseen_changes"


@pytest.mark.parametrize("line", ["git --version", "cat x && git stash", "timeout 5 npm ci", "make -n"])
def test_a_card_whose_approval_would_make_unseen_changes_known_says_so(cast, scout, line):
    assert UNSEEN not in submitted(run(scout, line, idempotency_key="a")).flags
    ended(writes(scout, "/work/conftest.py"))
    assert UNSEEN in submitted(run(scout, line, idempotency_key="b")).flags
    assert UNSEEN not in submitted(run(scout, line, idempotency_key="c", sandbox_id="sbx_2")).flags
    assert UNSEEN not in submitted(run(scout, "echo hi", idempotency_key="d")).flags


def test_such_a_card_says_so_in_words_too(cast, scout):
    ended(writes(scout, "/work/conftest.py"))
    words = {"argv": ["git", "--version"], "cwd": "/work", "env": {}, "stdin": "", "timeout_s": 120}
    assert UNSEEN in submitted(run(scout, arguments=words)).flags


def test_an_approval_whose_card_did_not_say_so_makes_nothing_known(cast, scout):
    allow(cast, "pytest")
    wrote = ended(writes(scout, "/work/conftest.py"))
    card = submitted(run(scout, "git --version", idempotency_key="a"))
    Action.objects.filter(pk=card.pk).update(flags=[])  # as one whose line was put there by an edit
    decisions.decide(card, "approve", by=cast.bob, digest=card.digest)
    gate.finish(gate.start(card.pk), status="succeeded", result={})
    assert asks(run(scout, "pytest", idempotency_key="b"), wrote.pk)


def test_an_approval_whose_card_said_so_makes_it_known_once(cast, scout):
    allow(cast, "pytest")
    ended(writes(scout, "/work/conftest.py"))
    assert UNSEEN in approved(cast, run(scout, "git --version", idempotency_key="a")).flags
    ended(run(scout, "pytest", idempotency_key="b"), left_running=False)
    assert UNSEEN in submitted(run(scout, "git --version", idempotency_key="c")).flags, "pytest may have changed files"


def test_what_is_written_while_a_card_waits_is_not_on_it(cast, scout):
    ended(writes(scout, "/work/x"))
    card = submitted(run(scout, "git status", idempotency_key="a"))
    later = ended(writes(scout, "/work/y"))
    decisions.decide(card, "approve", by=cast.bob, digest=card.digest)
    gate.finish(gate.start(card.pk), status="succeeded", result={})
    assert asks(run(scout, "git status", idempotency_key="b"), later.pk)


def test_what_goes_on_in_the_background_is_never_known(cast, scout):
    allow(cast, "keep-writing")
    ended(run(scout, "keep-writing"), background=True)
    approved(cast, run(scout, "git status", idempotency_key="a"))
    assert asks(run(scout, "git status", idempotency_key="b"), "without anybody")


@pytest.mark.parametrize("line", ["git diff", "pytest"])
def test_a_command_whose_end_is_unknown_may_go_on_and_is_never_known(cast, scout, line):
    allow(cast, "keep-writing")
    gate.finish(gate.submit(run(scout, "keep-writing")), status="unknown", error={"code": "lost", "detail": "Lost."})
    approved(cast, run(scout, line, idempotency_key="a"))
    assert asks(run(scout, "git status", idempotency_key="b"), "without anybody")


def test_what_the_sandbox_refused_has_written_nothing(cast, scout):
    answer = gate.submit(writes(scout, "/work/x"))
    gate.finish(answer, status="failed", error={"code": "refused", "detail": "No.", "executed": False})
    ended(run(scout, "git status"))


def test_another_sandbox_says_nothing(cast, scout):
    ended(writes(scout, "/work/x", sandbox_id="sbx_2"))
    ended(run(scout, "git status"))


def test_nothing_is_written_unseen_under_a_program_that_runs(cast, scout):
    allow(cast, "unpack")
    running = gate.submit(run(scout, "git status"))
    for proposal in (writes(scout, "/work/r/config"), run(scout, "unpack x")):
        assert asks(proposal, f"{running.action_id} runs `git`")
    gate.finish(running, status="succeeded", result={})
    ended(writes(scout, "/work/r/config", idempotency_key="k"))


def test_such_a_program_in_the_background_asks(cast, scout):
    arguments = {"command": "git status", "cwd": "/work", "env": {}, "stdin": "", "background": True}
    assert asks(run(scout, arguments=arguments), "in the background")


@pytest.mark.parametrize(
    "path",
    [
        "/work/.git/config", "/work/.npmrc", "/work/a/.b/c", "/work/\u2024npmrc", "/work/\u200b.npmrc",
        "/home/agent/bin/npm", "/home/agent/.local/bin/npm", "/tmp/x", "/workshop/x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("tool", ["write", "edit"])
def test_no_rule_and_no_grant_writes_a_hidden_name_or_outside_work(cast, scout, path, tool):
    allow(cast, "/**", tool=tool)
    action = submitted(writes(scout, path, tool=tool))
    assert (action.status, action.decided_by) == ("pending", "")
    assert "no rule can allow writing" in action.why_asked
    assert grants.offer(action) is None
