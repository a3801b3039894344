"""Plans: several calls that are proposed, decided and run as one."""

from typing import Any, Literal, Self

from pydantic import Field

from approvals import models as rows
from approvals.plans import fate
from approvals.plans.proposing import ITEMS_MOST

from .actions import Action, ActionStatus
from .shared import Answer, Body, OneLine, Time, shown
from .tools import Conversation


class PlannedCall(Body):
    MAY_HOLD_NUL = frozenset({"arguments"})
    tool: str = Field(max_length=100, description="A tool of the agent's toolset that runs, changes or publishes.")
    arguments: dict[str, Any] = Field(description="As the tool's schema says.")


class NewPlan(Body):
    model_config = shown(
        conversation="first",
        title="Build and test",
        calls=[
            {"tool": "run", "arguments": {"command": "make build"}},
            {"tool": "run", "arguments": {"command": "make test"}},
        ],
    )
    conversation: Conversation
    title: OneLine = Field("", max_length=200, description="What a reviewer reads above it.")
    reason: str = Field("", max_length=2000, description="What a reviewer reads beside it.")
    calls: list[PlannedCall] = Field(min_length=1, max_length=ITEMS_MOST, description="In the order to run in.")


class Plan(Answer):
    id: str
    status: ActionStatus = Field(
        description="`failed` also when a command of it exited with anything but 0. `denied`: none was approved."
    )
    title: str
    reason: str
    agent_id: str
    conversation: str
    sandbox_id: str
    digest: str = Field(description="Over the digests of the items that wait, in order: what a decision names.")
    stopped_by: str | None = Field(description="The item after whose end nothing more of it started.")
    created_at: Time
    expires_at: Time
    joined: bool
    text: str = Field(description="What a model reads of it: a line for each item.")
    items: list[Action]

    @classmethod
    def of(
        cls, row: rows.Plan, items: list[rows.Action], outcomes: list[dict[str, Any] | None], *, joined: bool = False
    ) -> Self:
        """`items` in order, with their decisions and their members at hand; `outcomes` theirs."""
        made = ("status", "digest", "stopped_by", "joined", "text", "items")
        return cls.model_validate(
            {name: getattr(row, name) for name in cls.model_fields if name not in made}
            | {
                "status": fate.status(items),
                "digest": fate.digest(items),
                "stopped_by": row.stopped_by or None,
                "joined": joined,
                "text": fate.text(items),
                "items": [Action.of(item, outcome=told) for item, told in zip(items, outcomes, strict=True)],
            }
        )


class NewPlanDecision(Body):
    verdict: Literal["approve", "deny"]
    digest: str = Field(min_length=64, max_length=64, description="Of the plan that you looked at.")
    left_out: list[str] = Field([], max_length=ITEMS_MOST, description="Ids of items to deny, approving the others.")
    reason: str = Field("", max_length=10_000, description="The agent is told this; whatever is denied needs one.")
