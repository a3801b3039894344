import pytest
from django.utils import timezone

from approvals import decisions, gate
from approvals.errors import NotEnabled, TooMany
from console.workspaces import agents, members, permissions
from console.workspaces.errors import NotFound, PermissionDenied
from console.workspaces.models import Agent
from sandboxes import lifecycle, limits
from sandboxes.errors import BoxGone, NoRuntime, NotAllowed
from sandboxes.models import Command, Sandbox
from sandboxes.profiles import NewSandbox
from tests.approvals.proposals import pending


def make(caller, **new):
    return lifecycle.make(caller, NewSandbox(**new), image_id="sha256:1", can_network=False)


def running(caller, **new):
    sandbox = make(caller, **new)
    assert lifecycle.started(sandbox, container_id="c1", boot="b1")
    return Sandbox.objects.get(pk=sandbox.pk)


def test_an_agent_whose_sandbox_is_off_gets_none(cast):
    agents.change_tools(cast.scout, by=cast.alice, sandbox_enabled=False)
    with pytest.raises(NotEnabled):
        make(cast.caller(cast.scout))


def test_without_sandboxes_run_there_is_none(cast):
    cast.scout.permissions.all().delete()
    for caller in (cast.caller(cast.scout), cast.caller(cast.bob, permissions.SANDBOXES_READ)):
        with pytest.raises(PermissionDenied, match="sandboxes:run"):
            make(caller)
    assert not Sandbox.objects.exists()


def test_a_new_agent_starts_with_the_sandbox_off(cast):
    assert not Agent.objects.get(pk=agents.make(cast.workspace, name="new", by=cast.alice).pk).sandbox_enabled


@pytest.mark.parametrize(
    ("new", "error", "field"),
    [
        ({"network": "public"}, NoRuntime, None),
        ({"network": "host"}, NotAllowed, "network"),
        ({"persistent": True}, NotAllowed, "persistent"),
        ({"image": "alpine"}, NotAllowed, "image"),
        ({"memory_mb": 10**6}, NotAllowed, "memory_mb"),
        ({"cpus": 100.0}, NotAllowed, "cpus"),
        ({"max_lifetime_s": 10**9}, NotAllowed, "max_lifetime_s"),
    ],
)
def test_what_is_not_allowed_is_named_and_leaves_nothing(cast, new, error, field):
    with pytest.raises(error) as refusal:
        make(cast.caller(cast.scout), **new)
    assert refusal.value.fields.get("field") == field
    assert not Sandbox.objects.exists()


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "BASH_ENV", "GIT_SSH_COMMAND"])
def test_an_agent_cannot_make_a_sandbox_that_steers_what_its_commands_run(cast, name):
    with pytest.raises(NotAllowed, match=name):
        make(cast.caller(cast.scout), env={name: "/work/evil"})
    assert make(cast.caller(cast.scout), env={"MONTH": "3"}).env == {"MONTH": "3"}
    assert make(cast.caller(cast.alice, permissions.SANDBOXES_RUN), env={name: "/work/mine"})


def test_limits_per_agent_and_workspace_hold(cast, monkeypatch):
    monkeypatch.setattr(limits, "LIVE_PER_WORKSPACE", 6)
    scout, other = cast.caller(cast.scout), cast.caller(cast.other)
    for _ in range(limits.LIVE_PER_AGENT):
        make(scout)
    with pytest.raises(TooMany, match="This agent"):
        make(scout)
    make(other)
    with pytest.raises(TooMany, match="This workspace"):
        make(other)


def test_agents_see_their_own_keys_their_workspace_and_strangers_nothing(cast):
    sandbox = running(cast.caller(cast.scout))
    assert lifecycle.find(cast.caller(cast.alice, permissions.SANDBOXES_RUN), sandbox.pk)
    for caller in (cast.caller(cast.other), cast.caller(cast.mallory, permissions.SANDBOXES_RUN)):
        with pytest.raises(NotFound):
            lifecycle.find(caller, sandbox.pk)


def test_the_end_of_a_sandbox_supersedes_what_waited_for_it(cast):
    caller = cast.caller(cast.scout)
    sandbox = running(caller)
    waiting, approved = (pending(caller, command, sandbox_id=sandbox.pk) for command in ("a", "b"))
    decisions.decide(approved, "approve", by=cast.bob, digest=approved.digest)
    assert lifecycle.end(sandbox, "oom")
    assert not lifecycle.end(sandbox, "crashed")
    for action in (waiting, approved):
        action.refresh_from_db()
        assert (action.status, action.error["code"]) == ("superseded", "sandbox_gone")
    assert gate.start(approved.pk) is None
    assert Sandbox.objects.get(pk=sandbox.pk).ended_reason == "oom"


