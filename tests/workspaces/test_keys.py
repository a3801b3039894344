from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from console.workspaces import keys, members, permissions
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.models import Agent, Key

RUN, REVIEW, READ = permissions.SANDBOXES_RUN, permissions.APPROVALS_REVIEW, permissions.SANDBOXES_READ


def test_only_a_hash_is_kept(cast):
    key, secret = keys.make_agent_key(cast.scout, name="k", by=cast.alice)
    stored = Key.objects.filter(pk=key.pk).values().get()
    assert secret not in repr(stored)
    assert keys.authenticate(secret).key_id == key.pk


@pytest.mark.parametrize("how", ["revoked", "expired", "agent archived", "wrong"])
def test_a_key_that_is_over_opens_nothing(cast, how):
    key, secret = keys.make_agent_key(cast.scout, name="k", by=cast.alice)
    if how == "revoked":
        assert keys.revoke(key, by=cast.alice)
        assert not keys.revoke(key, by=cast.alice)
    elif how == "expired":
        Key.objects.filter(pk=key.pk).update(expires_at=timezone.now())
    elif how == "agent archived":
        Agent.objects.filter(pk=cast.scout.pk).update(archived_at=timezone.now())
    else:
        secret += "x"
    assert keys.authenticate(secret) is None


def test_an_agents_key_may_what_its_agent_may_now(cast):
    secret = cast.key_of(cast.scout)
    assert keys.authenticate(secret).permissions == {RUN}
    members.take(cast.scout, RUN, by=cast.alice)
    assert keys.authenticate(secret).permissions == frozenset()


def test_an_agents_key_survives_the_member_who_made_it(cast):
    _, secret = keys.make_agent_key(cast.scout, name="k", by=cast.bob)
    members.remove(cast.bob, by=cast.alice)
    assert keys.authenticate(secret)


def test_a_members_key_never_does_more_than_the_member_can_now(cast):
    secret = cast.workspace_key(cast.alice, RUN, READ)
    assert keys.authenticate(secret).permissions == {RUN, READ}
    members.take(cast.alice, RUN, by=cast.alice)
    assert keys.authenticate(secret).permissions == {READ}
    with pytest.raises(Invalid, match="does not have"):
        keys.make_member_key(cast.bob, name="k", may=[RUN], by=cast.bob)


def test_a_key_runs_or_reviews_never_both(cast):
    with pytest.raises(Invalid, match="never both"):
        keys.make_member_key(cast.alice, name="k", may=[RUN, REVIEW, READ], by=cast.alice)


def test_a_key_acts_for_the_member_who_makes_it(cast):
    with pytest.raises(PermissionDenied):
        keys.make_member_key(cast.bob, name="k", may=[READ], by=cast.alice)


def test_a_key_belongs_to_an_agent_or_a_member(cast):
    expires = timezone.now() + timedelta(days=1)
    for holders in ({}, {"agent": cast.scout, "member": cast.bob}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Key.objects.create(
                workspace=cast.workspace,
                name="k",
                hint="h",
                secret_hash=f"{holders}"[:64],
                expires_at=expires,
                **holders,
            )


@pytest.mark.parametrize("days", [0, -1, 366])
def test_a_key_lasts_a_day_to_a_year(cast, days):
    with pytest.raises(Invalid, match="days"):
        keys.make_agent_key(cast.scout, name="k", by=cast.alice, days=days)


def test_what_is_missing_is_named_with_who_can_give_it(cast):
    caller = cast.caller(cast.scout)
    with pytest.raises(PermissionDenied, match="`rules:manage`.*members:manage"):
        caller.need(permissions.RULES_MANAGE)
