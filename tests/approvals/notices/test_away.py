"""Away and deputy: notices go another way for a time, by themselves back again, and nobody may more than before."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import decisions
from approvals.notices import acts, planning
from approvals.notices.models import Delivery, Webhook
from console.workspaces import agents, away, db, members, permissions
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.models import AuditEntry, Member
from tests import people
from tests.approvals.proposals import pending

from .conftest import told, write

pytestmark = pytest.mark.anyio
TWO_DAYS = timedelta(days=2)


def fresh(member):
    return Member.objects.select_related("user", "workspace").get(pk=member.pk)


def leaves(member, deputy=None, for_=TWO_DAYS):
    away.leave(until=timezone.now() + for_, deputy=deputy and fresh(deputy), by=fresh(member))


def is_over(member):
    Member.objects.filter(pk=member.pk).update(away_until=timezone.now() - timedelta(seconds=1))


def a_third(cast):
    cast.carol = people.member(cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    acts.set_own_email(on=True, by=cast.bob)


def later(minutes):
    for row in Delivery.objects.all():
        row.created_at -= timedelta(minutes=minutes)
        row.save()


async def asks(cast, command="echo hi", **more):
    return await write(lambda: pending(cast.caller(cast.scout), command, **more))


def to(mailbox):
    return [address for message in mailbox for address in message.to]


async def test_the_deputy_is_mailed_in_their_place_and_told_for_whom(committed_cast, mailbox):
    cast = committed_cast
    await write(a_third, cast)
    await write(leaves, cast.bob, cast.carol)
    await asks(cast)
    await told()
    assert to(mailbox) == ["carol@example.test"], "who had not asked for email of her own"
    until = (await db.read(fresh, cast.bob)).away_until
    assert f"1 for Bob, who is away until {until:%Y-%m-%d %H:%M} UTC" in mailbox[0].body
    await write(is_over, cast.bob)
    await write(later, 10)
    await asks(cast, "echo 2")
    await told()
    assert to(mailbox) == ["carol@example.test", "bob@example.test"], "it ends by itself"
    assert "away" not in mailbox[1].body


async def test_without_a_deputy_it_waits_until_they_are_back(committed_cast, mailbox):
    cast = committed_cast
    await write(a_third, cast)
    await write(leaves, cast.bob)
    await asks(cast)
    await told()
    assert mailbox == []
    assert await write(away.come_back, by=cast.bob)
    await told()
    assert to(mailbox) == ["bob@example.test"]


@pytest.mark.parametrize("gone", ["away", "removed", "reviews no more"])
async def test_a_deputy_who_is_not_there_hears_nothing_and_nothing_is_lost(committed_cast, mailbox, gone):
    cast = committed_cast
    await write(a_third, cast)
    await write(leaves, cast.bob, cast.carol)
    if gone == "away":
        await write(leaves, cast.carol)
    elif gone == "removed":
        await write(members.remove, cast.carol, by=cast.alice)
    else:
        await write(members.take, cast.carol, permissions.APPROVALS_REVIEW, by=cast.alice)
    await asks(cast)
    await told()
    assert to(mailbox) == ["bob@example.test"]


async def test_a_deputy_hears_of_what_they_may_not_approve_and_may_it_no_more_than_before(committed_cast, mailbox):
    cast = committed_cast
    await write(a_third, cast)
    await write(agents.change_tools, cast.scout, by=None, reviewers=[cast.bob.pk])
    await write(leaves, cast.bob, cast.carol)
    action = await asks(cast)
    await told()
    assert to(mailbox) == ["carol@example.test"]
    with pytest.raises(PermissionDenied):
        await write(decisions.decide, action, "approve", by=cast.carol, digest=action.digest)


async def test_who_stands_in_and_hears_the_same_themselves_is_told_once(committed_cast, mailbox):
    cast = committed_cast
    await write(a_third, cast)
    await write(acts.set_own_email, on=True, by=cast.carol)
    await write(leaves, cast.bob, cast.carol)
    await asks(cast)
    await told()
    await told()
    assert to(mailbox) == ["carol@example.test"]


async def test_what_who_is_away_has_approved_is_no_news_for_their_deputy(committed_cast, mailbox):
    cast = committed_cast
    await write(a_third, cast)
    await write(agents.change_tools, cast.scout, by=None, approvals_needed=2)
    action = await asks(cast)
    await write(decisions.decide, action, "approve", by=cast.bob, digest=action.digest)
    await write(leaves, cast.bob, cast.carol)
    await told()
    assert mailbox == []


async def planned(cast):
    """Written down, and not sent yet."""
    ((hook, said),) = await db.read(planning.due)
    await write(planning.write_down, hook, said)


def email(on, cast):
    acts.set_own_email(on=on, by=cast.bob)


def reviews(on, cast):
    change = members.give if on else members.take
    change(cast.bob, permissions.APPROVALS_REVIEW, by=cast.alice)


def there(on, cast):
    away.come_back(by=cast.bob) if on else leaves(cast.bob)


async def is_told_later(cast, mailbox, turn):
    """What was planned is moot once `turn` is off; turned on again, it is told once."""
    await write(turn, False, cast)
    await told()
    assert mailbox == []
    assert [row.status for row in await db.read(lambda: list(Delivery.objects.all()))] == ["moot"]
    await write(turn, True, cast)
    for _ in range(2):
        await write(later, 10)
        await told()
    assert to(mailbox) == ["bob@example.test"]


@pytest.mark.parametrize("turn", [email, reviews, there])
async def test_who_hears_nothing_when_it_is_sent_is_told_once_they_hear_again(committed_cast, mailbox, turn):
    cast = committed_cast
    await write(a_third, cast)
    await asks(cast)
    await planned(cast)
    await is_told_later(cast, mailbox, turn)


async def test_a_webhook_that_is_off_when_it_is_sent_is_told_once_it_is_on(committed_cast, mailbox):
    cast = committed_cast
    hook = await write(acts.make, kind="email", target="bob@example.test", by=cast.alice)

    def turn(on, cast):
        acts.turn(Webhook.objects.select_related("owner__user").get(pk=hook.pk), on=on, by=cast.alice)

    await asks(cast)
    await planned(cast)
    await is_told_later(cast, mailbox, turn)


def test_who_is_removed_comes_back_as_present(cast):
    leaves(cast.bob, cast.alice)
    members.remove(cast.bob, by=cast.alice)
    back = members.add(cast.workspace, cast.bob.user, by=None)
    assert not fresh(back).is_away


def test_it_is_on_record_with_its_time_and_deputy(cast):
    leaves(cast.bob, cast.alice)
    assert away.come_back(by=fresh(cast.bob))
    assert not away.come_back(by=fresh(cast.bob))
    gone, back = AuditEntry.objects.filter(subject_id=cast.bob.pk, event__in=["member.away", "member.back"])
    assert (gone.actor_id, gone.data["deputy"]) == (cast.bob.pk, cast.alice.pk)
    assert back.event == "member.back"


@pytest.mark.parametrize("for_", [timedelta(0), -TWO_DAYS, timedelta(days=181)])
def test_a_time_is_in_the_next_180_days(cast, for_):
    with pytest.raises(Invalid) as refused:
        leaves(cast.bob, for_=for_)
    assert refused.value.fields["field"] == "until"


@pytest.mark.parametrize("who", ["bob", "mallory", "looker"])
def test_a_deputy_is_another_reviewer_here(cast, who):
    cast.looker = people.member(cast.workspace, "looker", permissions.SANDBOXES_READ)
    with pytest.raises(Invalid) as refused:
        leaves(cast.bob, getattr(cast, who))
    assert refused.value.fields["field"] == "deputy"
    assert not fresh(cast.bob).is_away


def test_who_does_not_review_is_not_away(cast):
    cast.looker = people.member(cast.workspace, "looker", permissions.SANDBOXES_READ)
    with pytest.raises(PermissionDenied):
        leaves(cast.looker)
