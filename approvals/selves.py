"""Who would approve their own: the agent's owner, and whoever edited the call. And who is not among those it names."""

from console.workspaces import reviewers
from console.workspaces.models import Member

from .models import Action


def why(action: Action, member: Member, *, has_edited: bool | None = None) -> str:
    """What makes it their own; empty when it is not. `has_edited`: whether they have, where that is known."""
    if action.agent and action.agent.owner_id == member.pk:
        return "Nobody approves for an agent they own."
    if action.edited and (action.edits.filter(by=member).exists() if has_edited is None else has_edited):
        return "Nobody approves what they have edited."
    return ""


def why_not(action: Action, member: Member, *, has_edited: bool | None = None) -> str:
    """Why this member does not approve this action; empty when they do. `has_edited` as above."""
    agent = action.agent
    if agent is None:
        return ""
    if not agent.self_approval and (own := why(action, member, has_edited=has_edited)):
        return own
    if agent.reviewers and member.pk not in agent.reviewers:
        return f"Agent {agent.name} names who approves for it, and you are not among them."
    return ""


def able(action: Action) -> list[Member]:
    """Who could approve it now, present or away."""
    if action.agent is None:
        return []
    return [each for each in reviewers.able(action.agent).select_related("user") if not why_not(action, each)]
