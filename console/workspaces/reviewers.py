"""Who may approve for an agent, and how many of them it takes. Facts only: `approvals` decides.

Denying is wider: whoever holds `approvals:review` may deny for every agent of the workspace.
"""

from collections.abc import Iterable
from typing import Any

from . import permissions
from .errors import Invalid
from .models import Agent, Member, MemberQuerySet

MOST_APPROVALS = 5


def able(agent: Agent, **as_if: Any) -> MemberQuerySet:
    """The members who may approve for `agent` now: with `approvals:review`, among those it names if it names any, and
    not its owner unless it allows that. `as_if`: settings that it does not have yet."""
    named = as_if.get("reviewers", agent.reviewers)
    own = as_if.get("self_approval", agent.self_approval)
    found = in_workspace(agent.workspace_id)
    found = found.filter(pk__in=named) if named else found
    return found if own or agent.owner_id is None else found.exclude(pk=agent.owner_id)


def in_workspace(workspace_id: str) -> MemberQuerySet:
    return Member.objects.current().filter(workspace_id=workspace_id).with_permission(permissions.APPROVALS_REVIEW)


def able_among(there: Iterable[Member], agent: Agent) -> set[str]:
    """Ids of those of `there`, which `in_workspace` has told of, who are `able`: no question for each agent of many."""
    named = [member for member in there if not agent.reviewers or member.pk in agent.reviewers]
    return {member.pk for member in named if agent.self_approval or member.pk != agent.owner_id}


def may_approve(member: Member, agent: Agent) -> bool:
    return able(agent).filter(pk=member.pk).exists()


def too_few(agent: Agent) -> bool:
    """What asks for this agent could never be approved."""
    return able(agent).count() < agent.approvals_needed


def checked(agent: Agent, settings: dict[str, Any]) -> dict[str, Any]:
    """Those of `settings` that say who reviews. Raises Invalid, which names the field."""
    found: dict[str, Any] = {name: settings[name] for name in ("approvals_needed", "reviewers") if name in settings}
    if "reviewers" in found:
        found["reviewers"] = checked_names(agent.workspace_id, found["reviewers"], field="reviewers")
    needed = found.get("approvals_needed", agent.approvals_needed)
    if isinstance(needed, bool) or not isinstance(needed, int) or not 1 <= needed <= MOST_APPROVALS:
        raise Invalid(f"`approvals_needed` is 1 to {MOST_APPROVALS}, not {needed!r}.", field="approvals_needed")
    there = able(agent, **{**settings, **found}).count() if needed > 1 and found else needed
    if there < needed:
        raise Invalid(
            f"{needed} approvals need {needed} reviewers, and {agent.name} has {there}. Ask for fewer approvals, or "
            "give `approvals:review` to another member first.",
            field="approvals_needed",
        )
    return found


def checked_names(workspace_id: str, given: Any, *, field: str) -> list[str]:
    """Ids of members who may review here, each once. Raises Invalid, which names `field`."""
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise Invalid(f"`{field}` is a list of ids of members.", field=field)
    named = list(dict.fromkeys(given))
    known = set(in_workspace(workspace_id).filter(pk__in=named).values_list("pk", flat=True))
    if unknown := [each for each in named if each not in known]:
        raise Invalid(f"`{field}` names {unknown[0][:40]}, who is no member with `approvals:review` here.", field=field)
    return named
