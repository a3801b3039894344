"""What sandboxes and their engine say no with. Doors map `code` to HTTP; nothing here knows HTTP."""

from typing import Any

from approvals.errors import TooMany
from console.workspaces.errors import SandgateError


class SandboxError(SandgateError):
    """`code` is the stable word of the wire contract."""

    code = "sandbox_error"


class NoRuntime(SandboxError):
    """No gVisor here: nothing runs, and never on a weaker runtime. `detail` carries the fix."""

    code = "no_runtime"


class NoCapacity(SandboxError):
    code = "no_capacity"

    def __init__(self, detail: str, *, retry_after: int = 10) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class TooManySandboxes(TooMany):
    """As many live ones as there may be."""


class BoxGone(SandboxError):
    """The sandbox ended under the call. `reason` is an `ended_reason`."""

    code = "sandbox_gone"

    def __init__(self, detail: str, *, reason: str = "crashed") -> None:
        super().__init__(detail, ended_reason=reason)
        self.reason = reason


class Busy(SandboxError):
    """Somebody else is at it; asked again in a moment it is free."""

    code = "busy"


class NotStored(SandboxError):
    """It was done, and this server cannot keep what it came to."""

    code = "not_stored"


def is_halt(error: SandboxError) -> bool:
    """Whether a person halted its sandbox under the call."""
    return isinstance(error, BoxGone) and error.reason == "halted"


class OutOfReach(BoxGone):
    """Its host does not answer. What it was asked is lost, but it may go on: it is looked for before it is ended."""

    def __init__(self, sandbox_id: str) -> None:
        super().__init__(
            f"Sandbox {sandbox_id} cannot be reached: its host does not answer. Try again in a moment. It is ended if "
            "its host stays away for a minute; a persistent one is stopped, and keeps its files.",
            reason="host_lost",
        )


class Silent(BoxGone):
    """It runs, as far as its host knows, and does not answer."""


class FileError(SandboxError):
    """`code`: file_not_found, is_a_directory, not_a_file, permission_denied_in_sandbox, no_space, bad_path, …
    `more`, where it helps: of a refused edit, `lines` and `version` as they are now."""

    def __init__(self, code: str, detail: str, *, path: str, **more: Any) -> None:
        super().__init__(detail, path=path, **more)
        self.code = code
        self.more = more


class CommandEnded(SandboxError):
    code = "command_ended"

    def __init__(self, command_id: str, status: str) -> None:
        super().__init__(f"{command_id} has ended ({status}), and nothing of it is left.", status=status)


class NoStdin(SandboxError):
    code = "stdin_closed"


class NotAllowed(SandboxError):
    """A setting forbids it: `field` names which, `limit` what would pass."""

    code = "not_allowed_by_settings"


class IllegalMove(Exception):
    """A transition that the state table does not have. Always a fault of ours."""
