"""What doors may do with an agent's tools: list them as pinned, call one, and say what became of it in a model's words.

A call is an act like any other, proposed through the same gate; this only finds its sandbox, which is that of its
conversation, and shapes what goes in and comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals import again, told
from approvals.models import Action
from console.workspaces import db
from console.workspaces.errors import Invalid
from console.workspaces.keys import Caller
from console.workspaces.models import Agent

from . import acts, commands, host, lifecycle, toolsets
from .errors import FileError, NotAllowed
from .models import Sandbox
from .profiles import NewSandbox
from .toolsets import arguments as check

OF_THE_PATH = ("bad_path", "is_a_directory", "not_a_directory", "not_a_file", "not_utf8")
"""What is wrong with what a call names, rather than with what became of it."""
ID_BYTES = 40
__all__ = ["call", "pinned", "said", "tools"]


def pinned(caller: Caller) -> int:
    """The toolset of the calling agent; a member's key has the newest."""
    return Agent.objects.get(pk=caller.agent_id).toolset if caller.agent_id else toolsets.NEWEST


def tools(caller: Caller) -> list[toolsets.Tool]:
    return list(toolsets.toolset(pinned(caller)).values())


async def call(
    caller: Caller,
    name: str,
    given: Any,
    *,
    conversation: str,
    reason: str = "",
    parent_action: str = "",
    idempotency_key: str | None = None,
) -> acts.Proposed:
    """Recorded, and running or waiting for a person; in the conversation's sandbox, which is made when it has none.
    Raises BadArguments, NoSuchTool, and what `acts.propose` raises."""
    await db.read(lifecycle.check_enabled, caller)
    tool = toolsets.tool(await db.read(pinned, caller), name)
    arguments = tool.arguments(given)
    if parent_action:
        await db.read(_check_parent, caller, parent_action)
    sandbox = await _sandbox(caller, tool, arguments, conversation, idempotency_key)
    try:
        return await acts.propose(
            caller, sandbox.pk, tool.act.NAME, arguments, version=tool.act.VERSION, conversation=conversation,
            reason=reason, parent_action=parent_action, idempotency_key=idempotency_key,
        )  # fmt: skip
    except Invalid as error:
        raise tool.bad(error) from error
    except NotAllowed as error:
        error.fields |= {"field": f"arguments.{error.fields['field']}", "example": dict(tool.example)}
        raise
    except FileError as error:  # refused before anybody was asked; in words for a model, as an outcome is
        if error.code in OF_THE_PATH:
            error.fields |= {"field": "arguments.path", "example": dict(tool.example)}
        error.fields["text"] = "\n".join([error.detail, *told.aids(error.fields)])
        raise


def _check_parent(caller: Caller, action_id: str) -> None:
    if not Action.objects.visible_to(caller).filter(pk=action_id).exists():
        raise Invalid(f"`parent_action` {action_id[:60]} is no action of this key's.", field="parent_action")


async def _sandbox(
    caller: Caller, tool: toolsets.Tool, arguments: Mapping[str, Any], conversation: str, idempotency_key: str | None
) -> Sandbox:
    """What was called before is looked for where it was, and a command where it runs; neither needs a new sandbox."""
    if idempotency_key and (known := await db.read(again.with_key, caller, idempotency_key)):
        return (await db.read(acts.place, caller, known.sandbox_id))[0]
    if toolsets.is_by_host(tool.act.NAME, tool.act.VERSION) and "id" in arguments:
        command = await db.read(commands.of_caller, caller, _command_id(tool, arguments))
        return command.sandbox
    hub = host.hub()
    return await hub.ask(hub.boxes.for_conversation(caller, conversation, NewSandbox()))


def _command_id(tool: toolsets.Tool, arguments: Mapping[str, Any]) -> str:
    """Looked up before its act validates it, and not every text can be."""
    try:
        return check.text(arguments["id"], field="id", limit_bytes=ID_BYTES)
    except Invalid as error:
        raise tool.bad(error) from error


async def said(caller: Caller, action: Action) -> dict[str, Any] | None:
    """`acts.outcome` with `text`: in its result, or beside it when there is none. None while it is open."""
    return await with_text(await db.read(pinned, caller), action)


def without_output(action: Action) -> dict[str, Any] | None:
    """As `said`, for lists: no file is read, so `text` is there where `result` is not."""
    found = action.outcome()
    return {**found, "text": told.ended(action)} if found and found["result"] is None else found


async def with_text(toolset: int, action: Action) -> dict[str, Any] | None:
    outcome = await acts.outcome(action)
    if outcome is None:
        return None
    text = in_words(toolset, action, outcome)
    if outcome["edited"] and outcome["executed"]:
        text = told.edited(outcome["diff_of_edit"], text)
    if outcome["result"] is None:
        return {**outcome, "text": text}
    return {**outcome, "result": {"text": text, **outcome["result"]}}


def in_words(toolset: int, action: Action, outcome: Mapping[str, Any]) -> str:
    """What a model reads of an action that has ended."""
    if action.status != "succeeded":
        return told.ended(action)
    tool = toolsets.shown_by(toolset, action.tool, action.tool_version)
    result: Mapping[str, Any] = outcome["result"] or {}
    return tool.text(result, action.arguments) if tool else f"{action.tool} is done."
