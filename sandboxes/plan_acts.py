"""What doors may do with plans: propose one in its conversation's sandbox, follow it, decide by key.

Each call is validated, bound and kept as if it came alone; then all are recorded at once, or none. Must never look into
a sandbox before every call is known to be one that can be asked about.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from approvals import gate, payloads
from approvals.errors import ItemDenied
from approvals.models import Action, Plan
from approvals.plans import deciding, fate, proposing
from console.workspaces import bus, db
from console.workspaces.errors import Invalid, NotFound, SandgateError
from console.workspaces.keys import Caller
from console.workspaces.models import Agent

from . import acts, based, host, lifecycle, protection, scripts, tool_acts, toolsets
from .models import Sandbox
from .profiles import NewSandbox
from .runner.pinning import SCRIPT_BYTES

ITEMS = frozenset({"run", "write", "edit", "publish"})
"""Acts that have a place in an order; what only looks never asks, and is called by itself."""


@dataclass(frozen=True)
class Call:
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Followed:
    """A plan with its items, in order, as they are now."""

    plan: Plan
    items: Sequence[Action]


async def propose(
    caller: Caller,
    calls: Sequence[Call],
    *,
    conversation: str,
    title: str = "",
    reason: str = "",
    idempotency_key: str | None = None,
) -> proposing.Recorded:
    """Raises what a single call raises, with `item` and the field inside `calls`; ItemDenied; TooMany."""
    agent = await db.read(lifecycle.check_enabled, caller)
    assert agent is not None, "the door lets agents' keys in alone"
    known = await db.read(proposing.with_key, caller, idempotency_key) if idempotency_key else None
    made = [_made(n, call, agent) for n, call in enumerate(calls)]
    sandbox = await _sandbox(caller, conversation, known)
    items = [await _validated(n, each, caller, sandbox, agent, conversation, reason) for n, each in enumerate(made)]
    proposal = proposing.PlanProposal(items, title, reason, idempotency_key)
    if idempotency_key and (earlier := await db.read(proposing.earlier, proposal)):
        return proposing.Recorded(earlier.pk)
    _check_paths(items)
    lifecycle.check_live(sandbox)
    bound = await _all_bound(items)
    await db.read(proposing.check_room, replace(proposal, items=[item for item, _ in bound]))
    kept = [await acts.kept(item, seen) for item, seen in bound]
    return await _submitted(sandbox, agent, replace(proposal, items=kept))


async def _submitted(sandbox: Sandbox, agent: Agent, proposal: proposing.PlanProposal) -> proposing.Recorded:
    host.hub().boxes.protect(sandbox.pk, protection.of(agent))
    answer = await db.write(proposing.submit, proposal)
    if isinstance(answer, proposing.Recorded):
        await db.write(lifecycle.touch, sandbox.pk)
        return answer
    denied = await db.read(acts.find_action, proposal.caller, answer.action_id)
    raise ItemDenied(
        f"Item {answer.place} of the plan is denied, so nothing of it was proposed. {denied.end_reason}",
        item=answer.place, action_id=denied.pk, reason=denied.end_reason, decided_by=denied.decided_by,
    )  # fmt: skip


def _made(n: int, call: Call, agent: Agent) -> tuple[toolsets.Tool, dict[str, Any]]:
    with _item(n):
        tool = toolsets.tool(agent.toolset, call.tool)
        if tool.act.NAME not in ITEMS:
            raise Invalid(f"`{call.tool}` never asks, so it is no item of a plan. Call it by itself.", field="tool")
        return tool, tool.arguments(call.arguments)


async def _sandbox(caller: Caller, conversation: str, known: Plan | None) -> Sandbox:
    if known is not None:
        return (await db.read(acts.place, caller, known.sandbox_id))[0]
    hub = host.hub()
    return await hub.ask(hub.boxes.for_conversation(caller, conversation, NewSandbox()))


async def _validated(
    n: int,
    made: tuple[toolsets.Tool, dict[str, Any]],
    caller: Caller,
    sandbox: Sandbox,
    agent: Agent,
    conversation: str,
    reason: str,
) -> gate.Proposal:
    tool, arguments = made
    with _item(n):
        try:
            return await acts.validated(
                caller, sandbox, agent, tool.act.NAME, arguments, version=tool.act.VERSION,
                conversation=conversation, reason=reason,
            )  # fmt: skip
        except Invalid as error:
            raise tool.bad(error) from error


async def _all_bound(items: Sequence[gate.Proposal]) -> list[tuple[gate.Proposal, list[bytes]]]:
    """A script that an item before it writes is bound to what that makes of it."""
    found: list[tuple[gate.Proposal, list[bytes]]] = []
    made: dict[str, bytes | None] = {}
    for n, item in enumerate(items):
        with _item(n):
            if item.kind == "write":
                bound = await based.on_what_is_there(item, is_asked=True)
                made[posixpath.normpath(item.arguments["path"])] = _becomes(*bound)
            else:
                bound = await scripts.bound(item, is_asked=True, made=made)
        found.append(bound)
    return found


def _becomes(item: gate.Proposal, seen: Sequence[bytes]) -> bytes | None:
    """Of the file that it writes: an edit's draft has the old text and the new. None for what is too long to be bound,
    and stays out of memory."""
    if "edits" in item.arguments:
        return seen[-1]
    content = item.arguments["content"]
    is_long = not isinstance(content, str) and content["size"] > SCRIPT_BYTES
    return None if is_long else payloads.content(content)


def _check_paths(items: Sequence[gate.Proposal]) -> None:
    """What a later change of the same file would be made for is not there yet, so nobody could see it."""
    first: dict[str, int] = {}
    for n, item in enumerate(items):
        if item.kind != "write":
            continue
        path = posixpath.normpath(item.arguments["path"])
        if (before := first.setdefault(path, n)) != n:
            why = f"Items {before + 1} and {n + 1} both change {path}. A plan changes a file once: make it one change, "
            raise Invalid(f"{why}or propose the second when the first is done.", field=f"calls.{n}.arguments.path")


@contextmanager
def _item(n: int) -> Iterator[None]:
    """What is wrong with one call names it."""
    try:
        yield
    except SandgateError as error:
        error.fields["item"] = n + 1
        if "field" in error.fields:
            error.fields["field"] = f"calls.{n}.{error.fields['field']}"
        error.detail = f"Item {n + 1}: {error.detail}"
        raise


def find(caller: Caller, plan_id: str) -> Followed:
    plan = Plan.objects.visible_to(caller).filter(pk=plan_id).first()
    if plan is None:
        raise NotFound("plan", plan_id)
    return Followed(plan, list(plan.in_order().select_related("agent").prefetch_related("decisions__by__user")))


async def settled(caller: Caller, plan_id: str, *, wait_s: float) -> Followed:
    """As soon as all of it ended, or as it is after `wait_s`. Holds no thread and no database handle while it waits."""

    async def look() -> Followed | None:
        found = await db.read(find, caller, plan_id)
        return None if fate.is_open(found.items) else found

    first = await db.read(find, caller, plan_id)
    if wait_s <= 0 or not fate.is_open(first.items):
        return first
    topics = [f"action:{item.pk}" for item in first.items]
    ended = await bus.wait_for(look, *topics, timeout_s=wait_s)
    return ended if ended is not None else await db.read(find, caller, plan_id)


async def decide_by_key(caller: Caller, plan_id: str, verdict: str, **said: Any) -> Followed:
    found = await db.read(find, caller, plan_id)
    await db.write(deciding.decide_by_key, found.plan, verdict, caller=caller, **said)
    return await db.read(find, caller, plan_id)


async def said(caller: Caller, items: Sequence[Action]) -> list[dict[str, Any] | None]:
    """Each item's outcome with what it printed; None for those that are open."""
    toolset = await db.read(tool_acts.pinned, caller)
    return [await tool_acts.with_text(toolset, item) for item in items]
