"""A call that runs a script is of that script's bytes: approved, denied, edited, joined and exported by them."""

import hashlib
import json

import pytest

from approvals import decisions, edits, gate, payloads
from approvals.digest import canonical
from approvals.errors import WrongDigest
from approvals.models import Action, Edit, PayloadUse
from console import incident_texts
from tests.approvals.proposals import pending, run

pytestmark = pytest.mark.django_db
OLD, NEW = b"print('old')\n", b"print('new')\n"


def script(text: bytes, path: str = "/work/x.py") -> dict:
    return {"path": path, **payloads.keep(payloads.hold(text))}


def proposed(cast, text: bytes = OLD, command: str = "python3 x.py", **more) -> gate.Proposal:
    return run(cast.caller(cast.scout), command, script=script(text), **more)


def waiting(cast, text: bytes = OLD, **more) -> Action:
    answer = gate.submit(proposed(cast, text, **more))
    return Action.objects.get(pk=answer.action_id)


def deny(action, cast):
    return decisions.decide(action, "deny", by=cast.bob, digest=action.digest, reason="no")


def test_the_digest_is_of_its_bytes_and_place_and_they_stay_with_its_row(cast) -> None:
    action = waiting(cast)
    assert action.script == script(OLD)
    assert PayloadUse.objects.get(action=action).sha256 == hashlib.sha256(OLD).hexdigest()
    assert len({proposed(cast, text).digest() for text in (OLD, NEW)} | {run(cast.caller(cast.scout)).digest()}) == 3
    moved = run(cast.caller(cast.scout), "python3 x.py", script=script(OLD, "/work/y.py"))
    assert moved.digest() != action.digest
    document = canonical(
        workspace=cast.workspace.pk, agent=cast.scout.pk, profile=action.profile, tool="run", tool_version=1,
        arguments=action.arguments, bases={}, script=action.script,
    )  # fmt: skip
    assert json.loads(document)["script"] == {"path": "/work/x.py", "sha256": script(OLD)["sha256"], "size": len(OLD)}
    assert hashlib.sha256(document).hexdigest() == action.digest


def test_an_approval_is_of_exactly_these_bytes_and_what_starts_says_them(cast) -> None:
    action, other = waiting(cast), proposed(cast, NEW)
    with pytest.raises(WrongDigest):
        decisions.decide(action, "approve", by=cast.bob, digest=other.digest())
    decisions.decide(action, "approve", by=cast.bob, digest=action.digest)
    pass_ = gate.start(action.pk)
    assert pass_ is not None
    assert (pass_.script, gate.start(action.pk)) == (script(OLD), None)
    again = gate.submit(other)
    assert isinstance(again, gate.Wait)
    assert (again.joined, Action.objects.get(pk=again.action_id).status) == (False, "pending")


def test_denied_it_cools_down_until_its_text_is_another(cast) -> None:
    deny(waiting(cast), cast)
    gate.delivered(Action.objects.get().pk)
    assert Action.objects.get(pk=gate.submit(proposed(cast)).action_id).status == "denied"
    assert (
        Action.objects.get(pk=gate.submit(proposed(cast, command="python3 x.py  # again")).action_id).status == "denied"
    )
    after = Action.objects.get(pk=gate.submit(proposed(cast, NEW)).action_id)
    assert (after.status, "after_denial" in after.flags) == ("pending", True)


def once_more(cast, text: bytes | None, path: str = "/work/x.py") -> str:
    """What becomes of it, by a key of its own."""
    bound = None if text is None else script(text, path)
    key = f"k{Action.objects.count()}"
    answer = gate.submit(run(cast.caller(cast.scout), "python3 x.py", script=bound, idempotency_key=key))
    return Action.objects.get(pk=answer.action_id).status


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"if x:\n  a()\nb()\n\n", "denied"), (b"if x:\n  a()\nb()", "denied"),
        (b"if x: \t\n  a()\r\nb()\n \n", "denied"),
        (b" if x:\n  a()\nb()\n", "pending"), (b"if x:\n  a()\n\nb()\n", "pending"),
        (b"if x:\n  a()\n  b()\n", "pending"), (b"if x:\n  a( )\nb()\n", "pending"), (b"", "pending"), (None, "denied"),
    ],
)  # fmt: skip
def test_blanks_at_its_ends_or_a_text_that_cannot_be_bound_end_no_cool_down(cast, text, status) -> None:
    deny(waiting(cast, b"if x:\n  a()\nb()\n"), cast)
    assert once_more(cast, text) == status


