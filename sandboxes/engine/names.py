"""What containers, volumes and labels are called. Every host-wide name carries the instance; nothing else makes one."""

import re

from sandboxes.errors import SandboxError

LABEL_INSTANCE = "sandgate.instance"
LABEL_SANDBOX = "sandgate.sandbox"
LABEL_MARKER = "sandgate.marker"
LABEL_DISK = "sandgate.disk"
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
    return f"sandgate-{instance}-{checked(sandbox_id)}"


def runner_volume_name(instance: str, content: str) -> str:
    return f"sandgate-{instance}-runner-{content}"
