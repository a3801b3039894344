"""What a gated write or edit is made for: the file as it is now, bound by hash and kept for the reviewer's difference.

Looks into the sandbox before anybody is asked, and again before an approved one starts. Must never write there.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from approvals import gate, told
from console.workspaces import db
from console.workspaces.errors import Invalid

from . import drafting, flagging, host
from .engine import Box, Draft, Seen
from .errors import FileError
from .toolsets import unseal
from .toolsets.two import edit

VERSION_DIGITS = 12


async def on_what_is_there(proposal: gate.Proposal, *, is_asked: bool = False) -> tuple[gate.Proposal, list[bytes]]:
    """The proposal, bound to it, and the contents to keep. Raises FileError when it could not be done now: nobody is
    asked for what is refused anyway. `is_asked`: a person sees it, whatever a rule would say of it alone."""
    if proposal.tool == unseal.NAME:  # what it holds is nobody's here
        await _check_is_there(proposal.sandbox_id, proposal.arguments["path"])
        return proposal, []
    if proposal.tool == edit.NAME:
        return await _drafted(proposal, is_asked=is_asked)
    path = proposal.arguments["path"]
    file = await _looked(proposal.sandbox_id, path)
    _check_version(proposal.arguments, file)
    if file is not None:
        _check_writable(proposal.arguments, file)
    proposal = replace(proposal, bases={path: file.sha256 if file else None})
    if file is None or file.content is None:
        return proposal, []
    flags = await asyncio.to_thread(flagging.over, file.content, proposal.arguments, proposal.flags)
    return replace(proposal, flags=flags, replaced={file.sha256: len(file.content)}), [file.content]


async def _drafted(proposal: gate.Proposal, *, is_asked: bool) -> tuple[gate.Proposal, list[bytes]]:
    """One that nothing asks about is judged where it is made, and may be carried over there."""
    if not is_asked and not await db.read(gate.looks_first, proposal):
        return proposal, []
    hub = host.hub()
    found = await hub.ask(_draft(hub, proposal.sandbox_id, proposal.arguments))
    _check_no_link(proposal.arguments["path"], found.path)
    if not found.changed:  # bound to that, it can do nothing
        proposal = replace(proposal, kind="read")
    bases, replaced = drafting.bases_of(proposal.arguments, found), drafting.shown(found)
    return replace(proposal, bases=bases, replaced=replaced), [found.old, found.new]


async def _draft(hub: host.Hub, sandbox_id: str, arguments: Mapping[str, Any]) -> Draft:
    return await drafting.draft(await _box(hub, sandbox_id), arguments)


async def _looked(sandbox_id: str, path: str) -> Seen | None:
    """What a write to `path` would replace."""
    hub = host.hub()
    file = await hub.ask(_look(hub, sandbox_id, path))
    if file is not None:
        _check_no_link(path, file.path)
    return file


async def _check_is_there(sandbox_id: str, path: str) -> None:
    if await _looked(sandbox_id, path) is None:
        raise FileError("file_not_found", f"{path}: there is no such file.", path=path)


async def _look(hub: host.Hub, sandbox_id: str, path: str) -> Seen | None:
    return await (await _box(hub, sandbox_id)).look(path)


async def _box(hub: host.Hub, sandbox_id: str) -> Box:
    """It has heard what its agent's settings protect now, as before an act: so what a look tells is what that finds."""
    box = await hub.boxes.ready_box(sandbox_id)
    if policy := hub.boxes.protection(sandbox_id):
        await box.protect(more=policy.more, exempt=policy.left_s)
    return box


def _check_no_link(path: str, real: str) -> None:
    if real != posixpath.normpath(path):
        raise Invalid(f"{path} leads through a link to {told.named(real)}. Name that path itself.", field="path")


def _check_writable(arguments: Mapping[str, Any], file: Seen) -> None:
    """What its sandbox would refuse when a person had approved it."""
    path = arguments["path"]
    if file.is_sealed:
        raise FileError("protected_path", f"Nothing was written. {path} is sealed: unseal it first.", path=path)
    if file.names > 1 and arguments.get("version") is not None:
        why = f"{path} has {file.names} names (hard links), which a write would part. Remove the others first."
        raise FileError("hard_link", f"Nothing was written. {why}", path=path)


def _check_version(arguments: Mapping[str, Any], file: Seen | None) -> None:
    """What its agent has read must be what is there."""
    version, path = arguments.get("version"), arguments["path"]
    there = file.sha256[:VERSION_DIGITS] if file else ""
    if version is None or version == there:
        return
    if not version:
        why = f"{path} is there already, in version {there}. Read it, and give that version to replace it."
    elif file is None:
        why = f"{path} is not there any more. Leave `version` out to write it anew."
    else:
        why = f"{path} changed since you read it: it is version {there} now. Read it again."
    raise FileError("stale_edit", f"Nothing was written. {why}", path=path, version=there)
