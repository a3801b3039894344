"""What a door asks the gate for. Plain data; its digest is what is decided about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from console.workspaces.keys import Caller

from . import payloads
from .digest import digest
from .policy import Kind


@dataclass(frozen=True)
class Proposal:
    """Plain data: who wants what, exactly. `arguments` are validated, with defaults and packed contents."""

    caller: Caller
    sandbox_id: str
    tool: str
    tool_version: int
    kind: Kind
    arguments: Mapping[str, Any]
    profile: Mapping[str, Any]
    bases: Mapping[str, str | None] = field(default_factory=dict)
    replaced: Mapping[str, int] = field(default_factory=dict)  # SHA-256 → bytes of those bases that a reviewer can see
    script: Mapping[str, Any] | None = None  # {path, sha256, size} of the file that a command runs
    flags: tuple[str, ...] = ()
    conversation: str = ""
    parent_action: str = ""
    reason: str = ""
    idempotency_key: str | None = None  # as the door scopes it: never the same for another address

    def digest(self) -> str:
        return digest(
            workspace=self.caller.workspace_id,
            agent=self.caller.agent_id,
            profile=self.profile,
            tool=self.tool,
            tool_version=self.tool_version,
            arguments=self.arguments,
            bases=self.bases,
            script=self.script,
        )

    def payloads(self) -> dict[str, int]:
        """SHA-256 → bytes of every content that has to stay for as long as its row."""
        script = {self.script["sha256"]: self.script["size"]} if self.script else {}
        return {**payloads.sizes(self.arguments), **self.replaced, **script}
