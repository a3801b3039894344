"""What goes out over MCP: tools, outcomes and refusals, as the protocol has them. Text is what a model reads; the
structured part names the action, so that a program can go on with it."""

import json
from collections.abc import Mapping
from typing import Any

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations

from approvals import told
from approvals.models import Action
from console.workspaces.errors import SandgateError
from sandboxes import toolsets

AWAIT, PENDING = "await_action", "list_pending"
AWAIT_MOST_S = 50
ID_BYTES = 40
ID = {"type": "string", "minLength": 1, "maxLength": ID_BYTES, "description": "act_…, as a call answered it."}
AWAIT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action_id": ID,
        "wait_s": {
            "type": "number",
            "minimum": 0,
            "maximum": AWAIT_MOST_S,
            "description": f"Seconds to wait at most; {AWAIT_MOST_S} unless given.",
        },
    },
    "required": ["action_id"],
    "additionalProperties": False,
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
AWAIT_DESCRIPTION = (
    "Go on waiting for an action that waits for a person, or still runs. Answers with its outcome as soon as there is "
    "one. Call it again as often as you like: waiting changes nothing, and a wait that ends is no refusal."
)
PENDING_DESCRIPTION = (
    "List your actions that wait for a person, and those that have ended and whose outcome you have not been given. "
    "Call it first after a restart, then await_action for each."
)


def tool(known: toolsets.Tool) -> Tool:
    reads = known.act.KIND == "read" and known.name != "stop"
    about = ToolAnnotations(read_only_hint=reads, open_world_hint=known.name in ("run", "run_command"))
    return Tool(name=known.name, description=known.description, input_schema=known.schema, annotations=about)


def own_tools() -> list[Tool]:
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return [
        Tool(name=AWAIT, description=AWAIT_DESCRIPTION, input_schema=AWAIT_SCHEMA, annotations=reads),
        Tool(name=PENDING, description=PENDING_DESCRIPTION, input_schema=NOTHING, annotations=reads),
    ]


def outcome(action: Action, text: str | None, *, joined: bool = False) -> CallToolResult:
    """`text` is None while it is open. A command that exits with a failure is no error of the call."""
    names = {
        "action_id": action.pk,
        "status": action.status,
        "tool": action.tool,
        "conversation": action.conversation or None,
        "sandbox_id": action.sandbox_id,
        "joined": joined,
    }
    if text is None:
        return _result(f"{told.waits(action)} Call {AWAIT} with action_id {action.pk}.", names, is_error=False)
    if error := action.error:
        names["error"] = error
    return _result(text, names, is_error=action.status != "succeeded")


def refusal(error: SandgateError) -> CallToolResult:
    """Of a call that became no action. A model mends its call by what is said here."""
    text = error.detail
    if isinstance(error, toolsets.BadArguments):
        text += f" A right call: {json.dumps(error.fields['example'])}"
    text = "\n".join([text, *told.aids(error.fields)])
    return _result(text, {**error.fields, "code": error.code}, is_error=True)


def pending(actions: list[Action], *, more: bool) -> CallToolResult:
    items = [
        {"action_id": each.pk, "status": each.status, "tool": each.tool, "conversation": each.conversation or None}
        for each in actions
    ]
    lines = [f"{each.pk}  {each.status}  {each.tool}  conversation {each.conversation}" for each in actions]
    if more:
        lines.append(f"There are more: these are the newest {len(actions)}. Call {AWAIT} for those, then this again.")
    said = "\n".join(lines) or "Nothing waits, and no outcome is undelivered."
    return _result(said, {"items": items, "more": more}, is_error=False)


def _result(text: str, structured: Mapping[str, Any], *, is_error: bool) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=json.loads(json.dumps(structured, default=str)),
        is_error=is_error,
    )
