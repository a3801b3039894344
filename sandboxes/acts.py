"""What doors may do with sandboxes: the same functions behind REST, pages and tools. Awaited from a request's loop.

`propose` is the only caller of the gate. A request proposes and waits; it owns no execution, so a client that leaves
takes nothing with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from signal import Signals
from types import ModuleType
from typing import Any, TypeVar

from approvals import decisions, gate, payloads, same
from approvals.models import Action
from console.workspaces import bus, db
from console.workspaces.errors import NotFound
from console.workspaces.keys import Caller
from console.workspaces.models import Agent

from . import answers, based, commands, flagging, host, lifecycle, outputs, protection, quarantine, scripts
from .begun import Begun
from .errors import CommandEnded, NotAllowed
from .models import Command, Sandbox
from .passage import Passage
from .profiles import NewSandbox
from .toolsets import COMMANDS, is_by_host, named

__all__ = ["CommandOutput", "FileInfo", "NewSandbox", "Proposed", "propose"]

SHORT = 1000  # characters: at most 4000 bytes, and so never a payload
T = TypeVar("T")


@dataclass(frozen=True)
class Proposed:
    """`begun`: what this call began, when nobody had to be asked first."""

    action_id: str
    joined: bool = False
    begun: Begun | None = None


@dataclass(frozen=True)
class CommandOutput:
    """Up to 10 MiB of each stream; when `truncated`, the first and the last 5 MiB. `command` as it is now."""

    command: Command
    stdout: outputs.Kept
    stderr: outputs.Kept
    truncated: bool


@dataclass(frozen=True)
class FileInfo:
    path: str
    size: int
    sha256: str


async def create_sandbox(caller: Caller, new: NewSandbox) -> Sandbox:
    """Running when this returns. Raises NoRuntime, NoCapacity, NotAllowed, NotEnabled, PermissionDenied or TooMany."""
    await db.read(lifecycle.check_enabled, caller)
    hub = host.hub()
    return await hub.ask(hub.boxes.create(caller, new))


async def delete_sandbox(caller: Caller, sandbox_id: str) -> None:
    """All of it in the hub: who asked and left at once has asked all the same."""
    hub = host.hub()
    await hub.ask(_delete(hub, caller, sandbox_id))


async def _delete(hub: host.Hub, caller: Caller, sandbox_id: str) -> None:
    sandbox = await db.read(lifecycle.find_usable, caller, sandbox_id)
    quarantine.check_removable(sandbox)
    if not await hub.boxes.end(sandbox, "deleted", actor=caller.actor, deleted=True):
        raise NotFound("sandbox", sandbox_id)


async def end_left(caller: Caller, is_left: Callable[[str], bool]) -> bool:
    """Makes room: ends the caller's sandbox not used for longest of those whose conversation `is_left`, so that nobody
    can go on in it. False: all of them are in use, or there is none."""
    sandbox = await db.read(lifecycle.left, caller, is_left)
    if sandbox is None:
        return False
    hub = host.hub()
    await hub.ask(hub.boxes.end(sandbox, "deleted", actor=caller.actor, deleted=True))
    return True


async def propose(
    caller: Caller,
    sandbox_id: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    reason: str = "",
    conversation: str = "",
    parent_action: str = "",
    idempotency_key: str | None = None,
    content: Passage | None = None,
    version: int = 1,
) -> Proposed:
    """Recorded, and running or waiting for a person. Raises what the tool's `validate` and the gate raise. `content`:
    of a write whose content comes while it is written."""
    sandbox, agent = await db.read(place, caller, sandbox_id)
    proposal = await validated(
        caller, sandbox, agent, tool, arguments, version=version,
        reason=reason, conversation=conversation, parent_action=parent_action, idempotency_key=idempotency_key,
    )  # fmt: skip
    if idempotency_key and (known := await db.read(same.earlier, proposal)):
        return Proposed(known.pk)  # whatever has become of the sandbox since
    if not is_by_host(tool, version):
        lifecycle.check_live(sandbox)
    if agent and proposal.kind == "write":
        if "version" in proposal.arguments and (known := await db.read(same.done_already, proposal)):
            return Proposed(known.pk, joined=True)  # it would be refused now, for what it has itself made
        host.hub().boxes.protect(sandbox_id, protection.of(agent))  # what is looked at is judged by it
        proposal, seen = await based.on_what_is_there(proposal)
    else:
        proposal, seen = await scripts.bound(proposal)
    if proposal.payloads():
        await db.read(gate.check_room, proposal)
    proposal = await kept(proposal, seen)
    hub = host.hub()
    hub.boxes.protect(sandbox_id, protection.of(agent) if agent else None)
    answer = await hub.dispatcher.submit(proposal, content)
    if isinstance(answer, Begun):
        return Proposed(answer.pass_.action_id, begun=answer)
    return Proposed(answer.action_id, answer.joined)


def place(caller: Caller, sandbox_id: str) -> tuple[Sandbox, Agent | None]:
    agent = lifecycle.check_enabled(caller)
    return lifecycle.find(caller, sandbox_id), agent


def _check_fits(sandbox: Sandbox, tool: str) -> None:
    if tool == "install" and not sandbox.writable_root:
        raise NotAllowed(
            f"The system of sandbox {sandbox.pk} cannot be changed. Create one with `writable_root`, where an admin "
            "allows it, or ask for an image that has the packages.",
            field="writable_root",
            limit=False,
        )


async def validated(
    caller: Caller,
    sandbox: Sandbox,
    agent: Agent | None,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    version: int = 1,
    conversation: str = "",
    **more: Any,
) -> gate.Proposal:
    """Validated and packed. The files that it would replace are not looked at yet."""
    _check_fits(sandbox, tool)
    module = named(tool, version)
    checked, flags = await _off_the_loop(arguments, partial(_checked, module, arguments, agent))
    await flagging.read_ahead(module.NAME, checked, agent)
    return gate.Proposal(
        caller=caller,
        sandbox_id=sandbox.pk,
        tool=tool,
        tool_version=module.VERSION,
        kind=module.KIND,
        arguments=checked,
        profile={
            "image": sandbox.image_id,
            "network": sandbox.network,
            "user": "agent",
            "env": sandbox.env,
            "settings_version": agent.settings_version if agent else 0,
        },
        flags=flags,
        conversation=conversation or sandbox.conversation,
        **more,
    )


async def _off_the_loop(arguments: Mapping[str, Any], work: Callable[[], T]) -> T:
    """A short text is checked faster than a thread is woken; whatever may go to disk is not checked on the loop."""
    return work() if _length(arguments) <= SHORT else await asyncio.to_thread(work)


def _length(value: object) -> int:
    if isinstance(value, Mapping):
        return sum(_length(each) for each in value.values())
    if isinstance(value, list | tuple):
        return sum(_length(each) for each in value)
    return len(value) if isinstance(value, str) else SHORT * isinstance(value, bytes) + 1


def _checked(
    module: ModuleType, arguments: Mapping[str, Any], agent: Agent | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    checked = module.validate(arguments, agent)
    told = protection.check_write(checked, agent) if module.KIND == "write" and module.NAME != "unseal" else ()
    return checked, (*told, *flagging.of(module.NAME, checked, agent))


async def kept(proposal: gate.Proposal, seen: list[bytes]) -> gate.Proposal:
    """Its contents on disk, and out of memory: from here on it may wait for a person. `seen`: what it would replace,
    and what it would make of it."""
    for content in seen:
        await asyncio.to_thread(_keep, content)
    if not any(isinstance(value, payloads.Held) for value in proposal.arguments.values()):
        return proposal
    return replace(proposal, arguments=await asyncio.to_thread(payloads.keep_all, proposal.arguments))


def _keep(content: bytes) -> None:
    payloads.keep(payloads.hold(content))


def find_action(caller: Caller, action_id: str) -> Action:
    try:
        return Action.objects.visible_to(caller).get(pk=action_id)
    except Action.DoesNotExist:
        raise NotFound("action", action_id) from None


async def settled(caller: Caller, action_id: str, *, wait_s: float, begun: Begun | None = None) -> Action:
    """As soon as it ended, or as it is after `wait_s`. Holds no thread and no database handle while it waits. `begun`:
    of the caller's own proposal, whose end is known here without a look."""
    looks = count()

    async def look() -> Action | None:
        if begun and begun.ended:
            return begun.ended
        # Not while it runs here: a trip to the database would only delay the sending of the command. That it is no
        # longer followed rings too, so a look left out is never the last one.
        if next(looks) == 0 and wait_s > 0 and host.follows(action_id):
            return None
        return await db.read(_find_ended, caller, action_id)

    ended = await bus.wait_for(look, f"action:{action_id}", timeout_s=max(0.0, wait_s))
    return ended if ended is not None else await db.read(find_action, caller, action_id)


