from datetime import timedelta

import pytest
from django.utils import timezone

from console.workspaces import once
from console.workspaces.errors import IdempotencyMismatch, OutcomeUnknown
from console.workspaces.models import KeptAnswer

pytestmark = pytest.mark.database


@pytest.fixture
def key(cast):
    cast.key_of(cast.scout)
    return cast.scout.keys.get().pk


def ended(key, scope="s", body="b"):
    assert once.begin(key, scope, body) is None
    once.end(key, scope, status=201, answer={"id": "x"})


def test_the_first_acts_and_the_next_is_given_its_answer(key):
    ended(key)
    again = once.begin(key, "s", "b")
    assert (again.status, again.answer) == (201, {"id": "x"})


def test_another_body_is_refused_and_another_scope_or_key_is_another_call(cast, key):
    ended(key)
    with pytest.raises(IdempotencyMismatch):
        once.begin(key, "s", "other")
    assert once.begin(key, "other", "b") is None
    cast.key_of(cast.other)
    assert once.begin(cast.other.keys.get().pk, "s", "b") is None


def test_a_call_whose_end_was_lost_is_not_done_again(key):
    assert once.begin(key, "s", "b") is None
    with pytest.raises(OutcomeUnknown):
        once.begin(key, "s", "b")


def test_a_refused_call_may_try_again_and_an_answered_one_cannot_be_forgotten(key):
    assert once.begin(key, "s", "b") is None
    once.forget(key, "s")
    ended(key)
    once.forget(key, "s")
    assert once.begin(key, "s", "b").status == 201


def test_after_a_day_it_is_a_new_call_and_nothing_old_is_kept(key):
    ended(key)
    ended(key, "other")
    KeptAnswer.objects.update(created_at=timezone.now() - once.KEPT_FOR + timedelta(minutes=1))
    assert once.begin(key, "s", "b")
    KeptAnswer.objects.update(created_at=timezone.now() - once.KEPT_FOR)
    assert once.begin(key, "s", "another body") is None
    assert KeptAnswer.objects.count() == 1


def test_a_fingerprint_is_of_what_is_said_not_of_how_it_is_spelled():
    assert once.fingerprint({"a": 1, "b": [2]}) == once.fingerprint({"b": [2], "a": 1})
    different = [("POST", "/a", "b"), ("POST", "/ab", ""), ("POST/", "a", "b"), ({"a": 1},), ({"a": "1"},), ([],), ()]
    assert len({once.fingerprint(*parts) for parts in different}) == len(different)
