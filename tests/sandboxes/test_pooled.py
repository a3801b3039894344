"""Rows of the pool: who gets what out of it, and which workspaces have one."""

from datetime import timedelta

import pytest
from django.utils import timezone

from console.workspaces import agents, keys, permissions
from console.workspaces.models import Agent, Workspace
from sandboxes import lifecycle, pooled, profiles
from sandboxes.errors import NotAllowed
from sandboxes.models import PooledSandbox, Sandbox
from tests.sandboxes.test_lifecycle import make, running

IMAGE = "sha256:1"


@pytest.fixture
def warm(cast):
    """One that is ready in the pool of the cast's workspace."""
    return warmed(cast.workspace)


def warmed(workspace, image_id=IMAGE):
    wish = pooled.Wish(workspace.pk, profiles.pool_profile(workspace, can_network=False), 1)
    row = pooled.begin(wish, image_id=image_id)
    assert pooled.ready(row.pk, container_id=f"container-{row.pk}", boot="boot", address=None)
    return PooledSandbox.objects.get(pk=row.pk)


def test_who_asks_for_the_default_gets_the_one_that_is_ready(cast, warm):
    sandbox = make(cast.caller(cast.scout), env={"MONTH": "3"}, label="report", idle_timeout_s=60)
    assert (sandbox.pk, sandbox.pooled, sandbox.status) == (warm.pk, True, "starting")
    assert not PooledSandbox.objects.exists()
    assert not make(cast.caller(cast.scout)).pooled


@pytest.mark.parametrize(
    "new", [{"memory_mb": 1024}, {"disk_mb": 64}, {"cpus": 2.0}, {"processes": 100}, {"open_files": 100}]
)
def test_who_asks_for_something_else_does_not(cast, warm, new):
    assert not make(cast.caller(cast.scout), **new).pooled
    assert PooledSandbox.objects.exists()


def test_a_writable_root_is_never_pooled(cast, warm):
    Agent.objects.filter(pk=cast.scout.pk).update(writable_root_allowed=True)
    assert not make(cast.caller(cast.scout), writable_root=True).pooled


def test_nobody_gets_what_is_not_ready_or_of_another_workspace_or_image(cast):
    warmed(cast.elsewhere)
    warmed(cast.workspace, image_id="sha256:old")
    wish = pooled.Wish(cast.workspace.pk, profiles.pool_profile(cast.workspace, can_network=False), 1)
    pooled.begin(wish, image_id=IMAGE)
    assert not make(cast.caller(cast.scout)).pooled


def test_a_create_that_is_refused_takes_nothing_out(cast, warm):
    with pytest.raises(NotAllowed):
        make(cast.caller(cast.scout), env={"LD_PRELOAD": "x"})
    assert PooledSandbox.objects.filter(pk=warm.pk).exists()
    assert not Sandbox.objects.exists()


def test_what_was_given_up_is_not_made_ready(cast, warm):
    assert pooled.forget(warm.pk)
    assert not pooled.forget(warm.pk)
    assert not pooled.ready(warm.pk, container_id="c", boot="b")


def test_the_pool_counts_towards_no_quota_and_nobody_sees_it(cast, warm):
    caller = cast.caller(cast.scout)
    assert not Sandbox.objects.live().exists()
    with pytest.raises(lifecycle.NotFound):
        lifecycle.find(caller, warm.pk)


def wished():
    return [wish.workspace_id for wish in pooled.wishes(can_network=False)]


def test_only_a_workspace_that_used_a_sandbox_lately_has_a_pool(cast):
    assert wished() == []
    sandbox = running(cast.caller(cast.scout))
    assert wished() == [cast.workspace.pk]
    Sandbox.objects.filter(pk=sandbox.pk).update(created_at=timezone.now() - timedelta(days=8))
    assert wished() == []


def test_a_workspace_whose_pool_is_off_or_in_which_nobody_may_has_none(cast):
    running(cast.caller(cast.scout))
    for agent in (cast.scout, cast.other):
        agents.change_tools(agent, by=cast.alice, sandbox_enabled=False)
    assert wished() == []
    _, secret = keys.make_member_key(cast.alice, name="k", may=[permissions.SANDBOXES_RUN], by=cast.alice)
    assert wished() == [cast.workspace.pk]
    Workspace.objects.filter(pk=cast.workspace.pk).update(pool_size=0)
    assert wished() == []


def test_what_settings_or_image_no_longer_want_does_not_fit(cast, warm):
    def fits(image_id=IMAGE):
        workspace = Workspace.objects.get(pk=cast.workspace.pk)
        wish = pooled.Wish(workspace.pk, profiles.pool_profile(workspace, can_network=False), 1)
        return pooled.fits(warm, wish, image_id)

    assert fits()
    assert not fits("sha256:2")
    Workspace.objects.filter(pk=cast.workspace.pk).update(limits={"memory_mb": {"default": 256}})
    assert not fits()
    Workspace.objects.filter(pk=cast.workspace.pk).update(limits={})
    warm.created_at -= pooled.KEPT_FOR
    assert not fits()