def _find_ended(caller: Caller, action_id: str) -> Action | None:
    action = find_action(caller, action_id)
    return None if action.is_open else action


async def output(action: Action, command: Command | None = None) -> CommandOutput | None:
    """What a command printed so far; None when the action ran none. `command`: its row, of whoever has it."""
    if command and not (command.stdout_bytes or command.stderr_bytes):
        return output_now(action, command)  # nothing, and so no file is looked at
    return await db.read(output_now, action, command)


def output_now(action: Action, command: Command | None = None) -> CommandOutput | None:
    command = command or commands.of_action(action.pk)
    if command is None:
        return None
    ended = command.status not in ("running", "lost")
    streams = {
        name: outputs.kept(action.pk, name, getattr(command, f"{name}_bytes") if ended else None)
        for name in ("stdout", "stderr")
    }
    return CommandOutput(
        command=command,
        stdout=streams["stdout"],
        stderr=streams["stderr"],
        truncated=any(stream.truncated for stream in streams.values()),
    )


async def outcome(action: Action) -> dict[str, Any] | None:
    """What became of it, with what it printed; None while it is open."""
    found = action.outcome()
    if not found or found["result"] is None:
        return found
    found["result"] = {**found["result"], **await db.read(answers.kept, action.pk)}
    if action.tool in COMMANDS and (command := await db.read(commands.of_action, action.pk)):
        found["result"] |= await _of_command(action, command)
    return found


