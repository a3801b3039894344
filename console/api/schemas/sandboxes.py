"""Sandboxes, commands, files."""

from typing import Literal, Self

from pydantic import Field

from sandboxes import models as rows

from .shared import Answer, Body, OneLine, Time, shown

Encoding = Literal["utf-8", "base64"]
CommandEnd = Literal["exited", "signalled", "timed_out", "stopped"]
CommandStatus = Literal["running", "exited", "signalled", "timed_out", "stopped", "lost"]
Signal = Literal["TERM", "KILL", "INT", "HUP", "QUIT", "USR1", "USR2"]
LEFT = "Its own id while processes that it started live on after its end. Stopping it ends them."
REASON = "`oom` when it was killed because memory ran out."


class NewSandbox(Body):
    model_config = shown(label="report")
    label: OneLine | None = Field(None, max_length=200)
    persistent: bool = Field(
        False,
        description="Stopped when idle, or after its lifetime at a stretch; `/work` and the user's home are there at "
        "the next call that needs them. Gone 14 days after its last use. Allowed per agent by an admin.",
    )
    image: str | None = Field(None, max_length=200, description="`default`, `node`, or one that an admin allowed.")
    network: Literal["none", "public"] | None = Field(
        None, description="Left out: `public` where this host can jail it and the agent may have it, else `none`."
    )
    writable_root: bool = Field(False, description="Allowed per agent by an admin.")
    cpus: float | None = Field(None, gt=0, le=64)
    memory_mb: int | None = Field(None, ge=16, le=1 << 20)
    disk_mb: int | None = Field(None, ge=1, le=1 << 22)
    processes: int | None = Field(None, ge=1, le=1 << 20)
    open_files: int | None = Field(None, ge=1, le=1 << 20)
    output_mb: int | None = Field(
        None, ge=1, le=1 << 20, description="Kept of each stream of a command: its beginning and its end, half each."
    )
    idle_timeout_s: int | None = Field(
        None,
        ge=1,
        le=30 * 86400,
        description="Without a call for so long, and with no command running, it ends; while a call waits for a person "
        "it is stopped at most, and goes on once that was approved.",
    )
    max_lifetime_s: int | None = Field(
        None,
        ge=1,
        le=365 * 86400,
        description="It ends then, whatever runs or waits in it; a persistent one is stopped, until its next call.",
    )
    env: dict[str, str] = Field(default_factory=dict, max_length=100)


class Sandbox(Answer):
    id: str
    label: str | None
    status: Literal["starting", "running", "stopped", "ended"] = Field(
        description="`stopped`: nothing runs, its files are kept, and the next call that needs it starts it."
    )
    created_at: Time
    last_activity: Time
    persistent: bool
    agent_id: str | None
    conversation: str | None
    image: str
    network: Literal["none", "public"]
    expires_at: Time = Field(description="When it ends at the latest. A persistent one: unless it is used until then.")
    ended_reason: str | None

    @classmethod
    def of(cls, row: rows.Sandbox) -> Self:
        return cls.model_validate(
            {name: getattr(row, name) for name in cls.model_fields if name not in ("last_activity", "conversation")}
            | {"last_activity": row.last_activity_at, "conversation": row.conversation or None}
        )


class NewCommand(Body):
    """Either `command`, a shell line, or `argv`, words without a shell."""

    model_config = shown(command="python /work/run.py")
    command: str | None = None
    argv: list[str] | None = Field(None, min_length=1, max_length=1000)
    timeout: float | None = Field(
        None,
        gt=0,
        description="Seconds; the whole tree is killed then. In the foreground 120 unless given, at most 3600. In the "
        "background at most 86400; without one it runs until it is stopped or its sandbox ends.",
    )
    cwd: str | None = Field(None, max_length=4096)
    env: dict[str, str] = Field(default_factory=dict, max_length=100)
    stdin: str | None = Field(None, description="In the background more can be sent later; in the foreground it ends.")
    background: bool = Field(False, description="Answer 202 once it runs. Follow, feed and stop it by its id.")
    reason: str = Field("", max_length=2000, description="What a reviewer reads beside the command.")


class NewInstall(Body):
    """Debian packages, from the sources that the image has."""

    model_config = shown(packages=["gawk"])
    packages: list[str] = Field(min_length=1, max_length=50, description="By name, or as `name=version`.")
    timeout: float | None = Field(None, gt=0, description="Seconds: 600 unless given, at most 3600.")
    reason: str = Field("", max_length=2000, description="What a reviewer reads beside the packages.")


class Executed(Answer):
    """A foreground command, ended."""

    id: str
    status: CommandEnd
    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool
    truncated: bool
    stdout_bytes: int
    stderr_bytes: int
    duration_ms: int
    left_running: list[str] = Field(description=LEFT)
    reason: str | None = Field(description=REASON)
    action_id: str
    joined: bool


class Command(Answer):
    id: str
    sandbox_id: str
    action_id: str
    status: CommandStatus
    background: bool
    exit_code: int | None
    timed_out: bool
    left_running: list[str] = Field(description=LEFT)
    reason: str | None = Field(description=REASON)
    stdout_bytes: int
    stderr_bytes: int
    duration_ms: int | None
    started_at: Time
    ended_at: Time | None

    @classmethod
    def of(cls, row: rows.Command) -> Self:
        plain = {name: getattr(row, name) for name in Command.model_fields}
        return cls.model_validate(plain | {"left_running": [row.pk] if row.left_running else []})


class NewInput(Body):
    model_config = shown(data="print('hi')\n")
    MAY_HOLD_NUL = frozenset({"data"})
    data: str = Field("", description="At most 1 MiB. Nothing is added to it: a line needs its own newline.")
    encoding: Encoding = "utf-8"
    eof: bool = Field(False, description="Nothing comes after this.")
    reason: str = Field("", max_length=2000, description="What a reviewer reads beside the input.")


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
    model_config = shown(path="/work/run.py", content="print('hi')")
    MAY_HOLD_NUL = frozenset({"content"})
    path: str = Field(min_length=1, max_length=4096)
    content: str
    encoding: Encoding = "utf-8"
    mode: int | None = Field(None, ge=0, le=0o777, description="As a number: 0o755 is 493.")
    protected: bool = Field(
        False, description="By a workspace key: puts a protected file there, where it is sealed. Agents cannot."
    )
    reason: str = Field("", max_length=2000, description="What a reviewer reads beside the file.")


class ProtectedFile(Answer):
    path: str
    sealed: bool = Field(description="No command can change, remove or move it; else it was only found.")


class Written(Answer):
    path: str
    size: int
    sha256: str
    action_id: str
    joined: bool
    protected: list[ProtectedFile] = Field(default_factory=list, description="This file, when it was sealed.")


class Unseal(Body):
    model_config = shown(path="/work/.env")
    path: str = Field(min_length=1, max_length=4096)
    reason: str = Field("", max_length=2000, description="What a reviewer reads beside the path.")


class Unsealed(Answer):
    path: str = Field(description="Where the file is, links resolved.")
    was_sealed: bool
    action_id: str
    joined: bool


class File(Answer):
    path: str
    content: str
    encoding: Encoding
    size: int
    sha256: str
