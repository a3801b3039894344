"""What goes over the wire, in and out. Bodies are strict: an unknown field or another type is refused by name, since a
misspelled limit that is silently dropped is no limit."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from approvals.models import Action as ActionRow
from console.workspaces import models as rows
from sandboxes.models import Command as CommandRow
from sandboxes.models import Sandbox as SandboxRow


def _z(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _not_yet(value: object) -> object:
    if value not in (False, None):
        raise ValueError("This is not here yet. Leave it out")
    return False


Time = Annotated[
    datetime, PlainSerializer(_z, return_type=str), WithJsonSchema({"type": "string", "format": "date-time"})
]
NotYet = Annotated[Literal[False], BeforeValidator(_not_yet)]
Encoding = Literal["utf-8", "base64"]
Mode = Literal["always", "rules", "never"]
Cursor = Annotated[str, Field(pattern=r"^[a-z]{3}_[0-9a-z]{26}$", description="`next_cursor` of the page before.")]
Limit = Annotated[int, Field(ge=1, le=200)]
ActionStatus = Literal[
    "pending", "approved", "running", "succeeded", "failed", "unknown", "denied", "expired", "cancelled", "superseded"
]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Answer(BaseModel):
    pass


class Problem(Answer):
    """Every refusal. `code` is stable; some codes bring fields of their own."""

    model_config = ConfigDict(extra="allow")
    detail: str
    code: str


class Done(Answer):
    success: Literal[True] = True


# ---- sandboxes


def _shown(**example: Any) -> ConfigDict:
    """What the explorer fills in at first: a call that works as it stands."""
    return ConfigDict(json_schema_extra={"examples": [example]})


class NewSandbox(Body):
    model_config = _shown(label="report")
    label: str | None = Field(None, max_length=200)
    persistent: bool = False
    image: str | None = Field(None, max_length=200)
    network: Literal["none", "public"] = "none"
    cpus: float | None = Field(None, gt=0, le=64)
    memory_mb: int | None = Field(None, ge=16, le=1 << 20)
    disk_mb: int | None = Field(None, ge=1, le=1 << 22)
    idle_timeout_s: int | None = Field(None, ge=1, le=30 * 86400)
    max_lifetime_s: int | None = Field(None, ge=1, le=365 * 86400)
    env: dict[str, str] = Field(default_factory=dict, max_length=100)


class Sandbox(Answer):
    id: str
    label: str | None
    status: Literal["starting", "running", "stopped", "ended"]
    created_at: Time
    last_activity: Time
    persistent: bool
    agent_id: str | None
    conversation: str | None
    image: str
    network: Literal["none", "public"]
    expires_at: Time
    ended_reason: str | None

    @classmethod
    def of(cls, row: SandboxRow) -> Self:
        return cls.model_validate(
            {name: getattr(row, name) for name in cls.model_fields if name not in ("last_activity", "conversation")}
            | {"last_activity": row.last_activity_at, "conversation": row.conversation or None}
        )


class NewCommand(Body):
    """Either `command`, a shell line, or `argv`, words without a shell."""

    model_config = _shown(command="python /work/run.py")
    command: str | None = None
    argv: list[str] | None = Field(None, min_length=1, max_length=1000)
    timeout: float | None = Field(None, gt=0, description="Seconds; the whole tree is killed then.")
    cwd: str | None = Field(None, max_length=4096)
    env: dict[str, str] = Field(default_factory=dict, max_length=100)
    stdin: str | None = None
    background: NotYet = False
    reason: str = Field("", max_length=2000, description="What a reviewer reads beside the command.")


class Executed(Answer):
    """A foreground command, ended."""

    id: str
    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool
    truncated: bool
    stdout_bytes: int
    stderr_bytes: int
    duration_ms: int
    action_id: str
    joined: bool


class Command(Answer):
    id: str
    sandbox_id: str
    action_id: str
    status: Literal["running", "exited", "timed_out", "lost"]
    exit_code: int | None
    timed_out: bool
    stdout_bytes: int
    stderr_bytes: int
    duration_ms: int | None
    started_at: Time
    ended_at: Time | None

    @classmethod
    def of(cls, row: CommandRow) -> Self:
        return cls.model_validate({name: getattr(row, name) for name in cls.model_fields})


class Commands(Answer):
    items: list[Command]


class PerStream(Answer):
    stdout: int
    stderr: int


class CommandOutput(Command):
    """With its output from the offsets asked for; ask again from the next ones."""

    stdout: str
    stderr: str
    next: PerStream = Field(description="The offsets to ask for next.")
    lost_bytes: PerStream = Field(description="Bytes from the offsets asked for that are not kept any more.")


class NewFile(Body):
    model_config = _shown(path="/work/run.py", content="print('hi')")
    path: str = Field(min_length=1, max_length=4096)
    content: str
    encoding: Encoding = "utf-8"
    mode: int | None = Field(None, ge=0, le=0o777, description="As a number: 0o755 is 493.")
    protected: NotYet = False
    reason: str = Field("", max_length=2000, description="What a reviewer reads beside the file.")


class Written(Answer):
    path: str
    size: int
    sha256: str
    action_id: str
    joined: bool


class File(Answer):
    path: str
    content: str
    encoding: Encoding
    size: int
    sha256: str


# ---- actions


class Decision(Answer):
    by: str
    verdict: Literal["approve", "deny"]
    reason: str
    via: Literal["page", "api"]
    at: Time


class Action(Answer):
    id: str
    status: ActionStatus
    tool: str
    arguments: dict[str, Any]
    digest: str
    reason: str
    agent_id: str | None
    conversation: str | None
    parent_action: str | None
    sandbox_id: str
    flags: list[str]
    approvals_needed: int
    decisions: list[Decision]
    created_at: Time
    expires_at: Time | None
    decided_at: Time | None
    started_at: Time | None
    ended_at: Time | None
    joined: bool
    outcome: dict[str, Any] | None

    @classmethod
    def of(cls, row: ActionRow, *, outcome: dict[str, Any] | None, joined: bool = False) -> Self:
        """`row` with its decisions and their members at hand; `outcome` with or without output."""
        made = ("decisions", "outcome", "joined", "conversation", "parent_action")
        return cls.model_validate(
            {name: getattr(row, name) for name in cls.model_fields if name not in made}
            | {
                "decisions": [
                    {"by": str(d.by), "verdict": d.verdict, "reason": d.reason, "via": d.via, "at": d.at}
                    for d in row.decisions.all()
                ],
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


# ---- workspaces


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


class NewAgent(Body):
    name: str = Field(min_length=1, max_length=60)
    owner: str | None = Field(None, max_length=40, description="A member; owners do not approve for their agents.")


class AgentTools(Body):
    """The Agent Tools settings. Fields left out of a PUT stay as they are."""

    model_config = _shown(sandbox_enabled=True)
    sandbox_enabled: bool | None = None
    toolset: Literal[1, 2] | None = None
    command_mode: Mode | None = None
    write_mode: Mode | None = None


class AgentToolsNow(Answer):
    sandbox_enabled: bool
    toolset: Literal[1, 2]
    command_mode: Mode
    write_mode: Mode
    settings_version: int

    @classmethod
    def of(cls, row: rows.Agent) -> Self:
        return cls.model_validate({name: getattr(row, name) for name in cls.model_fields})


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

    model_config = _shown(name="ci", permissions=["sandboxes:read"])
    name: str = Field(min_length=1, max_length=60)
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
    secret: str = Field(description="Shown this once.")


class KeyList(Answer):
    items: list[Key]
    next_cursor: str | None


class NewMember(Body):
    email: str = Field(min_length=3, max_length=254, pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")
    name: str = Field("", max_length=100)


class Member(Answer):
    id: str
    name: str
    email: str
    permissions: list[str]
    created_at: Time

    @classmethod
    def of(cls, row: rows.Member, **more: Any) -> Self:
        plain = {"id": row.pk, "name": str(row), "email": row.user.email, "created_at": row.created_at}
        return cls.model_validate(plain | {"permissions": _names(row)} | more)


class MemberMade(Member):
    first_password: str | None = Field(description="Shown this once; None for a user who was there before.")


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
