"""The first start: a workspace, its admin, an agent and keys, made once and written down for whoever started it."""

import json
import os
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

from django.conf import settings
from django.db import transaction

from console import state
from console.workspaces import agents, audit, keys, members, permissions
from console.workspaces.models import Member, User, Workspace

KEY_DAYS = 30
ADMIN_EMAIL = "admin@sandgate.local"
_FORGET = "bin/up --forget-first-run"


def path() -> Path:
    return Path(settings.VAR) / "first-run.json"


def exists() -> bool:
    return path().exists()


def forget_command() -> str:
    """What deletes the file, as it is typed in a shell."""
    var = Path(settings.VAR)
    return _FORGET if var == state.CHECKOUT / "var" else f"SANDGATE_VAR={quote(str(var))} {_FORGET}"


def forget() -> bool:
    """Deletes the file; False when it was not there. The keys in it go on until they expire or are revoked."""
    there = exists()
    path().unlink(missing_ok=True)
    return there


def ensure(url: str) -> dict[str, Any] | None:
    """Makes everything when no workspace exists yet, and returns what was written down; None on later starts, which
    only put the address right where the file is still there."""
    if Workspace.objects.exists():
        _serve_at(url)
        return None
    # The file stands before the rows are committed: a crash in between leaves a file that the next start overwrites,
    # never rows whose password nobody knows.
    with transaction.atomic():
        found = {"url": url, **_make()}
        _write(found)
    return found


def _serve_at(url: str) -> None:
    with suppress(FileNotFoundError, ValueError):  # forgotten, or no longer as it was written
        found = json.loads(path().read_text())
        if isinstance(found, dict) and found.get("url") != url:
            _write({**found, "url": url})


def _make() -> dict[str, Any]:
    workspace = Workspace.objects.create(name="My workspace")
    password = members.first_password()
    user = User.objects.create_user(ADMIN_EMAIL, password, name="Admin", password_must_change=True)
    admin = members.add(workspace, user, by=None)
    for permission in permissions.ALL:
        members.give(admin, permission, by=None)
    agent = agents.make(workspace, name="first-agent", by=None)
    members.give(agent, permissions.SANDBOXES_RUN, by=None)
    agents.change_tools(agent, by=None, sandbox_enabled=True)
    _, agent_key = keys.make_agent_key(agent, name="first agent key", by=None, days=KEY_DAYS)
    found = {
        "admin": {"user": ADMIN_EMAIL, "password": password},
        "agent_key": agent_key,
        "workspace_key": _member_key(
            admin, "first workspace key", permissions.SANDBOXES_RUN, permissions.SANDBOXES_READ
        ),
    }
    if os.environ.get("SANDGATE_KEY_DECISIONS") == "1":
        Workspace.objects.filter(pk=workspace.pk).update(key_decisions=True)
        audit.append(workspace_id=workspace.pk, actor=audit.SYSTEM, event="workspace.key_decisions", on=True)
        found["review_key"] = _member_key(admin, "first review key", permissions.APPROVALS_REVIEW)
    return found


def _member_key(admin: Member, name: str, *may: str) -> str:
    return keys.make_member_key(admin, name=name, may=may, by=None, days=KEY_DAYS)[1]


def _write(found: dict[str, Any]) -> None:
    new = path().with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(found, out, indent=2)
        out.write("\n")
        out.flush()
        os.fsync(out.fileno())
    os.replace(new, path())
