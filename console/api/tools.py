"""An agent's tools: their schemas as pinned, and calling one. What a call does is an action like any other's."""

import re
from contextlib import nullcontext
from time import monotonic
from typing import Any

from django.db.models import prefetch_related_objects
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router

from approvals import twins
from approvals.models import Action
from console.doorman import body_parsed
from console.workspaces import db, permissions
from console.workspaces.keys import Caller
from sandboxes import acts, tool_acts
from sandboxes.toolsets import Tool

from . import answers, gated, once, schemas
from .body import forget
from .door import caller, door
from .files import FILE_ERRORS
from .waits import WAIT_MOST_S, waiting

router = Router(tags=["Tools"])
RUNS = (permissions.SANDBOXES_RUN,)
REFUSALS = (
    *gated.REFUSALS, *FILE_ERRORS, "bad_edit", "hard_link", "not_utf8", "too_slow", "busy", "no_capacity",
    "create_failed",
)  # fmt: skip
WAIT_S = 25
WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?(?:$|[,;\s])")
PREFER = {
    "in": "header",
    "name": "Prefer",
    "required": False,
    "schema": {"type": "string"},
    "description": f"`wait=N`: for its end, at most N seconds, 0 to {WAIT_MOST_S}; {WAIT_S} without it.",
}


@door(router, "GET", "/tools", may=RUNS, answers={200: schemas.Tools})
async def list_tools(request: HttpRequest, format: schemas.ToolFormat = "mcp") -> schemas.Tools:
    """List the tools of the calling agent. As pinned in its Agent Tools, with JSON Schemas, in the shape that a model's
    API or an MCP client wants. A workspace key has the newest toolset."""
    who = caller(request)
    number, tools = await db.read(lambda: (tool_acts.pinned(who), tool_acts.tools(who)))
    return schemas.Tools(toolset=number, format=format, tools=[_shaped(tool, format) for tool in tools])  # type: ignore[arg-type]


def _shaped(tool: Tool, format: schemas.ToolFormat) -> dict[str, Any]:
    named = {"name": tool.name, "description": tool.description}
    if format == "openai":
        return {"type": "function", "function": {**named, "parameters": tool.schema}}
    return {**named, "input_schema" if format == "anthropic" else "inputSchema": tool.schema}


@door(
    router, "POST", "/tools/{tool}", may=RUNS, gate="approval", answers={200: schemas.Action, 202: schemas.Action},
    fails=REFUSALS, headers=(PREFER,),
)  # fmt: skip
async def call_tool(request: HttpRequest, tool: str, body: schemas.NewToolCall) -> HttpResponseBase:
    """Call a tool. Answered with its action: 200 when it has ended, else 202, and `Location` is where to wait for it.

    `outcome.result.text` is what a model reads; `outcome.text` when there is no result, because it was denied or
    failed. By an agent's key a command or a change may wait for a reviewer; the same call again joins what waits. Bad
    arguments are 422, with the `field` and a right `example`; a fault beside them, with one of the whole body.
    """
    who, wait_s = caller(request), wait_of(request.headers.get("Prefer", ""))
    arguments, body.arguments = body.arguments, {}
    forget(request)
    body_parsed(request.scope)  # type: ignore[attr-defined]
    with waiting(who.key_id) if wait_s and who.is_agent else nullcontext():
        proposed = await tool_acts.call(
            who, tool, arguments, conversation=body.conversation, reason=body.reason,
            parent_action=body.parent_action, idempotency_key=once.scope_of(request) or None,
        )  # fmt: skip
        arguments.clear()  # while it waits for a reviewer, no content stays in memory
        until = monotonic() + wait_s
        action = await acts.settled(who, proposed.action_id, wait_s=wait_s, begun=proposed.begun)
        joined = proposed.joined
        gated.given(request, action)
        if same := twins.runs_as(action):
            joined, action = True, await acts.settled(who, same, wait_s=max(0.0, until - monotonic()))
            gated.given(request, action)
    return await answered(who, action, joined=joined)


def wait_of(prefer: str) -> float:
    """What is no number of seconds is no wish, as with every preference."""
    found = WAIT.search(prefer)
    return min(int(found[1]), WAIT_MOST_S) if found else WAIT_S


async def answered(who: Caller, action: Action, *, joined: bool) -> HttpResponseBase:
    outcome = await tool_acts.said(who, action)
    await db.read(prefetch_related_objects, [action], "decisions__by__user")
    answer = schemas.Action.of(action, outcome=outcome, joined=joined)
    response = await answers.large(answer, size_bytes=_size(outcome))
    if action.is_open:
        response.status_code = 202
        response.headers["Location"] = f"/v1/actions/{action.pk}"
    return response


def _size(outcome: dict[str, Any] | None) -> int:
    result = (outcome or {}).get("result") or {}
    return sum(len(value) for value in result.values() if isinstance(value, str))
