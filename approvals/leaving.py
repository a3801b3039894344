"""What ends when a member is removed: all that rests on their word and has not started yet.

Owns that act, in one transaction: membership, permissions, keys and sessions by the ground floor,
their approvals, grants and rules here. Must
never leave an approval of somebody who is no member any more to be started.
"""

from django.db import transaction

from console.workspaces import members, owners
from console.workspaces.models import Member
from console.workspaces.owners import Heirs

from . import gate, votes
from .models import Action
from .rules import acts, ending


@transaction.atomic
def remove(member: Member, *, by: Member, heirs: Heirs) -> int:
    """How many approved actions were cancelled. `heirs`: who owns each agent of theirs from now on."""
    members.check_may_remove(member, by=by)
    owners.hand_over_all(member, heirs, by=by)
    acts.suspend_of(member, by=by)
    ending.given_by(member, by=by)
    members.remove(member, by=by)
    votes.drop_of(member)
    return sum(_cancel(action, member) for action in _approved_by(member))


def _approved_by(member: Member) -> list[Action]:
    found = Action.objects.filter(status="approved", decisions__by=member, decisions__verdict="approve")
    return list(found.distinct())


def _cancel(action: Action, member: Member) -> bool:
    """Only what rests on it: an approval of a text that was edited since counted for nothing."""
    if not action.decisions.filter(by=member, verdict="approve", digest=action.digest).exists():
        return False
    why = f"{member} approved this and is no member any more, so it did not start. Propose it again."
    return gate.cancel_approved(action, why)
