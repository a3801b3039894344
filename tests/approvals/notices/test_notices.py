"""Notices from a proposal to a real endpoint: what they say, when, to whom, how often; and never the command."""

import json
import smtplib
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import decisions, edits
from approvals.models import Action
from approvals.notices import acts, loop, planning, sending
from approvals.notices.models import Attempt, Delivery, Told, Webhook
from console.state import CHECKOUT
from console.workspaces import agents, db, members, permissions
from console.workspaces.errors import Conflict
from console.workspaces.models import Member
from tests import people
from tests.approvals.proposals import pending, run

from .conftest import hook_at, told, write

pytestmark = pytest.mark.anyio
SECRET_WORDS = "rm -rf /work/TOP-SECRET"
KINDS = ("plain", "slack", "teams", "ntfy", "email")


def recipe():
    """`is_from_sandgate`, as docs/notices.md has it for people to copy."""
    code = (CHECKOUT / "docs/notices.md").read_text().split("```python\n")[1].split("```")[0]
    exec(code, found := {})
    return found["is_from_sandgate"]


async def everything():
    def read():
        found = Delivery.objects.order_by("pk")
        return list(found), [(row.status, row.error) for row in Attempt.objects.order_by("pk")]

    return await db.read(read)


async def asks(cast, command="echo hi", agent=None, **more):
    caller = await write(cast.caller, agent or cast.scout)
    return await write(pending, caller, command, **more)


async def later(minutes):
    """Deliveries were made so long ago: times of rows are moved, not the clock."""

    def move():
        for row in Delivery.objects.all():
            row.created_at -= timedelta(minutes=minutes)
            row.next_at -= timedelta(minutes=minutes)
            row.save()

    await write(move)


async def test_a_program_is_told_and_can_prove_who_told_it(committed_cast, endpoint):
    cast = committed_cast
    hook = await write(hook_at, endpoint, cast.alice)
    action = await asks(cast)
    await told()
    (got,) = endpoint.got
    body = json.loads(got.body)
    assert body.pop("id") == got.headers["X-Sandgate-Delivery"]
    assert body == {
        "event": "waiting",
        "workspace": {"id": cast.workspace.pk, "name": "Harbour Works"},
        "count": 1,
        "items": [{"agent": "scout", "tool": "run", "count": 1}],
        "link": f"https://console.test/w/{cast.workspace.pk}/queue/{action.pk}",
    }
    proves, seen = recipe(), set()
    assert not proves("whsec_other", got.headers, got.body, seen)
    assert not proves(hook.secret, got.headers, got.body.replace(b"scout", b"other"), seen)
    assert not proves(hook.secret, {**got.headers, "X-Sandgate-Timestamp": "1700000000"}, got.body, seen)
    assert proves(hook.secret, got.headers, got.body, seen)
    assert not proves(hook.secret, got.headers, got.body, seen), "played again"
    assert [row.status for row in (await everything())[0]] == ["delivered"]
    assert (await everything())[1] == [(204, "")]


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_of_what_would_run_is_in_a_notice(committed_cast, endpoint, mailbox, kind):
    cast = committed_cast
    await write(acts.make, kind=kind, target="ops@example.test" if kind == "email" else endpoint.url, by=cast.alice)
    await asks(cast, SECRET_WORDS, reason="because TOP-SECRET", conversation="TOP-SECRET talk", flags=["TOP-SECRET"])
    await asks(cast, SECRET_WORDS, agent=cast.other)
    await told()
    said = endpoint.got[0].body.decode() if endpoint.got else f"{mailbox[0].subject}\n{mailbox[0].body}"
    assert len(endpoint.got) + len(mailbox) == 1
    assert "TOP-SECRET" not in said
    for word in (
        "scout",
        "other",
        "run",
        "2 actions wait" if kind != "plain" else '"count":2',
        "https://console.test/",
    ):
        assert word in said, word
    kept = await db.read(lambda: [str(each) for model in (Delivery, Told, Attempt) for each in model.objects.values()])
    assert "TOP-SECRET" not in "".join(kept)


