"""What a new sandbox is made of: asked for, within what its agent and workspace allow."""

import pytest

from console.workspaces import agents, permissions, settings
from console.workspaces.errors import Invalid
from sandboxes import profiles
from sandboxes.errors import NoRuntime, NotAllowed
from sandboxes.profiles import NewSandbox


def resolve(cast, who=None, *, can_network=True, **asked):
    who = who or cast.scout
    caller = cast.caller(who, permissions.SANDBOXES_RUN) if who in (cast.alice, cast.mallory) else cast.caller(who)
    return profiles.resolve(caller, NewSandbox(**asked), can_network=can_network)


def allow(cast, **wanted):
    agents.change_tools(cast.scout, by=cast.alice, **wanted)


def test_who_asks_for_nothing_gets_the_defaults_and_the_pool_holds_just_that(cast):
    found = resolve(cast)
    assert (found.image, found.network, found.persistent, found.writable_root) == ("default", "public", False, False)
    numbers = {name: getattr(found, name) for name in settings.RANGES}
    assert numbers == {name: span.default for name, span in settings.RANGES.items()}
    assert profiles.pool_profile(cast.workspace, can_network=True).made_of() == found.made_of()


def test_settings_of_the_agent_come_before_the_workspaces_and_these_before_what_is_built_in(cast):
    settings.change_workspace(
        by=cast.alice, limits={"memory_mb": {"default": 700, "most": 900}, "processes": {"default": 50}}
    )
    allow(cast, limits={"memory_mb": {"default": 800}})
    scouts, others = resolve(cast), resolve(cast, cast.other)
    assert (scouts.memory_mb, others.memory_mb) == (800, 700)
    assert (scouts.processes, others.processes, scouts.cpus) == (50, 50, settings.RANGES["cpus"].default)
    elsewhere = resolve(cast, cast.mallory)
    assert (elsewhere.memory_mb, elsewhere.processes) == (512, 200)


def test_what_is_above_the_most_is_refused_with_the_field_and_the_limit(cast):
    settings.change_workspace(by=cast.alice, limits={"memory_mb": {"most": 900}})
    allow(cast, limits={"memory_mb": {"most": 600}, "output_mb": {"default": 2, "most": 3}})
    for name, limit in (("memory_mb", 600), ("output_mb", 3), ("cpus", 4.0), ("processes", 1000)):
        assert getattr(resolve(cast, **{name: limit}), name) == limit
        with pytest.raises(NotAllowed, match=f"`{name}` may be at most") as refusal:
            resolve(cast, **{name: limit + 1})
        assert refusal.value.fields == {"field": name, "limit": limit}
    assert resolve(cast, cast.alice, memory_mb=900).memory_mb == 900
    with pytest.raises(NotAllowed):
        resolve(cast, cast.alice, memory_mb=901)


def test_what_is_below_the_least_is_not_acceptable(cast):
    for asked in ({"memory_mb": 127}, {"cpus": float("nan")}, {"open_files": 1}):
        with pytest.raises(Invalid) as refusal:
            resolve(cast, **asked)
        assert refusal.value.fields["field"] == next(iter(asked))


def test_a_network_is_had_where_the_host_can_jail_it_and_the_agent_may(cast):
    assert resolve(cast, network="public").network == "public"
    assert resolve(cast, network="none").network == "none"
    assert resolve(cast, can_network=False).network == "none"
    with pytest.raises(NoRuntime, match="network: none"):
        resolve(cast, network="public", can_network=False)
    allow(cast, network="none")
    assert resolve(cast).network == "none"
    with pytest.raises(NotAllowed) as refusal:  # also where the host could not: that is not the reason
        resolve(cast, network="public", can_network=False)
    assert refusal.value.fields == {"field": "network", "limit": "none"}
    assert resolve(cast, cast.alice).network == "public"


@pytest.mark.parametrize("name", ["persistent", "writable_root"])
def test_what_an_admin_allows_per_agent_is_refused_until_then(cast, name):
    with pytest.raises(NotAllowed, match=cast.scout.name) as refusal:
        resolve(cast, **{name: True})
    assert refusal.value.fields == {"field": name, "limit": False}
    allow(cast, **{f"{name}_allowed": True})
    assert getattr(resolve(cast, **{name: True}), name) is True
    assert getattr(resolve(cast), name) is False
    with pytest.raises(NotAllowed):
        resolve(cast, cast.other, **{name: True})


def test_images_are_allowed_by_name_for_the_workspace_or_one_agent(cast):
    for stock in ("default", "node"):
        assert resolve(cast, image=stock).image == stock
    settings.change_workspace(by=cast.alice, images=["team/tools:2"])
    allow(cast, images=["scouts/own"])
    for name in ("team/tools:2", "scouts/own"):
        assert resolve(cast, image=name).image == name
    for who, name in (
        (cast.other, "scouts/own"),
        (cast.mallory, "team/tools:2"),
        (cast.scout, "team/tools"),
        (cast.scout, "sandgate/default"),
    ):
        with pytest.raises(NotAllowed, match="not allowed here") as refusal:
            resolve(cast, who, image=name)
        assert refusal.value.fields["field"] == "image"
        assert name not in refusal.value.fields["limit"]


def test_the_pool_follows_the_workspaces_settings(cast):
    before = profiles.pool_profile(cast.workspace, can_network=True)
    workspace = settings.change_workspace(by=cast.alice, limits={"memory_mb": {"default": 256}})
    after = profiles.pool_profile(workspace, can_network=True)
    assert before.made_of() != after.made_of() == resolve(cast).made_of()
    assert profiles.pool_profile(workspace, can_network=False).network == "none"
