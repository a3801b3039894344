"""What is asked of the audit page, as its address says it; the form shows it again, and so do the links to exports."""

from datetime import UTC, datetime, timedelta
from typing import Any

from console import audited
from console.workspaces import audit_search
from console.workspaces.audit_search import Sought
from console.workspaces.errors import Invalid
from console.workspaces.models import Agent, Member, Workspace

NAMES = ("q", "event", "actor", "agent", "conversation", "from", "to")
KINDS = ("member", "agent", "key", "rule", "clock", "system")


def asked(get: Any) -> dict[str, str]:
    return {name: get.get(name, "").strip()[:200] for name in NAMES}


def sought(workspace: Workspace, asked: dict[str, str]) -> Sought:
    """Raises Invalid for a day that is none."""
    since, until = _day(asked["from"]), _day(asked["to"])
    return audited.sought(
        workspace.pk, agent=asked["agent"], conversation=asked["conversation"], text=asked["q"], event=asked["event"],
        actor=asked["actor"], since=since, until=until and until + timedelta(days=1),
    )  # fmt: skip


def _day(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise Invalid(f"`{text}` is no day such as 2026-03-14, so nothing was looked for.", field="from") from error


def choices(workspace: Workspace) -> dict[str, Any]:
    """For the form: every kind of row that there is, everybody who may have made one, every agent."""
    events = list(audit_search.events(workspace.pk))
    groups = sorted({event.partition(".")[0] for event in events})
    agents = [(agent.pk, agent.name) for agent in Agent.objects.filter(workspace=workspace).order_by("name")]
    people = Member.objects.filter(workspace=workspace).select_related("user").order_by("user__name")
    return {
        "kinds": [(f"{group}.", [event for event in events if event.startswith(f"{group}.")]) for group in groups],
        "people": [(member.pk, str(member)) for member in people],
        "agents": agents,
        "actor_kinds": KINDS,
    }