async def test_chats_get_their_own_shapes(committed_cast, endpoint):
    cast = committed_cast
    for kind in ("slack", "teams", "ntfy"):
        await write(hook_at, endpoint, cast.alice, kind)
    await asks(cast)
    await told()
    found = {got.path: json.loads(got.body) for got in endpoint.got if "topic" in json.loads(got.body)}
    assert found["/"]["topic"] == "hook"
    assert found["/"]["click"].startswith("https://console.test/w/")
    bodies = [json.loads(got.body) for got in endpoint.got]
    (slack,) = (body for body in bodies if "blocks" in body)
    assert slack["text"].startswith("1 action waits for approval in Harbour Works")
    (teams,) = (body for body in bodies if "attachments" in body)
    card = teams["attachments"][0]["content"]
    assert card["actions"][0]["url"].startswith("https://console.test/w/")
    assert all("X-Sandgate-Signature" not in got.headers for got in endpoint.got)


async def test_a_name_is_no_markup_anywhere(committed_cast, endpoint, mailbox):
    cast = committed_cast
    evil = "<!channel> [x](https://evil.test)\r\nBcc: a@evil.test \u202e"
    await write(type(cast.scout).objects.filter(pk=cast.scout.pk).update, name=evil[:60])
    await write(type(cast.workspace).objects.filter(pk=cast.workspace.pk).update, name=evil)
    for kind in ("slack", "teams"):
        await write(hook_at, endpoint, cast.alice, kind)
    await write(acts.make, kind="email", target="ops@example.test", by=cast.alice)
    await asks(cast)
    await told()
    assert len(endpoint.got) == 2
    for got in endpoint.got:
        text = json.loads(got.body)
        said = text.get("text") or text["attachments"][0]["content"]["body"][0]["text"]
        assert "<!channel>" not in said
        assert "[x](https" not in said or "text" in text
        assert "\u202e" not in said
    (sent,) = mailbox
    assert "\n" not in sent.subject
    assert sent.recipients() == ["ops@example.test"]
    assert "\u202e" not in sent.body


async def test_at_most_one_in_five_minutes_with_counts(committed_cast, endpoint):
    cast = committed_cast
    await write(hook_at, endpoint, cast.alice)
    await asks(cast)
    await told()
    await asks(cast, "echo 2")
    await asks(cast, "echo 3")
    await told()
    assert len(endpoint.got) == 1
    await later(5)
    await told()
    assert [json.loads(got.body)["count"] for got in endpoint.got] == [1, 2]
    await later(5)
    await told()
    assert len(endpoint.got) == 2, "each is told once"


async def test_flagged_ones_are_told_within_those_five_minutes(committed_cast, endpoint):
    cast = committed_cast
    await write(hook_at, endpoint, cast.alice)
    await asks(cast)
    await told()
    await later(1)
    await asks(cast, "curl x | sh", flags=["network"])
    await told()
    assert [json.loads(got.body)["event"] for got in endpoint.got] == ["waiting", "flagged"]


async def test_one_is_told_again_an_hour_before_it_expires(committed_cast, endpoint):
    cast = committed_cast
    await write(hook_at, endpoint, cast.alice)
    action = await asks(cast)
    await told()
    await later(1)
    await write(Action.objects.filter(pk=action.pk).update, expires_at=timezone.now() + timedelta(minutes=59))
    await told()
    await told()
    assert [json.loads(got.body)["event"] for got in endpoint.got] == ["waiting", "expiring"]


async def test_a_reviewer_is_mailed_of_what_they_may_approve(committed_cast, mailbox):
    cast = committed_cast
    await write(acts.set_own_email, on=True, by=cast.bob)
    await write(type(cast.other).objects.filter(pk=cast.other.pk).update, owner=cast.bob)
    await asks(cast, agent=cast.other)
    await told()
    assert mailbox == []
    await asks(cast)
    await told()
    assert [message.to for message in mailbox] == [["bob@example.test"]]
    assert "other" not in mailbox[0].body
    await write(acts.set_own_email, on=False, by=cast.bob)
    await later(10)
    await asks(cast, "echo 2")
    await told()
    assert len(mailbox) == 1


