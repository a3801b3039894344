import pytest
from django.db import IntegrityError, transaction

from console.workspaces import audit, members, permissions, settings
from console.workspaces.errors import Conflict, Invalid, PermissionDenied
from console.workspaces.models import Agent, Member, Permission, User, Workspace
from tests import people

RUN = permissions.SANDBOXES_RUN


def test_no_preset_holds_sandboxes_run():
    assert all(RUN not in preset for preset in permissions.PRESETS.values())
    assert set().union(*permissions.PRESETS.values()) == set(permissions.ALL) - {RUN}


@pytest.mark.parametrize("flag", ["is_superuser", "is_staff"])
def test_no_flag_of_a_user_implies_any_permission(cast, flag):
    newcomer = people.member(cast.workspace, "newcomer")
    User.objects.filter(pk=newcomer.user_id).update(**{flag: True})
    newcomer = Member.objects.get(pk=newcomer.pk)
    assert not any(newcomer.may(permission) for permission in permissions.ALL)
    assert not newcomer.user.has_perm("anything")


def test_every_permission_is_given_by_name_and_none_brings_another(cast):
    for permission in permissions.ALL:
        holder = people.member(cast.workspace, permission.replace(":", "-"))
        members.give(holder, permission, by=cast.alice)
        assert {name for name in permissions.ALL if holder.may(name)} == {permission}


def test_nobody_gives_sandboxes_run_to_themselves(cast):
    members.take(cast.alice, RUN, by=cast.alice)
    with pytest.raises(PermissionDenied, match="themselves"):
        members.give(cast.alice, RUN, by=cast.alice)


def test_nor_to_an_agent_they_own(cast):
    members.take(cast.scout, RUN, by=cast.alice)
    Agent.objects.filter(pk=cast.scout.pk).update(owner=cast.alice)
    with pytest.raises(PermissionDenied, match="themselves"):
        members.give(Agent.objects.get(pk=cast.scout.pk), RUN, by=cast.alice)


def test_the_only_member_may_give_it_to_themselves(cast):
    members.take(cast.mallory, RUN, by=cast.mallory)
    assert members.give(cast.mallory, RUN, by=cast.mallory)


def test_giving_needs_members_manage_in_the_same_workspace(cast):
    for by in (cast.bob, cast.mallory):
        with pytest.raises(PermissionDenied):
            members.give(cast.bob, permissions.AUDIT_READ, by=by)


def test_giving_and_taking_are_audited_once(cast):
    before = cast.workspace.audit.count()
    assert members.give(cast.bob, RUN, by=cast.alice)
    assert not members.give(cast.bob, RUN, by=cast.alice)
    assert members.take(cast.bob, RUN, by=cast.alice)
    assert not members.take(cast.bob, RUN, by=cast.alice)
    rows = cast.workspace.audit.order_by("seq")[before:]
    assert [(row.event, row.actor_id, row.data) for row in rows] == [
        ("permission.given", cast.alice.pk, {"permission": RUN}),
        ("permission.taken", cast.alice.pk, {"permission": RUN}),
    ]


def test_an_unknown_permission_is_named(cast):
    with pytest.raises(Invalid, match="sandboxes:fly"):
        members.give(cast.bob, "sandboxes:fly", by=cast.alice)
    with pytest.raises(IntegrityError), transaction.atomic():
        Permission.objects.create(workspace=cast.workspace, member=cast.bob, name="sandboxes:fly")


def test_the_last_members_manage_stays(cast):
    with pytest.raises(Conflict, match="last member"):
        members.take(cast.alice, permissions.MEMBERS_MANAGE, by=cast.alice)


def test_a_removed_member_may_nothing_and_comes_back_with_nothing(cast):
    members.remove(cast.bob, by=cast.alice)
    bob = Member.objects.get(pk=cast.bob.pk)
    assert not any(bob.may(permission) for permission in permissions.ALL)
    again = members.add(cast.workspace, bob.user, by=cast.alice)
    assert again.pk == bob.pk
    assert not any(again.may(permission) for permission in permissions.ALL)


def test_a_new_member_by_email_gets_a_password_that_must_change(cast):
    member, password = members.add_by_email(cast.workspace, email="ines@example.test", name="Ines", by=cast.alice)
    assert password
    assert member.user.check_password(password)
    assert member.user.password_must_change
    known, none = members.add_by_email(cast.workspace, email="MALLORY@example.test", name="", by=cast.alice)
    assert known.user_id == cast.mallory.user_id
    assert none is None


def test_an_email_belongs_to_one_user_in_any_case(cast):
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create_user("BOB@example.test", "x", name="Bob two")


def test_who_is_removed_is_told_no_more_of_what_nobody_decides(cast):
    """Else they were told again when they come back, and the setting could not be sent back as it was read."""
    to = [cast.bob.pk, cast.alice.pk]
    settings.change_workspace(by=cast.alice, escalate_after_min=30, escalate_to=to)
    members.remove(cast.bob, by=cast.alice)
    found = Workspace.objects.get(pk=cast.workspace.pk)
    assert (found.escalate_after_min, found.escalate_to) == (30, [cast.alice.pk])
    row = found.audit.filter(event="workspace.settings_changed").latest("seq")
    assert (row.actor_id, row.data) == (
        cast.alice.pk, {"before": {"escalate_to": to}, "after": {"escalate_to": [cast.alice.pk]}}
    )  # fmt: skip
    assert list(audit.broken_links(found)) == []
    settings.change_workspace(by=cast.alice, escalate_to=found.escalate_to)
    carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    before = found.audit.filter(event="workspace.settings_changed").count()
    members.remove(carol, by=cast.alice)
    assert found.audit.filter(event="workspace.settings_changed").count() == before
