"""The MCP server: lists an agent's tools as pinned, and calls them.

Each request finds its caller and its conversation by itself, since one revision of the protocol has no sessions. A call
that waits for a person is answered in time; cancelled before, its action is taken back if it has not started.
"""

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from time import monotonic
from typing import Any
from unicodedata import category
from urllib.parse import unquote

from django.conf import settings
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from approvals import twins
from approvals.models import Action
from console.api import waits
from console.api.schemas.shared import CONTROLS
from console.workspaces import bus, db, permissions
from console.workspaces.errors import Invalid, SandgateError
from console.workspaces.keys import Caller
from sandboxes import acts, tool_acts
from sandboxes.errors import TooManySandboxes
from sandboxes.toolsets import NoSuchTool, schemas
from sandboxes.toolsets import arguments as check

from . import shown

CALL_S = 50.0
"""A gated call answers within 55 s, its sandbox's start included."""
PROGRESS_EVERY_S = 5.0
LISTED = 50
SAYS, FOLLOWS = "sandgate/reason", "sandgate/parent_action"
"""In a call's `_meta`: what REST has beside the arguments. No tool's schema has it: pinned ones stay as they are."""
SAYS_MOST, FOLLOWS_MOST = 2000, 40
CONVERSATION = re.compile(r"/mcp/c/(?P<name>[^/]+)/?\Z")
SESSIONS_OWN = re.compile(r"mcp-(?P<id>[0-9a-f]{32})")
INSTRUCTIONS = (
    "A sandbox to work in. Commands and changes may wait for a person to approve them: such a call answers with status "
    "pending and an action_id; go on with await_action. After a restart call list_pending first. Do not propose again "
    "what was denied; read the reason."
)
Context = ServerRequestContext[Any, Any]
_taking_back: set[asyncio.Task[Any]] = set()


def made() -> Server[Any]:
    return Server("sandgate", version="1", instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)


async def list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    """All at once: there are a dozen."""
    who = _caller(ctx)
    known = await db.read(tool_acts.tools, who)
    return ListToolsResult(tools=[*map(shown.tool, known), *shown.own_tools()], ttl_ms=0, cache_scope="private")


async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    who, given = _caller(ctx), params.arguments or {}
    try:
        with waits.waiting(who.key_id):
            if params.name == shown.PENDING:
                schemas.checked(given, shown.NOTHING, example={})
                found = await db.read(_pending, who)
                return shown.pending(found[:LISTED], more=len(found) > LISTED)
            if params.name == shown.AWAIT:
                return await _awaited(ctx, who, given)
            return await _called(ctx, who, params.name, given, _beside(params))
    except NoSuchTool as error:
        raise MCPError(INVALID_PARAMS, error.detail) from error
    except SandgateError as error:
        return shown.refusal(_as_named_here(error))


async def _called(
    ctx: Context, who: Caller, name: str, given: Mapping[str, Any], beside: Mapping[str, str]
) -> CallToolResult:
    until = monotonic() + CALL_S / settings.TIMER_DIVISOR
    proposed = await _proposed(ctx, who, name, given, beside)
    try:
        return await _outcome(ctx, who, proposed.action_id, until=until, joined=proposed.joined)
    except asyncio.CancelledError:
        if not bus.is_closing():  # by its client; when the server stops, nobody took anything back
            task = asyncio.create_task(acts.cancel(who, proposed.action_id))
            _taking_back.add(task)
            task.add_done_callback(_taking_back.discard)
        raise


async def _proposed(
    ctx: Context, who: Caller, name: str, given: Mapping[str, Any], beside: Mapping[str, str]
) -> acts.Proposed:
    """Where there are too many sandboxes, that of a session that is over goes: no tool could delete it."""
    propose = partial(tool_acts.call, who, name, given, conversation=_conversation(ctx, who), **beside)
    try:
        return await propose()
    except TooManySandboxes:
        if not await acts.end_left(who, partial(_is_left, ctx)):
            raise
        return await propose()


def _is_left(ctx: Context, conversation: str) -> bool:
    """It is that of a session which is over, so that no client comes back to it."""
    assert ctx.request is not None
    session = SESSIONS_OWN.fullmatch(conversation)
    return session is not None and not ctx.request.scope["session_is_open"](session["id"])