async def test_whose_approval_an_edit_has_reset_is_told_that_it_waits_again(committed_cast, mailbox):
    cast = committed_cast
    await write(agents.change_tools, cast.scout, by=None, approvals_needed=2)
    await write(people.member, cast.workspace, "carol", *permissions.PRESETS["reviewer"])
    await write(people.member, cast.workspace, "dan", *permissions.PRESETS["reviewer"])
    await write(acts.set_own_email, on=True, by=cast.bob)
    action = await asks(cast)
    await told()
    await write(decisions.decide, action, "approve", by=cast.bob, digest=action.digest)
    await later(10)
    await told()
    assert len(mailbox) == 1, "it waits for others"

    def edit():
        waits = Action.objects.get(pk=action.pk)
        edited = run(cast.caller(cast.scout), "echo other", profile=waits.profile)
        edits.put(waits, edited, by=Member.objects.get(user__name="Carol"), digest_before=waits.digest)

    await write(edit)
    await told()
    assert [message.to for message in mailbox] == [["bob@example.test"]] * 2


@pytest.mark.parametrize("leaves", ["membership", "permission"])
async def test_who_no_longer_reviews_is_mailed_nothing(committed_cast, mailbox, leaves):
    cast = committed_cast
    await write(acts.set_own_email, on=True, by=cast.bob)
    await asks(cast)
    if leaves == "membership":
        await write(members.remove, cast.bob, by=cast.alice)
    else:
        await write(members.take, cast.bob, permissions.APPROVALS_REVIEW, by=cast.alice)
    await told()
    assert mailbox == []


async def test_nobody_else_hears_of_a_workspace(committed_cast, endpoint):
    cast = committed_cast
    await write(hook_at, endpoint, cast.mallory)
    await asks(cast)
    await told()
    assert endpoint.got == []


async def test_a_failure_is_tried_again_later_each_time_and_then_given_up(committed_cast, endpoint):
    cast = committed_cast
    endpoint.status = 500
    await write(hook_at, endpoint, cast.alice)
    await asks(cast)
    for at, wait_s in enumerate((10, 60, 600, 3600)):
        await told()
        (row,) = (await everything())[0]
        assert (row.status, row.tries, len(endpoint.got)) == ("waiting", at + 1, at + 1)
        assert wait_s - 5 < (row.next_at - timezone.now()).total_seconds() <= wait_s
        await told()
        assert len(endpoint.got) == at + 1, "not before its time"
        await write(Delivery.objects.update, next_at=timezone.now())
    await told()
    (row,), attempts = await everything()
    assert (row.status, row.tries) == ("failed", 5)
    assert attempts == [(500, "localhost answered 500.")] * 5
    assert len({got.headers["X-Sandgate-Delivery"] for got in endpoint.got}) == 1
    assert len({got.headers["X-Sandgate-Nonce"] for got in endpoint.got}) == 5


async def test_what_was_decided_meanwhile_is_not_told_any_more(committed_cast, endpoint):
    cast = committed_cast
    endpoint.status = 500
    await write(hook_at, endpoint, cast.alice)
    action = await asks(cast)
    await told()
    await write(Action.objects.filter(pk=action.pk).update, status="denied", ended_at=timezone.now())
    await write(Delivery.objects.update, next_at=timezone.now())
    await told()
    assert ((await everything())[0][0].status, len(endpoint.got)) == ("moot", 1)


async def test_who_dies_while_sending_leaves_it_to_be_sent_again(committed_cast, endpoint):
    cast = committed_cast
    await write(hook_at, endpoint, cast.alice)
    await asks(cast)
    ((hook, said),) = await db.read(planning.due)
    delivery = await write(planning.write_down, hook, said)
    assert await write(sending.claim, delivery.pk) is not None
    assert await write(sending.claim, delivery.pk) is None, "two never send the same at once"
    await told()
    assert endpoint.got == []
    await later(2)
    await told()
    assert [row.status for row in (await everything())[0]] == ["delivered"]
    assert len(endpoint.got) == 1


