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
from dataclasses import replace

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
    return await hub.ask(_bound(hub, proposal, script, made or {}))


async def _bound(
    hub: host.Hub, proposal: gate.Proposal, script: shell.Script, made: Mapping[str, bytes | None]
) -> tuple[gate.Proposal, list[bytes]]:
    try:
        box = await hub.boxes.ready_box(proposal.sandbox_id)
        path = run.named(proposal.arguments, script)
        real = posixpath.normpath(path)
        path, content = (real, made[real]) if real in made else await script_files.text(box, path)
        if content is None or not _can_be_shown(path, content):
            return proposal, []
        program = await _is_of_the_image(box, script, content.decode())
    except SandboxError:  # not there, no file, too long, or out of reach
        return proposal, []
    flags = [flag for flag in proposal.flags if flag != UNPINNED or not program]
    flags += flagging.of(run.NAME, {"script": payloads.hold(content)}, None)
    proposal = replace(proposal, flags=tuple(dict.fromkeys(flags)))
    return replace(proposal, script={"path": path, **reference(content)}), [content]


def _can_be_shown(path: str, content: bytes) -> bool:
    """As text, and where the runner can hold it: each folder above is a mount meanwhile."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    is_text = len(content) <= SCRIPT_BYTES and b"\0" not in content
    return is_text and path.startswith(tuple(f"{root}/" for root in ROOTS)) and path.count("/") <= DEEPEST


async def _is_of_the_image(box: Box, script: shell.Script, text: str) -> bool:
    """Whether what reads it is no code of the workspace either. A first line counts whoever reads the file: some
    interpreters obey it."""
    said = shell.program_of(text)
    name = script.program or said
    if not said or not name:
        return False
    for folder in PROGRAMS_AT:
        if await box.has(f"{folder}/{name}"):
            return True
    return False