def test_a_link_to_a_copy_of_it_ends_no_cool_down(cast) -> None:
    deny(waiting(cast), cast)
    assert [once_more(cast, text, "/work/y/x.py") for text in (OLD, OLD + b"\n", NEW)] == [
        "denied",
        "denied",
        "pending",
    ]


def test_denied_without_a_text_it_cools_down_with_any(cast) -> None:
    deny(pending(cast.caller(cast.scout), "python3 x.py"), cast)
    assert once_more(cast, OLD) == "denied"


@pytest.mark.parametrize(("text", "status"), [(OLD + b" ", "pending"), (NEW, "denied"), (None, "denied")])
def test_only_an_approval_of_the_same_text_ends_its_cool_down(cast, text, status) -> None:
    bound = None if text is None else script(text)
    later = pending(cast.caller(cast.scout), "python3 x.py", script=bound, idempotency_key="later")
    deny(waiting(cast), cast)
    decisions.decide(later, "approve", by=cast.alice, digest=later.digest)
    assert once_more(cast, OLD) == status


def test_a_script_that_is_kept_no_more_is_the_same_by_its_hash_alone(cast) -> None:
    deny(waiting(cast), cast)
    payloads.path(script(OLD)).unlink()
    gone = {"path": "/work/x.py", "sha256": script(NEW)["sha256"], "size": len(NEW)}
    payloads.path(gone).unlink()
    caller = cast.caller(cast.scout)
    statuses = [
        Action.objects.get(
            pk=gate.submit(run(caller, "python3 x.py", script=each, idempotency_key=key)).action_id
        ).status
        for key, each in (("a", {**gone, "sha256": hashlib.sha256(OLD).hexdigest()}), ("b", gone))
    ]
    assert statuses == ["denied", "pending"]


def test_two_that_differ_in_their_script_are_two_cards(cast) -> None:
    for text in (OLD, NEW):
        pending(cast.caller(cast.scout), "python3 x.py", script=script(text), idempotency_key=text.decode())
    assert Action.objects.cards().count() == 2


def test_edited_it_is_bound_to_what_the_reviewer_saw(cast) -> None:
    action = waiting(cast, flags=("unpinned_code", "network"))
    before = action.digest
    edited = run(cast.caller(cast.scout), "python3 x.py --dry-run", script=script(NEW), profile=action.profile)
    after = edits.put(action, edited, by=cast.bob, digest_before=before)
    assert (after.script, after.flags, after.digest) == (script(NEW), ["network"], edited.digest())
    kept = Edit.objects.get()
    assert (kept.script_before, kept.script) == (script(OLD), script(NEW))
    folders = dict(incident_texts.of_edits(after))
    for folder, digest, text in (("0-proposed", before, OLD), ("1-edited", after.digest, NEW)):
        (document,) = folders[folder]["digest.json"]
        assert hashlib.sha256(document).hexdigest() == digest
        assert folders[folder]["script.txt"].read_bytes() == text
    decisions.decide(after, "approve", by=cast.alice, digest=after.digest)
    pass_ = gate.start(action.pk)
    assert pass_ is not None
    assert pass_.script == script(NEW)


def test_the_same_call_made_again_joins_the_edited_one(cast) -> None:
    action = waiting(cast)
    edited = run(cast.caller(cast.scout), "true", profile=action.profile)
    assert edits.put(action, edited, by=cast.bob, digest_before=action.digest).script is None
    answer = gate.submit(proposed(cast))
    assert isinstance(answer, gate.Wait)
    assert (answer.action_id, answer.joined) == (action.pk, True)
    other = gate.submit(proposed(cast, NEW))
    assert isinstance(other, gate.Wait)
    assert other.action_id != action.pk


def test_a_key_answers_for_its_call_whatever_became_of_the_script(cast) -> None:
    caller = cast.caller(cast.scout)
    first, again = (gate.submit(run(caller, script=script(text), idempotency_key="k")) for text in (OLD, NEW))
    assert isinstance(first, gate.Wait)
    assert isinstance(again, gate.Wait)
    assert again.action_id == first.action_id
