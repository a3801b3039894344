"""Actions and decisions on them."""

from typing import Any, Literal, Self

from pydantic import Field

from approvals import models as rows

from .shared import Answer, Body, Time

ActionStatus = Literal[
    "pending", "approved", "running", "succeeded", "failed", "unknown", "denied", "expired", "cancelled", "superseded"
]


class Decision(Answer):
    by: str
    verdict: Literal["approve", "deny"]
    reason: str
    via: Literal["page", "api"]
    at: Time
    digest: str = Field(description="Of what was decided about.")
    reset: bool = Field(description="True when the call was edited since: it is of another text and does not count.")


class Script(Answer):
    """A file whose text a person sees, and no other bytes of which run."""

    path: str = Field(description="Absolute, links resolved.")
    sha256: str
    size: int


class Action(Answer):
    id: str
    status: ActionStatus
    tool: str
    arguments: dict[str, Any]
    environment: dict[str, str] = Field(
        description="What a command is given: its sandbox's variables, and over them its own. The digest binds both."
    )
    script: Script | None = Field(description="The file that a command runs, where the digest binds it.")
    digest: str
    reason: str
    agent_id: str | None
    conversation: str | None
    parent_action: str | None
    plan_id: str | None
    plan_place: int | None = Field(description="Of an item of a plan: its place in the order, from 1.")
    sandbox_id: str
    flags: list[str]
    approvals_needed: int
    decisions: list[Decision]
    created_at: Time
    expires_at: Time | None
    escalated_at: Time | None = Field(description="Nobody had decided by then, and more people were told.")
    decided_at: Time | None
    started_at: Time | None
    ended_at: Time | None
    joined: bool
    outcome: dict[str, Any] | None

    @classmethod
    def of(cls, row: rows.Action, *, outcome: dict[str, Any] | None, joined: bool = False) -> Self:
        """`row` with its decisions and their members at hand; `outcome` with or without output."""
        made = ("decisions", "environment", "outcome", "joined", "conversation", "parent_action")
        return cls.model_validate(
            {name: getattr(row, name) for name in cls.model_fields if name not in made}
            | {
                "decisions": [
                    {"by": str(d.by), "verdict": d.verdict, "reason": d.reason, "via": d.via, "at": d.at}
                    | {"digest": d.digest, "reset": d.digest != row.digest}
                    for d in row.decisions.all()
                ],
                "environment": row.environment,
                "conversation": row.conversation or None,
                "parent_action": row.parent_action or None,
                "outcome": outcome,
                "joined": joined,
            }
        )


class Actions(Answer):
    items: list[Action]
    next_cursor: str | None


class NewDecision(Body):
    verdict: Literal["approve", "deny"]
    digest: str = Field(min_length=64, max_length=64, description="Of what you looked at.")
    reason: str = Field("", max_length=10_000, description="The agent is told this; a denial needs one.")
