"""What the daemon knows about a container that went silent: does it run, and if not, why not.

Owns the translation of a container's state into an `ended_reason`. Must never guess while the daemon is away.
"""

from dataclasses import dataclass
from typing import Any

from .daemon import Daemon, NotFound

INSPECT_S = 3.0
EXIT_PROCESS_LIMIT = 2
"""gVisor's kernel ends so when it cannot make a thread: the container's process limit was met."""


@dataclass(frozen=True)
class State:
    running: bool
    reason: str = ""
    """One of `oom`, `process_limit`, `crashed`; empty while it runs."""
    labels: tuple[tuple[str, str], ...] = ()
    paused: bool = False
    """By somebody else: it runs, and nothing in it does."""

    def label(self, name: str) -> str:
        return dict(self.labels).get(name, "")


async def look(daemon: Daemon, container_id: str) -> State:
    """Raises Unreachable."""
    try:
        found = await daemon.call(lambda client: client.api.inspect_container(container_id), timeout_s=INSPECT_S)
    except NotFound:
        return State(running=False, reason="crashed")
    labels = tuple((found["Config"].get("Labels") or {}).items())
    state = found["State"]
    if state["Running"]:
        return State(running=True, labels=labels, paused=bool(state.get("Paused")))
    return State(running=False, reason=_reason(state), labels=labels)


def _reason(state: dict[str, Any]) -> str:
    if state.get("OOMKilled"):
        return "oom"
    return "process_limit" if state.get("ExitCode") == EXIT_PROCESS_LIMIT else "crashed"