async def _of_command(action: Action, command: Command) -> dict[str, Any]:
    """What the result of a run says beyond its numbers. One in the background is followed by its id."""
    if command.background:
        return {"id": command.pk}
    printed = await output(action)
    assert printed
    texts = {
        name: (await db.read(stream.read)).decode(errors="replace")
        for name, stream in (("stdout", printed.stdout), ("stderr", printed.stderr))
    }
    return {"id": command.pk, **texts, "left_running": [command.pk] if command.left_running else []}


async def stop_command(caller: Caller, sandbox_id: str, command_id: str, number: Signals) -> Command:
    """Ends a command's whole tree, also what is left of one that has ended; returns when it is empty. Never asks."""
    await db.read(lifecycle.check_enabled, caller)
    command = await db.read(commands.find, caller, sandbox_id, command_id)
    if command.status != "running" and not command.left_running:
        raise CommandEnded(command.pk, command.status)
    hub = host.hub()
    await db.write(commands.record_stop, command, actor=caller.actor, signal=number.name.removeprefix("SIG"))
    await hub.ask(hub.dispatcher.stop(command, number))
    return await db.read(commands.find, caller, sandbox_id, command_id)


async def cancel(caller: Caller, action_id: str) -> Action:
    """Its agent takes back what has not started; what has stays as it is, and the answer says so."""
    action = await db.read(find_action, caller, action_id)
    await db.write(gate.cancel, action, by=caller)
    return await db.read(find_action, caller, action_id)


async def decide_by_key(caller: Caller, action_id: str, verdict: str, *, digest: str, reason: str = "") -> Action:
    action = await db.read(find_action, caller, action_id)
    await db.write(decisions.decide_by_key, action, verdict, caller=caller, digest=digest, reason=reason)
    return await db.read(find_action, caller, action_id)


async def mark_delivered(action_id: str) -> None:
    await db.write(gate.delivered, action_id)
