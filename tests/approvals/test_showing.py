"""Approving on a page takes what came with the whole text: of this digest, to this member, in this session."""

import pytest

from approvals import decisions, showing
from approvals.errors import NotSeen
from approvals.models import Action, View
from console.workspaces.models import AuditEntry
from tests.approvals.proposals import pending


def approve(action, by, view):
    return decisions.decide(action, "approve", by=by, digest=action.digest, via="page", view=view)


def test_a_page_approves_what_it_showed_and_the_chain_says_when(cast) -> None:
    action = pending(cast.caller(cast.scout))
    token = showing.show(action, to=cast.bob, session="s1")
    view = showing.seen(action, by=cast.bob, session="s1", token=token)
    assert approve(action, cast.bob, view).status == "approved"
    row = AuditEntry.objects.get(event="action.approved")
    assert row.data["shown_at"] == view.shown_at.isoformat(timespec="milliseconds")
    assert row.data["via"] == "page"


def test_a_page_that_showed_nothing_approves_nothing_and_may_deny(cast) -> None:
    action = pending(cast.caller(cast.scout))
    with pytest.raises(NotSeen, match="Open the card and read it"):
        approve(action, cast.bob, None)
    assert Action.objects.get().status == "pending"
    denied = decisions.decide(action, "deny", by=cast.bob, digest=action.digest, reason="no", via="page")
    assert denied.status == "denied"


@pytest.mark.parametrize("of", ["another action", "another member", "another session", "a guess", "nothing"])
def test_a_token_is_worth_nothing_elsewhere(cast, of) -> None:
    action, second = pending(cast.caller(cast.scout)), pending(cast.caller(cast.scout), "echo other")
    showing.show(action, to=cast.bob, session="s1")
    token = {
        "another action": lambda: showing.show(second, to=cast.bob, session="s1"),
        "another member": lambda: showing.show(action, to=cast.alice, session="s1"),
        "another session": lambda: showing.show(action, to=cast.bob, session="s2"),
        "a guess": lambda: "0" * 64,
        "nothing": lambda: "",
    }[of]()
    with pytest.raises(NotSeen):
        showing.seen(action, by=cast.bob, session="s1", token=token)


def test_a_token_of_a_text_that_changed_since_is_worth_nothing(cast) -> None:
    action = pending(cast.caller(cast.scout))
    token = showing.show(action, to=cast.bob, session="s1")
    view = showing.seen(action, by=cast.bob, session="s1", token=token)
    Action.objects.update(digest="1" * 64)
    action.refresh_from_db()
    with pytest.raises(NotSeen):
        showing.seen(action, by=cast.bob, session="s1", token=token)
    with pytest.raises(NotSeen):
        approve(action, cast.bob, view)


def test_looking_again_is_one_row_with_the_first_time(cast) -> None:
    action = pending(cast.caller(cast.scout))
    first = showing.show(action, to=cast.bob, session="s1")
    assert showing.show(action, to=cast.bob, session="s1") == first
    assert View.objects.count() == 1
    assert "s1" not in View.objects.get().session
