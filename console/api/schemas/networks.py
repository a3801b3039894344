"""What an agent's sandboxes may reach beside the internet."""

from typing import Self, cast

from pydantic import Field

from sandboxes import models as rows
from sandboxes.engine import Protocol

from .shared import Answer, Body, OneLine, Time, shown


class NewNetworkException(Body):
    """One destination: a private address that the network jail blocks otherwise."""

    model_config = shown(address="10.1.2.3", protocol="tcp", port=5432, reason="the reporting database")
    address: OneLine = Field(max_length=40, description="One IPv4 address, no range and no name.")
    protocol: Protocol
    port: int = Field(ge=1, le=65535)
    reason: OneLine = Field("", max_length=200)


class NetworkException(Answer):
    id: str
    agent_id: str
    address: str
    protocol: Protocol
    port: int
    reason: str
    made_by: str | None
    created_at: Time

    @classmethod
    def of(cls, row: rows.NetworkException) -> Self:
        return cls(
            id=row.pk, agent_id=row.agent_id, address=row.address, protocol=cast(Protocol, row.protocol), port=row.port,
            reason=row.reason, made_by=row.made_by_id, created_at=row.created_at,
        )  # fmt: skip


class NetworkExceptions(Answer):
    items: list[NetworkException]
    next_cursor: str | None
