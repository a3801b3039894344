"""Halts over the wire."""

from typing import Self

from pydantic import Field

from console.workspaces import models as rows
from console.workspaces.halts import MOST_REASON

from .shared import Answer, Body, Time


class NewHalt(Body):
    reason: str = Field("", max_length=MOST_REASON, description="Shown to everybody here, and to its agents.")


class Halt(Answer):
    id: str
    agent_id: str | None = Field(description="Null: all of the workspace.")
    reason: str
    by: str
    halted_at: Time
    cancelled: int = Field(description="Actions that had not started.")
    lifted_at: Time | None

    @classmethod
    def of(cls, row: rows.Halt) -> Self:
        plain = {name: getattr(row, name) for name in ("agent_id", "reason", "halted_at", "cancelled", "lifted_at")}
        return cls.model_validate({**plain, "id": row.pk, "by": str(row.halted_by)})


class Halts(Answer):
    items: list[Halt]
    next_cursor: str | None
