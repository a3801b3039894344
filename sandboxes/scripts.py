"""The file that a command runs, where its words alone say which: its text is on the card, its hash in the digest, and
no other bytes run. docs/decisions/028.

Looks into the sandbox before anybody is asked; script_files.py looks again before an approved one starts, and the
runner last. What cannot be bound stays flagged as unpinned code, and asks as before. Must never ask the sandbox about
what nobody will be asked about.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace

from approvals import gate, payloads, shell
from approvals.digest import reference
from console.workspaces import db

from . import flagging, host, script_files
from .engine import Box
from .errors import SandboxError
from .runner.guarding import ROOTS
from .runner.pinning import SCRIPT_BYTES
from .toolsets import run

UNPINNED = "unpinned_code"
DEEPEST = 40
PROGRAMS_AT = ("/usr/bin", "/bin", "/usr/local/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
"""What comes before the home in PATH."""


async def bound(
    proposal: gate.Proposal, *, is_asked: bool = False, made: Mapping[str, bytes | None] | None = None
) -> tuple[gate.Proposal, list[bytes]]:
    """The proposal, bound to its script, and that text to keep; as it was when there is none. `is_asked`: a person sees
    it, whatever a rule would say of it alone. `made`: path → content of files that are written before it runs, None for
    long ones."""
    if not proposal.caller.is_agent or proposal.tool != run.NAME:
        return proposal, []
    if shell.likely_script(run.read(proposal.arguments)) is None:
        return proposal, []
    if not is_asked and (await db.read(gate.judge, proposal)).effect != "ask":
        return proposal, []
    script = await asyncio.to_thread(lambda: shell.script_in(run.read(proposal.arguments)))
    if script is None:
        return proposal, []
    hub = host.hub()
    try:
        found = await hub.ask(_look(hub, proposal, script, made or {}))
    except SandboxError:  # not there, no file, too long, or out of reach
        return proposal, []
    # A hostile text takes a second to read: on the hub's loop every sandbox would wait for it.
    return await asyncio.to_thread(_bound, proposal, found) if found else (proposal, [])


@dataclass(frozen=True)
class _Found:
    """`path`: the real one; `is_by_image`: what reads it is no code of the workspace either."""

    path: str
    content: bytes
    is_by_image: bool


async def _look(
    hub: host.Hub, proposal: gate.Proposal, script: shell.Script, made: Mapping[str, bytes | None]
) -> _Found | None:
    box = await hub.boxes.ready_box(proposal.sandbox_id)
    path = run.named(proposal.arguments, script)
    real = posixpath.normpath(path)
    path, content = (real, made[real]) if real in made else await script_files.text(box, path)
    return None if content is None else _Found(path, content, await _is_by_image(box, script, content))


async def _is_by_image(box: Box, script: shell.Script, content: bytes) -> bool:
    """A first line that names a program counts whoever reads the file: perl and ruby hand it to that one."""
    first = content.partition(b"\n")[0]
    said = shell.program_of(first.decode(errors="replace"))
    names = {script.program or said}
    if shell.FIRST_LINE.encode() in first:
        names.add(said)
    return all([await _has(box, name) for name in names])


async def _has(box: Box, name: str) -> bool:
    if not name:
        return False
    for folder in PROGRAMS_AT:
        if await box.has(f"{folder}/{name}"):
            return True
    return False


def _bound(proposal: gate.Proposal, found: _Found) -> tuple[gate.Proposal, list[bytes]]:
    if not _can_be_shown(found.path, found.content):
        return proposal, []
    flags = [flag for flag in proposal.flags if flag != UNPINNED or not found.is_by_image]
    flags += flagging.of(run.NAME, {"script": payloads.hold(found.content)}, None)
    script = {"path": found.path, **reference(found.content)}
    return replace(proposal, flags=tuple(dict.fromkeys(flags)), script=script), [found.content]


def _can_be_shown(path: str, content: bytes) -> bool:
    """As text, and where the runner can hold it: each folder above is a mount meanwhile."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    is_text = len(content) <= SCRIPT_BYTES and b"\0" not in content
    return is_text and path.startswith(tuple(f"{root}/" for root in ROOTS)) and path.count("/") <= DEEPEST
