"""The state directory: where everything lies that an instance writes, and the name that tells it from its neighbours.

Standard library only: `bin/` scripts and settings read it before Django exists.
"""

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
ANY_BRIDGE = "sgn"
"""Begins the bridges of every instance on the machine."""


class Unusable(Exception):
    """What the environment names cannot be used. The text names the variable and what to do."""


def directory(default: str = "var") -> Path:
    """`SANDGATE_VAR`, by default in the checkout; made with mode 0700 when it is missing."""
    named = os.environ.get("SANDGATE_VAR") or str(CHECKOUT / default)
    try:
        path = Path(named).expanduser().resolve()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.stat().st_uid == os.geteuid() and path.stat().st_mode & 0o077:
            path.chmod(0o700)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, or a home that nobody has
        raise _unusable(named, error) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _unusable(named, "it cannot be written to")
    return path


def _unusable(named: str, why: object) -> Unusable:
    return Unusable(f"No state can be kept in {named} ({why}); name a directory of your own with SANDGATE_VAR.")


def instance(path: Path) -> str:
    """The id in every host-wide name (labels, volumes, run directory): two state directories never share one."""
    return hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]


def bridge_prefix(instance: str) -> str:
    """Begins every bridge of its sandboxes. An interface's name ends at 15 bytes, an instance's does not."""
    return f"{ANY_BRIDGE}{hashlib.sha256(instance.encode()).hexdigest()[:8]}"


def table_name(instance: str) -> str:
    """Of its network jail; nft takes no dash in a name."""
    return f"sandgate_{instance.replace('-', '_')}"


def secret_key(path: Path) -> str:
    """Made once, readable by the owner only. Two processes that start together agree on one."""
    file = path / "secret_key"
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _when_written(file)
    except OSError as error:
        raise _unusable(str(path), error) from error
    with os.fdopen(handle, "w") as out:
        out.write(key := secrets.token_urlsafe(48))
    return key


def _when_written(file: Path) -> str:
    # The other process creates the file and then fills it: an empty read means "a moment later".
    for _ in range(1000):
        if key := file.read_text():
            return key
        os.sched_yield()
    raise RuntimeError(f"{file} is empty. Delete it and start again; signed-in people sign in anew.")


def engine(path: Path) -> dict[str, Any] | None:
    """What `bin/up` found out about Docker and gVisor; None when it never ran on this state directory."""
    try:
        found: dict[str, Any] = json.loads((path / "engine.json").read_text())
    except FileNotFoundError:
        return None
    return found
