"""Agents, keys, members, the audit log."""

from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field

from console.workspaces import agents, protected, reviewers, settings
from console.workspaces import models as rows
from console.workspaces.stock import STOCK_IMAGES

from .shared import Answer, Body, OneLine, Time, shown

Mode = Literal["always", "rules", "never"]


def _names(holder: rows.Agent | rows.Key | rows.Member) -> list[str]:
    return sorted(given.name for given in holder.permissions.all())


class Me(Answer):
    """This key, in the shape that the published client reads."""

    id: str
    name: str
    tenant_admin: Literal[False] = False
    value: str = Field(description="The first characters of the secret; the rest is not kept.")
    permissions: list[str]
    workspace_id: str
    agent_id: str | None
    member_id: str | None
    expires_at: Time


class NewLimit(Body):
    """Either left out where it stays as it is built in."""

    default: int | float | None = Field(None, description="What a sandbox gets unless more or less is asked for.")
    most: int | float | None = Field(None, description="The most that may be asked for.")


class LimitSet(Answer):
    default: int | float | None = None
    most: int | float | None = None


class LimitInForce(Answer):
    default: int | float
    least: int | float
    most: int | float


Limits = Annotated[dict[str, NewLimit], Field(max_length=20)]
Patterns = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=50)]
Images = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=settings.MOST_IMAGES)]


class NewAgent(Body):
    name: OneLine = Field(min_length=1, max_length=60)
    owner: str | None = Field(None, max_length=40, description="A member; owners do not approve for their agents.")


class NewExemption(Body):
    path: str = Field(min_length=2, max_length=1000)
    expires_at: AwareDatetime = Field(strict=False, description="At most 30 days from now.")
    reason: OneLine = Field("", max_length=200)


class Exemption(Answer):
    path: str
    expires_at: Time
    reason: str
    by: str = Field(description="The member who gave it.")


class AgentTools(Body):
    """The Agent Tools settings. Fields left out of a PUT stay as they are."""

    model_config = shown(sandbox_enabled=True)
    sandbox_enabled: bool | None = None
    toolset: Literal[1, 2] | None = None
    command_mode: Mode | None = None
    write_mode: Mode | None = None
    tool_modes: dict[Literal["run", "install", "stdin", "write", "edit"], Mode] | None = Field(
        None,
        description="Of those tools that differ: `run`, `install`, `stdin` from commands, the others from writes.",
    )
    cool_down_min: int | None = Field(
        None, ge=0, le=agents.COOL_DOWN_MOST_MIN, description="Minutes for which a denied call is denied at once."
    )
    network: Literal["none", "public"] | None = Field(None, description="The most that its sandboxes may have.")
    persistent_allowed: bool | None = None
    writable_root_allowed: bool | None = None
    images: Images | None = Field(None, description="Allowed beside the stock ones and the workspace's.")
    limits: Limits | None = Field(None, description="Before the workspace's, and never above its `most`.")
    approvals_needed: int | None = Field(
        None, ge=1, le=reviewers.MOST_APPROVALS, description="Each by another reviewer. One denial is enough."
    )
    reviewers: list[str] | None = Field(
        None, max_length=100, description="Ids of the members who alone approve for it; none: all who may review."
    )
    self_approval: bool | None = Field(
        None, description="Its owner may approve for it, and who edited a call may approve that."
    )
    protected_more: Patterns | None = Field(
        None, description="Names protected beside the built-in ones, such as `*.secret` or `deploy/*.json`."
    )
    protected_exempt: list[NewExemption] | None = Field(
        None, max_length=50, description="Full paths that are not protected for this agent until a time."
    )


class AgentToolsNow(Answer):
    sandbox_enabled: bool
    toolset: Literal[1, 2]
    command_mode: Mode
    write_mode: Mode
    tool_modes: dict[str, Mode]
    cool_down_min: int
    network: Literal["none", "public"]
    persistent_allowed: bool
    writable_root_allowed: bool
    images: list[str]
    limits: dict[str, LimitSet]
    limits_in_force: dict[str, LimitInForce]
    approvals_needed: int
    reviewers: list[str]
    self_approval: bool
    protected_more: list[str]
    protected_exempt: list[Exemption]
    settings_version: int

    @classmethod
    def of(cls, row: rows.Agent) -> Self:
        found = {name: getattr(row, name) for name in cls.model_fields if name != "limits_in_force"}
        now = {"limits_in_force": _in_force(row.workspace, row), "protected_exempt": protected.exempt_now(row)}
        return cls.model_validate(found | now)


