"""What a new sandbox is made of: what its caller asked for, within what its agent and workspace allow.

Owns that choice. Must never run anything: plain ORM code for `db.read` and `db.write`, called again inside the
transaction that makes the row, because settings may change while Docker is asked for the image.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from console.workspaces import agents, settings
from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Workspace
from console.workspaces.stock import STOCK_IMAGES

from . import limits
from .errors import NoRuntime, NotAllowed

Network = Literal["none", "public"]
DEFAULT_IMAGE = STOCK_IMAGES[0]


@dataclass(frozen=True)
class NewSandbox:
    """What a caller may say about a new sandbox; None means the default."""

    label: str | None = None
    persistent: bool = False
    writable_root: bool = False
    image: str | None = None
    network: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None
    processes: int | None = None
    open_files: int | None = None
    output_mb: int | None = None
    idle_timeout_s: int | None = None
    max_lifetime_s: int | None = None
    env: dict[str, str] = field(default_factory=dict)
    conversation: str = ""


@dataclass(frozen=True)
class Profile:
    """Every field is decided. `image` is a stock name or one that Docker knows; which image that is, Docker says."""

    image: str
    network: Network
    persistent: bool
    writable_root: bool
    cpus: float
    memory_mb: int
    disk_mb: int
    processes: int
    open_files: int
    output_mb: int
    idle_timeout_s: int
    max_lifetime_s: int

    def made_of(self) -> dict[str, Any]:
        """What cannot be changed once it was started: a pooled sandbox serves only who wants exactly this."""
        names = ("image", "network", "writable_root", "cpus", "memory_mb", "disk_mb", "processes", "open_files")
        return {name: getattr(self, name) for name in names}

    def row(self) -> dict[str, Any]:
        """As fields of a Sandbox; its lifetime is a moment there."""
        return {name: value for name, value in asdict(self).items() if name != "max_lifetime_s"}


def resolve(caller: Caller, new: NewSandbox, *, can_network: bool) -> Profile:
    """Raises NotAllowed with the field and the limit, Invalid, or NoRuntime when this host lacks what was asked for."""
    workspace = Workspace.objects.get(pk=caller.workspace_id)
    agent = agents.of(caller)
    return _decided(workspace, agent, new, can_network=can_network)


def pool_profile(workspace: Workspace, *, can_network: bool) -> Profile:
    """What a sandbox gets that asks for nothing, by the workspace's own settings."""
    return _decided(workspace, None, NewSandbox(), can_network=can_network)


def _decided(workspace: Workspace, agent: Agent | None, new: NewSandbox, *, can_network: bool) -> Profile:
    if agent is not None:
        _check_allowed(agent, new)
    spans = settings.ranges(workspace, agent)
    numbers: dict[str, Any] = {name: limits.chosen(name, getattr(new, name), span) for name, span in spans.items()}
    return Profile(
        image=_image(workspace, agent, new.image or DEFAULT_IMAGE),
        network=_network(agent, new.network, can_network=can_network),
        persistent=new.persistent,
        writable_root=new.writable_root,
        **numbers,
    )


def _check_allowed(agent: Agent, new: NewSandbox) -> None:
    """What an admin allows per agent. A workspace's key is a member's, who holds `sandboxes:run` by name."""
    for name in ("persistent", "writable_root"):
        if getattr(new, name) and not getattr(agent, f"{name}_allowed"):
            raise NotAllowed(
                f"`{name}` is not allowed for agent {agent.name}. Leave it out, or ask who manages agents to allow it.",
                field=name,
                limit=False,
            )


def _network(agent: Agent | None, asked: str | None, *, can_network: bool) -> Network:
    if asked not in (None, "none", "public"):
        raise NotAllowed("`network` is none or public.", field="network", limit="none")
    allowed = agent is None or agent.network == "public"
    if asked is None:
        return "public" if allowed and can_network else "none"
    if asked == "none":
        return "none"
    if not allowed:
        raise NotAllowed(
            "`network` is none for this agent. Leave it out, or ask who manages agents to allow `public`.",
            field="network",
            limit="none",
        )
    if not can_network:
        raise NoRuntime(
            "This console can give no sandbox a network, because nothing here would keep it from private addresses. "
            "Ask for `network: none`, or run `manage.py doctor`, which says what is missing."
        )
    return "public"


def _image(workspace: Workspace, agent: Agent | None, name: str) -> str:
    allowed = [*STOCK_IMAGES, *workspace.images, *(agent.images if agent else ())]
    if name in allowed:
        return name
    raise NotAllowed(
        f"Image {name!r} is not allowed here; there are {', '.join(allowed)}. An admin allows one in the settings.",
        field="image",
        limit=allowed,
    )