def test_an_ended_sandbox_stays_readable_and_a_deleted_one_does_not(cast):
    caller = cast.caller(cast.scout)
    sandbox = running(caller)
    lifecycle.end(sandbox, "idle")
    assert lifecycle.find(caller, sandbox.pk).status == "ended"
    with pytest.raises(BoxGone, match="idle"):
        lifecycle.check_live(lifecycle.find_usable(caller, sandbox.pk))
    assert lifecycle.end(sandbox, "deleted", deleted=True)
    assert not lifecycle.end(sandbox, "deleted", deleted=True)
    with pytest.raises(NotFound):
        lifecycle.find(caller, sandbox.pk)


def test_a_sandbox_deleted_while_it_starts_never_runs(cast):
    sandbox = make(cast.caller(cast.scout))
    lifecycle.end(sandbox, "deleted", deleted=True)
    assert not lifecycle.started(sandbox, container_id="c", boot="b")


def test_one_live_sandbox_per_agent_and_conversation(cast):
    from django.db import IntegrityError, transaction

    caller = cast.caller(cast.scout)
    make(caller, conversation="c1")
    with pytest.raises(IntegrityError), transaction.atomic():
        make(caller, conversation="c1")
    make(caller, conversation="c2")


def test_the_live_sandbox_of_a_conversation_is_its_own_agents_or_members(cast):
    scout, other = cast.caller(cast.scout), cast.caller(cast.other)
    alice, bob = (cast.caller(member, permissions.SANDBOXES_RUN) for member in (cast.alice, with_run(cast.bob)))
    made = {each: running(each, conversation="c1") for each in (scout, other, alice)}
    for caller, sandbox in made.items():
        assert lifecycle.of_conversation(caller, "c1") == sandbox
    assert lifecycle.of_conversation(bob, "c1") is None
    assert lifecycle.of_conversation(scout, "c2") is None
    lifecycle.end(made[scout], "idle")
    assert lifecycle.of_conversation(scout, "c1") is None


def with_run(member):
    members.give(member, permissions.SANDBOXES_RUN, by=None)
    return member


def test_a_stop_keeps_what_waits_and_a_start_goes_on_from_it(cast):
    caller = cast.caller(cast.scout)
    sandbox = running(caller)
    waiting = pending(caller, sandbox_id=sandbox.pk)
    assert lifecycle.stop(sandbox, "idle")
    assert not lifecycle.stop(sandbox, "idle")
    stopped = Sandbox.objects.get(pk=sandbox.pk)
    assert (stopped.status, stopped.container_id, stopped.boot, stopped.is_live) == ("stopped", "", "", True)
    assert lifecycle.started(stopped, container_id="c2", boot="b2")
    waiting.refresh_from_db()
    assert waiting.status == "pending"
    said = cast.workspace.audit.filter(event="sandbox.stopped").get()
    assert said.data == {"reason": "idle"}


def test_a_persistent_sandbox_is_kept_from_its_last_use_on(cast):
    Agent.objects.filter(pk=cast.scout.pk).update(persistent_allowed=True)
    kept, plain = (running(cast.caller(cast.scout), persistent=persistent) for persistent in (True, False))
    assert kept.expires_at - kept.last_activity_at == limits.PERSISTENT_FOR
    before = plain.expires_at
    Sandbox.objects.filter(pk=kept.pk).update(expires_at=timezone.now())
    for sandbox in (kept, plain):
        lifecycle.touch(sandbox.pk)
        sandbox.refresh_from_db()
    assert kept.expires_at - kept.last_activity_at == limits.PERSISTENT_FOR
    assert plain.expires_at == before


def test_what_is_left_is_ones_own_and_idle_and_the_longest_unused_first(cast):
    scout, mine = cast.caller(cast.scout), lambda name: name.startswith("mcp-")
    named, kept, first, second = (running(scout, conversation=name) for name in ("talk", "mcp-1", "mcp-2", "mcp-3"))
    Command.objects.create(sandbox=kept, action_id="act_x", status="exited", left_running=True)
    running(cast.caller(cast.other), conversation="mcp-4")
    assert lifecycle.left(scout, mine) == first
    pending(scout, "echo hi", sandbox_id=first.pk)
    assert lifecycle.left(scout, mine) == second
    lifecycle.end(second, "deleted")
    assert lifecycle.left(scout, mine) is None
    assert lifecycle.left(scout, lambda name: True) == named