class WorkspaceSettings(Body):
    """Fields left out of a PUT stay as they are; one that is given is replaced whole."""

    model_config = shown(limits={"memory_mb": {"default": 1024, "most": 2048}})
    limits: Limits | None = None
    images: Images | None = Field(
        None, description="Allowed for everybody beside the stock ones, as Docker names them."
    )
    pool_size: int | None = Field(None, ge=0, le=settings.MOST_POOLED)
    escalate_after_min: int | None = Field(
        None, ge=0, le=settings.MOST_ESCALATE_MIN,
        description="Minutes after which what nobody has decided is told to more people; 0: never.",
    )  # fmt: skip
    escalate_to: list[str] | None = Field(
        None, max_length=100, description="Ids of the members with `approvals:review` who are told then."
    )


class WorkspaceSettingsNow(Answer):
    id: str
    name: str
    limits: dict[str, LimitSet]
    limits_in_force: dict[str, LimitInForce]
    images: list[str]
    stock_images: list[str]
    pool_size: int
    escalate_after_min: int
    escalate_to: list[str]

    @classmethod
    def of(cls, row: rows.Workspace) -> Self:
        found = {name: getattr(row, name) for name in ("name", *settings.SETTINGS)}
        more = {"id": row.pk, "limits_in_force": _in_force(row), "stock_images": list(STOCK_IMAGES)}
        return cls.model_validate(found | more)


def _in_force(workspace: rows.Workspace, agent: rows.Agent | None = None) -> dict[str, Any]:
    return {name: asdict(span) for name, span in settings.ranges(workspace, agent).items()}


class Agent(Answer):
    id: str
    name: str
    owner: str | None
    permissions: list[str]
    tools: AgentToolsNow
    created_at: Time

    @classmethod
    def of(cls, row: rows.Agent) -> Self:
        return cls(
            id=row.pk,
            name=row.name,
            owner=row.owner_id,
            permissions=_names(row),
            tools=AgentToolsNow.of(row),
            created_at=row.created_at,
        )


class Agents(Answer):
    items: list[Agent]
    next_cursor: str | None


class NewKey(Body):
    """An agent's key with `agent_id`, else a workspace key of the calling member with `permissions`."""

    model_config = shown(name="ci", permissions=["sandboxes:read"])
    name: OneLine = Field(min_length=1, max_length=60)
    agent_id: str | None = Field(None, max_length=40)
    permissions: list[str] = Field(default_factory=list, max_length=20)
    days: int = Field(90, ge=1, le=365)


class Key(Answer):
    id: str
    name: str
    hint: str
    agent_id: str | None
    member_id: str | None
    permissions: list[str] | None = Field(description="None for an agent's key: it may what its agent may.")
    created_at: Time
    expires_at: Time
    revoked_at: Time | None
    last_used_at: Time | None

    @classmethod
    def of(cls, row: rows.Key, **more: Any) -> Self:
        plain = {name: getattr(row, name) for name in Key.model_fields if name != "permissions"}
        own = None if row.agent_id else _names(row)
        return cls.model_validate(plain | {"permissions": own} | more)


class KeyMade(Key):
    secret: str | None = Field(description="Shown this once; null when the same call is answered again.")


class KeyList(Answer):
    items: list[Key]
    next_cursor: str | None


_THERE = {"away_until": None, "deputy": None}


class NewMember(Body):
    email: str = Field(min_length=3, max_length=254, pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")
    name: OneLine = Field("", max_length=100)


class NewAway(Body):
    until: AwareDatetime = Field(strict=False, description="At most 180 days from now.")
    deputy: str | None = Field(
        None, max_length=40, description="A member with `approvals:review` who is told instead; none: it waits."
    )


class Member(Answer):
    id: str
    name: str
    email: str
    permissions: list[str]
    created_at: Time
    away_until: Time | None = Field(description="Null: not away.")
    deputy: str | None = Field(description="Who is told instead while they are away.")

    @classmethod
    def of(cls, row: rows.Member, **more: Any) -> Self:
        plain = {"id": row.pk, "name": str(row), "email": row.user.email, "created_at": row.created_at}
        plain |= {"away_until": row.away_until, "deputy": row.deputy_id} if row.is_away else _THERE
        return cls.model_validate(plain | {"permissions": _names(row)} | more)


class MemberMade(Member):
    first_password: str | None = Field(
        description="Shown this once; null for a user who was there before, and when the same call is answered again."
    )


class Members(Answer):
    items: list[Member]
    next_cursor: str | None


class AuditRow(Answer):
    seq: int
    at: Time
    actor: str
    actor_id: str
    event: str
    subject_id: str
    data: dict[str, Any]
    prev_hash: str
    hash: str

    @classmethod
    def of(cls, row: rows.AuditEntry) -> Self:
        return cls.model_validate({name: getattr(row, name) for name in cls.model_fields})


class AuditRows(Answer):
    items: list[AuditRow]
    next_cursor: str | None
