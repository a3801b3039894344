"""Who approves for an agent, on its Agent Tools page: how many, who, and whether their own. What a form says is checked
by `workspaces.agents`, never here."""

from typing import Any

from console.workspaces import reviewers
from console.workspaces.models import Agent


def shown(agent: Agent, sent: Any) -> dict[str, Any]:
    """After a refusal with what was sent."""
    named = sent.getlist("reviewers") if sent is not None and "approvals_needed" in sent else agent.reviewers
    needed = sent.get("approvals_needed", "") if sent is not None else ""
    return {
        "reviewers": [
            (member, member.pk in named)
            for member in reviewers.in_workspace(agent.workspace_id).select_related("user").order_by("user__name")
        ],
        "too_few": reviewers.too_few(agent),
        "able": [str(member) for member in reviewers.able(agent).select_related("user")],
        "counts": [str(number) for number in range(1, reviewers.MOST_APPROVALS + 1)],
        "needed": needed or str(agent.approvals_needed),
    }


def typed(post: Any) -> dict[str, Any]:
    """Nothing when it is a page from before these could be set."""
    number = post.get("approvals_needed", "")
    if not number:
        return {}
    return {"approvals_needed": int(number) if number.isdecimal() else number, "reviewers": post.getlist("reviewers")}