async def _awaited(ctx: Context, who: Caller, given: Mapping[str, Any]) -> CallToolResult:
    """To the end of what it became, where its file changed and it came back to its reviewers."""
    example = {"action_id": "act_01jd2k7xw3"}
    wanted = schemas.checked(given, shown.AWAIT_SCHEMA, example=example)
    until = monotonic() + wanted.get("wait_s", shown.AWAIT_MOST_S) / settings.TIMER_DIVISOR
    action_id = check.text(wanted["action_id"], field="arguments.action_id", limit_bytes=shown.ID_BYTES)
    while next_id := ((action := await _settled(ctx, who, action_id, until=until)).error or {}).get("next_action"):
        _given(ctx, who, action)
        action_id = next_id
    return await _outcome(ctx, who, action_id, until=until)


async def _outcome(ctx: Context, who: Caller, action_id: str, *, until: float, joined: bool = False) -> CallToolResult:
    action = await _settled(ctx, who, action_id, until=until)
    if same := twins.runs_as(action):
        _given(ctx, who, action)
        return await _outcome(ctx, who, same, until=until, joined=True)
    if action.is_open:
        return shown.outcome(action, None, joined=joined)
    found = await tool_acts.said(who, action)
    assert found is not None
    _given(ctx, who, action)
    return shown.outcome(action, (found["result"] or found)["text"], joined=joined)


async def _settled(ctx: Context, who: Caller, action_id: str, *, until: float) -> Action:
    """As soon as it ended, or as it is then. Meanwhile its client hears that it is still waited for."""
    began = monotonic()
    while True:
        left_s = until - monotonic()
        action = await acts.settled(
            who, action_id, wait_s=max(0.0, min(left_s, PROGRESS_EVERY_S / settings.TIMER_DIVISOR))
        )
        if not action.is_open or monotonic() >= until or bus.is_closing():
            return action
        words = {"pending": "waits for a person", "approved": "starts"}.get(action.status, "runs")
        await ctx.session.report_progress(monotonic() - began, CALL_S, f"{action.pk} {words}")


def _given(ctx: Context, who: Caller, action: Action) -> None:
    """Once the answer has gone out to a client still there, the same call proposes anew instead of joining."""
    if action.asked and who.is_agent and action.delivered_at is None and ctx.request is not None:
        ctx.request.scope["after_send"].append(lambda: acts.mark_delivered(action.pk))


def _pending(who: Caller) -> list[Action]:
    own = Action.objects.visible_to(who).filter(asked=True, delivered_at=None)
    return list(own.order_by("-pk")[: LISTED + 1])


def _caller(ctx: Context) -> Caller:
    assert ctx.request is not None, "an MCP message came by no HTTP request"
    who: Caller = ctx.request.scope["caller"]
    if permissions.SANDBOXES_RUN not in who.permissions:
        try:
            who.need(permissions.SANDBOXES_RUN)
        except SandgateError as error:
            raise MCPError(INVALID_PARAMS, error.detail, {"code": error.code}) from error
    return who


def _beside(params: CallToolRequestParams) -> dict[str, str]:
    """Raises Invalid."""
    meta: Mapping[str, Any] = params.meta or {}
    return {"reason": _short(meta, SAYS, SAYS_MOST), "parent_action": _short(meta, FOLLOWS, FOLLOWS_MOST)}


def _as_named_here(error: SandgateError) -> SandgateError:
    """What is wrong with a text beside the arguments, which REST has under another name."""
    if error.fields.get("field") != "parent_action":
        return error
    return Invalid(error.detail.replace("`parent_action`", f"`{FOLLOWS}` in `_meta`"), field=f"_meta.{FOLLOWS}")


def _short(meta: Mapping[str, Any], name: str, most: int) -> str:
    value = meta.get(name, "")
    if not isinstance(value, str) or len(value) > most or "\0" in value or not check.is_unicode(value):
        detail = f"`{name}` in `_meta` is a text of at most {most} characters, without a NUL or half a surrogate pair."
        raise Invalid(detail, field=f"_meta.{name}")
    return value


def _conversation(ctx: Context, who: Caller) -> str:
    """By address or header, else the protocol's session, else the key's own."""
    assert ctx.request is not None
    named = CONVERSATION.search(ctx.request.scope["path"])
    if found := named["name"] if named else unquote(ctx.request.headers.get("x-conversation", "")):
        return _checked(found)
    session = ctx.request.headers.get("mcp-session-id")
    return f"mcp-{session}" if session else f"default-{who.key_id}"


def _checked(name: str) -> str:
    if len(name) > 200 or any(category(character) in CONTROLS for character in name):
        raise Invalid("A conversation is a name of at most 200 characters on one line.", field="conversation")
    return name