async def test_two_who_plan_at_once_write_one_delivery_down(committed_cast, endpoint):
    cast = committed_cast
    await write(hook_at, endpoint, cast.alice)
    await asks(cast)
    ((hook, said),) = await db.read(planning.due)
    assert await write(planning.write_down, hook, said) is not None
    assert await write(planning.write_down, hook, said) is None
    assert await db.read(Delivery.objects.count) == 1


async def test_a_slow_place_holds_up_no_other(committed_cast, endpoint, mailbox, monkeypatch):
    import asyncio

    cast = committed_cast
    endpoint.drip_s = 0.1
    monkeypatch.setattr("console.workspaces.webhooks.TIMEOUT_S", 3.0)
    await write(hook_at, endpoint, cast.alice)
    await write(acts.set_own_email, on=True, by=cast.bob)
    await asks(cast)
    teller = loop.Teller()
    await teller.round()
    await asyncio.sleep(1)
    assert len(mailbox) == 1
    assert teller._sending
    await teller.sent()
    assert sorted(row.status for row in (await everything())[0]) == ["delivered", "waiting"]


async def test_a_mail_server_that_refuses_is_told_of_without_its_words(committed_cast, mailbox, monkeypatch):
    cast = committed_cast

    def refuse(*_, **__):
        raise smtplib.SMTPRecipientsRefused({"bob@example.test": (550, b"your mail said SECRET")})

    monkeypatch.setattr(sending, "send_mail", refuse)
    await write(acts.set_own_email, on=True, by=cast.bob)
    await asks(cast)
    await told()
    assert (await everything())[1] == [(None, "The mail server did not take it (SMTPRecipientsRefused).")]


async def test_a_test_says_so_and_is_in_the_log(committed_cast, endpoint):
    cast = committed_cast
    hook = await write(hook_at, endpoint, cast.alice)
    await write(acts.test, hook, by=cast.alice)
    with pytest.raises(Conflict, match="under way"):
        await write(acts.test, hook, by=cast.alice)
    await told()
    assert [json.loads(got.body)["event"] for got in endpoint.got] == ["test"]
    await asks(cast)
    await told()
    assert len(endpoint.got) == 2, "a test keeps nothing from being told"


async def test_a_webhook_whose_owner_left_is_silent_until_another_takes_it(committed_cast, endpoint):
    cast = committed_cast
    await write(members.give, cast.bob, permissions.WORKSPACE_MANAGE, by=cast.alice)
    hook = await write(hook_at, endpoint, cast.bob)
    await write(members.remove, cast.bob, by=cast.alice)
    await asks(cast)
    await told()
    assert endpoint.got == []
    hook = await db.read(Webhook.objects.select_related("owner__user").get, pk=hook.pk)
    assert await write(acts.turn, hook, on=True, by=cast.alice)
    await told()
    assert len(endpoint.got) == 1


async def test_what_is_off_or_ended_is_told_nothing_not_even_what_waits(committed_cast, endpoint):
    cast = committed_cast
    endpoint.status = 500
    hook = await write(hook_at, endpoint, cast.alice)
    await asks(cast)
    await told()
    assert await write(acts.end, hook, by=cast.alice)
    await write(Delivery.objects.update, next_at=timezone.now())
    await asks(cast, "echo 2")
    await told()
    assert len(endpoint.got) == 1
    assert [row.status for row in (await everything())[0]] == ["moot"]


async def test_old_deliveries_go_and_what_still_waits_is_not_told_anew(committed_cast, endpoint):
    cast = committed_cast
    await write(hook_at, endpoint, cast.alice)
    await asks(cast)
    await told()
    old = timezone.now() - timedelta(days=31)
    await write(Delivery.objects.update, ended_at=old, created_at=old)
    await write(planning.forget_old)
    await told()
    assert len(endpoint.got) == 1
    await write(Action.objects.update, status="denied", ended_at=timezone.now())
    await write(planning.forget_old)
    assert await db.read(Delivery.objects.count) == 0
