"""The member behind a workspace key: what the pages' acts want as `by`."""

from collections.abc import Callable
from typing import Protocol

from console.workspaces.errors import NotFound, PermissionDenied
from console.workspaces.keys import Caller
from console.workspaces.members import Holder
from console.workspaces.models import Agent, Member


class Act(Protocol):
    """`members.give` or `members.take`."""

    def __call__(self, holder: Holder, permission: str, *, by: Member) -> bool: ...


def member(who: Caller) -> Member:
    found = Member.objects.current().select_related("user", "workspace").filter(pk=who.member_id).first()
    if found is None:
        raise PermissionDenied("The member of this key has left the workspace.")
    return found


def agent(who: Caller, agent_id: str) -> Agent:
    """An agent of the caller's workspace."""
    found = Agent.objects.current().select_related("workspace")
    if (row := found.filter(pk=agent_id, workspace_id=who.workspace_id).first()) is None:
        raise NotFound("agent", agent_id)
    return row


def other_member(who: Caller, member_id: str) -> Member:
    """A member of the caller's workspace, maybe the caller."""
    found = Member.objects.current().select_related("user", "workspace")
    if (row := found.filter(pk=member_id, workspace_id=who.workspace_id).first()) is None:
        raise NotFound("member", member_id)
    return row


def change(act: Act, holder: Callable[[Caller, str], Holder], who: Caller, holder_id: str, permission: str) -> None:
    """Gives a permission to, or takes it from, the holder of that id."""
    act(holder(who, holder_id), permission, by=member(who))
