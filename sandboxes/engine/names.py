"""What containers, volumes and labels are called. Every host-wide name carries the instance; nothing else makes one."""

import re
import secrets

from console.state import bridge_prefix
from sandboxes.errors import SandboxError

LABEL_INSTANCE = "sandgate.instance"
LABEL_SANDBOX = "sandgate.sandbox"
LABEL_MARKER = "sandgate.marker"
LABEL_DISK = "sandgate.disk"
LABEL_ROOT_MB = "sandgate.root_mb"
"""How much may be written to its root. Only where that is writable."""
LABEL_RUNNER = "sandgate.runner"

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{2,62}")


class BadName(SandboxError):
    code = "bad_request"


def checked(sandbox_id: str) -> str:
    """It becomes part of a file's and a container's name."""
    if not _ID.fullmatch(sandbox_id):
        raise BadName(f"{sandbox_id!r} is no sandbox id.")
    return sandbox_id


def container_name(instance: str, sandbox_id: str) -> str:
    return f"sandgate-{instance}-{checked(sandbox_id)}"


def volume_name(instance: str, sandbox_id: str) -> str:
    """Another one at each call. Docker may believe for ever that a name is mounted which is not, and would then start a
    sandbox on an empty folder of the host."""
    return f"sandgate-{instance}-{checked(sandbox_id)}-{secrets.token_hex(2)}"


def runner_volume_name(instance: str, content: str) -> str:
    return f"sandgate-{instance}-runner-{content}"


def network_name(instance: str, sandbox_id: str) -> str:
    return f"sandgate-{instance}-{checked(sandbox_id)}"


def bridge_name(instance: str, number: int) -> str:
    return f"{bridge_prefix(instance)}{number:03x}"
