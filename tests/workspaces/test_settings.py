"""What members set about sandboxes: validated with the field and the limit, audited, within the workspace's own."""

import pytest

from console.workspaces import agents, permissions, settings
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.models import Agent, Workspace
from tests import people

LIMITS = {"memory_mb": {"default": 1024, "most": 2048}, "cpus": {"most": 0.5}}


def change(cast, **wanted):
    return settings.change_workspace(by=cast.alice, **wanted)


def test_changed_settings_are_kept_and_audited_with_what_they_were(cast):
    change(cast, pool_size=0)
    changed = change(cast, limits=LIMITS, images=["team/tools:2"], pool_size=0)
    assert (changed.limits, changed.images, changed.pool_size) == (LIMITS, ["team/tools:2"], 0)
    entry = cast.workspace.audit.order_by("-seq").first()
    assert (entry.event, entry.actor_id) == ("workspace.settings_changed", cast.alice.pk)
    assert entry.data == {
        "before": {"limits": {}, "images": []},
        "after": {"limits": LIMITS, "images": ["team/tools:2"]},
    }
    entries = cast.workspace.audit.count()
    change(cast, limits=LIMITS)
    assert cast.workspace.audit.count() == entries  # nothing changed, nothing is told


def test_only_who_manages_the_workspace_changes_them(cast):
    for member in (cast.bob, people.member(cast.workspace, "dora", permissions.AGENTS_MANAGE)):
        with pytest.raises(PermissionDenied):
            settings.change_workspace(by=member, pool_size=3)
    settings.change_workspace(by=cast.mallory, pool_size=3)  # hers
    assert Workspace.objects.get(pk=cast.workspace.pk).pool_size == 1


@pytest.mark.parametrize(
    ("wanted", "field", "says"),
    [
        ({"limits": {"ram": {"most": 1}}}, "limits.ram", "no limit `ram`"),
        ({"limits": {"memory_mb": {"most": 1}}}, "limits.memory_mb.most", "at least 128"),
        ({"limits": {"memory_mb": {"most": 10**9}}}, "limits.memory_mb.most", "at most 65536"),
        ({"limits": {"memory_mb": {"most": 512.5}}}, "limits.memory_mb.most", "whole number"),
        ({"limits": {"memory_mb": {"most": True}}}, "limits.memory_mb.most", "whole number"),
        ({"limits": {"cpus": {"default": float("nan")}}}, "limits.cpus.default", "number"),
        ({"limits": {"cpus": {"default": 2.0, "most": 1.0}}}, "limits.cpus.default", "above the most"),
        ({"limits": {"disk_mb": {"default": 9000}}}, "limits.disk_mb.default", "above the most there may be, 8192"),
        ({"limits": {"cpus": {"default": 1.0, "least": 0.1}}}, "limits.cpus", "and nothing else"),
        ({"limits": {"cpus": 1.0}}, "limits.cpus", "and nothing else"),
        ({"limits": [1]}, "limits", "memory_mb"),
        ({"images": ["--privileged"]}, "images", "no name of an image"),
        ({"images": ["a b"]}, "images", "no name of an image"),
        ({"images": "alpine"}, "images", "list"),
        ({"pool_size": 9}, "pool_size", "0 to 8"),
        ({"pool_size": True}, "pool_size", "0 to 8"),
        ({"name": "x"}, "name", "no setting"),
    ],
)
def test_what_cannot_be_set_is_named_with_what_could(cast, wanted, field, says):
    with pytest.raises(Invalid, match=says) as refusal:
        change(cast, **wanted)
    assert refusal.value.fields["field"] == field
    untouched = Workspace.objects.get(pk=cast.workspace.pk)
    assert (untouched.limits, untouched.images, untouched.pool_size) == ({}, [], 1)


def test_stock_images_need_no_permission_and_are_not_listed(cast):
    assert change(cast, images=["node", "a", "a", "default"]).images == ["a"]


def test_an_agents_own_settings_raise_its_version_and_are_audited(cast):
    before = cast.scout.settings_version
    changed = agents.change_tools(
        cast.scout, by=cast.alice, network="none", persistent_allowed=True, writable_root_allowed=True,
        images=["team/tools:2"], limits={"memory_mb": {"most": 256, "default": 256}},
    )  # fmt: skip
    assert changed.settings_version == before + 1
    entry = cast.workspace.audit.order_by("-seq").first()
    assert entry.event == "agent.tools_changed"
    assert entry.data["before"] == {
        "network": "public", "persistent_allowed": False, "writable_root_allowed": False, "images": [], "limits": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"network": "host"}, "network"),
        ({"persistent_allowed": "yes"}, "persistent_allowed"),
        ({"writable_root_allowed": 1}, "writable_root_allowed"),
        ({"images": [3]}, "images"),
        ({"limits": {"memory_mb": {"most": 4096}}}, "limits.memory_mb.most"),
        ({"limits": {"memory_mb": {"default": 4096}}}, "limits.memory_mb.default"),
    ],
)
def test_an_agent_is_not_given_what_its_workspace_does_not_have(cast, wanted, field):
    change(cast, limits={"memory_mb": {"default": 256, "most": 2048}})
    scout = Agent.objects.get(pk=cast.scout.pk)
    with pytest.raises(Invalid) as refusal:
        agents.change_tools(scout, by=cast.alice, **wanted)
    assert refusal.value.fields["field"] == field
    assert Agent.objects.get(pk=scout.pk).settings_version == scout.settings_version


def test_a_workspace_that_lowers_its_most_lowers_its_agents(cast):
    agents.change_tools(cast.scout, by=cast.alice, limits={"memory_mb": {"default": 3000, "most": 4000}})
    workspace = change(cast, limits={"memory_mb": {"most": 1000}})
    span = settings.ranges(workspace, Agent.objects.get(pk=cast.scout.pk))["memory_mb"]
    assert (span.default, span.most) == (1000, 1000)


def test_an_admin_may_raise_a_most_that_is_only_built_in(cast):
    workspace = change(cast, limits={"memory_mb": {"most": 16384}})
    assert settings.ranges(workspace)["memory_mb"].most == 16384
    assert settings.ranges(workspace, cast.scout)["memory_mb"].most == 16384
