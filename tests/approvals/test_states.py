from itertools import product

import pytest

from approvals import states
from approvals.errors import IllegalMove
from approvals.models import Action
from console.workspaces import audit
from console.workspaces.models import Change
from tests.approvals.proposals import pending

pytestmark = pytest.mark.database


@pytest.mark.parametrize(("old", "new"), list(product(states.ALL, repeat=2)))
def test_every_pair_of_states_moves_only_as_the_table_says(cast, old, new):
    action = pending(cast.caller(cast.scout))
    ended = {"ended_at": action.created_at} if old in states.ENDED else {}
    Action.objects.filter(pk=action.pk).update(status=old, started_at=action.created_at, **ended)
    before = Change.objects.count()
    if new in states.TABLE[old]:
        assert states.advance(action, old=old, new=new, actor=audit.SYSTEM)
        assert not states.advance(action, old=old, new=new, actor=audit.SYSTEM)
    else:
        with pytest.raises(IllegalMove):
            states.advance(action, old=old, new=new, actor=audit.SYSTEM)
    action.refresh_from_db()
    moved = new in states.TABLE[old]
    assert action.status == (new if moved else old)
    assert Change.objects.count() == before + moved
    assert (action.ended_at is not None) is (action.status in states.ENDED)


def test_a_move_from_a_state_that_is_gone_changes_nothing(cast):
    action = pending(cast.caller(cast.scout))
    assert not states.advance(action, old="approved", new="running", actor=audit.SYSTEM)
    action.refresh_from_db()
    assert action.status == "pending"


def test_every_state_is_in_the_wire_contract():
    assert set(states.ALL) == {
        "pending", "approved", "denied", "expired", "cancelled", "superseded",
        "running", "succeeded", "failed", "unknown",
    }  # fmt: skip
