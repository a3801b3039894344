"""What a reviewer may edit of a waiting call, and the edited call as its own tool validates it.

Owns which texts can be edited in a form without losing a byte. Must never run anything, and never widen a call: image,
network, variables, directory and time stay what its agent asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from approvals import differences, edits, gate, payloads
from approvals.draw import survey
from approvals.models import Action
from console.workspaces import db
from console.workspaces.errors import Conflict
from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Member

from . import acts, based, scripts
from .models import Sandbox

FIELDS = {"run": "command", "write": "content"}
FORM_BYTES = 256 << 10


class NotEditable(Conflict):
    code = "not_editable"


def text(action: Action) -> str:
    """What stands in the form. Raises NotEditable, which says why, when a form would not give it back as it is."""
    name = FIELDS.get(action.tool)
    value = action.arguments.get(name) if name else None
    if value is None:
        raise NotEditable("Only the line of a command and the content of a file can be edited here.")
    if (len(value.encode()) if isinstance(value, str) else value["size"]) > FORM_BYTES:
        raise NotEditable(f"Texts of more than {FORM_BYTES >> 10} KiB cannot be edited here.")
    try:
        found = differences.text_of(value)
    except UnicodeDecodeError:
        raise NotEditable("It is no text, so it cannot be edited here.") from None
    if "\r" in found or "\0" in found or survey(found).hidden:
        raise NotEditable("It holds characters that a form would hide or lose. Deny it and say what to send instead.")
    return found


def path(action: Action) -> str:
    """Where an edited file would go; empty for a command."""
    return str(action.arguments["path"]) if action.tool == "write" else ""


async def edited(action: Action, *, text: str, path: str, by: Member) -> gate.Proposal:
    """Validated, judged and bound as a call of its agent's would be; its contents are on disk. Raises what the tool and
    the gate raise."""
    await db.read(edits.check_may_edit, action, by=by)
    sandbox, agent = await db.read(_place, action)
    caller = Caller(action.key_id or "", action.workspace_id, action.agent_id, None, frozenset())
    proposal = await acts.validated(
        caller, sandbox, agent, action.tool, _arguments(action, text, path),
        version=action.tool_version, conversation=action.conversation, reason=action.reason,
        parent_action=action.parent_action,
    )  # fmt: skip
    proposal = replace(proposal, profile=action.profile, bases=action.bases)
    seen: list[bytes] = []
    if action.tool == "write" and proposal.arguments["path"] != action.arguments["path"]:
        proposal, seen = await based.on_what_is_there(proposal)
    elif action.tool == "run":
        proposal, seen = await scripts.bound(proposal, is_asked=True)
    await asyncio.to_thread(lambda: [payloads.keep(payloads.hold(content)) for content in seen])
    kept = await asyncio.to_thread(payloads.keep_all, proposal.arguments)
    return await db.read(edits.checked, action, replace(proposal, arguments=kept))


def _place(action: Action) -> tuple[Sandbox, Agent | None]:
    return Sandbox.objects.get(pk=action.sandbox_id), action.agent


def _arguments(action: Action, text: str, path: str) -> Mapping[str, Any]:
    """As its tool takes them, with the new text."""
    rest = dict(action.arguments)
    if action.tool == "run":
        return {**rest, "command": text, "stdin": differences.text_of(rest["stdin"])}
    if path != rest["path"]:
        rest.pop("version", None)  # it was of the other file
    return {**rest, "path": path, "content": text.encode()}
