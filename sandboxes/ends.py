"""How an execution ended, written down: the gate's row and ours together, and what was answered beside them.

Owns that it has an end at all. Must never leave an action running because what became of it cannot be stored: then that
is its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.db import Error, transaction

from approvals import gate
from console.workspaces import db, ledger

from . import answers, artifacts, commands, lifecycle, protection, quarantine
from .errors import NotStored
from .models import Command
from .toolsets import COMMANDS

log = logging.getLogger("sandgate.ends")
NOTHING: Mapping[str, Any] = MappingProxyType({})
AGAIN_S = 5.0
ANSWER = "It ran to its end, but what it answered could not be stored by this server. Look at what it changed."
FAILURE = "It failed, and what was said of that could not be stored by this server."


@transaction.atomic
def succeed(pass_: gate.Pass, result: Mapping[str, Any], command: Command | None = None) -> bool:
    """`command`: its row, of whoever has it."""
    ledger.hold(pass_.workspace_id)
    if pass_.tool in COMMANDS and not result.get("background"):
        commands.end(pass_.action_id, result, command)
    if pass_.tool == "publish":
        artifacts.record(pass_, result)
    protection.record(pass_, result)
    lifecycle.touch(pass_.sandbox_id)
    return gate.finish(pass_, status="succeeded", result=result)


@transaction.atomic
def fail(
    pass_: gate.Pass, *, status: str, code: str, detail: str, began: bool = True, fields: Mapping[str, Any] = NOTHING
) -> bool:
    """`began` is False when it was refused before anything ran or was written: then there was no command. `fields`:
    what else its agent is told of the error."""
    ledger.hold(pass_.workspace_id)
    if pass_.tool in COMMANDS and began:
        commands.lose(pass_.action_id)
    elif pass_.tool in COMMANDS:
        commands.never_began(pass_.action_id)
    known = {} if began else {"executed": False}
    return gate.finish(pass_, status=status, error={**fields, "code": code, "detail": detail, **known})


def lose(pass_: gate.Pass) -> bool:
    """It was running when its sandbox went, and nobody saw its end. A halt is an end that is known."""
    if quarantine.is_halted(pass_.sandbox_id):
        why = f"Sandbox {pass_.sandbox_id} was halted by a reviewer while this ran."
        return fail(pass_, status="failed", code="halted", detail=why)
    why = f"It was running in {pass_.sandbox_id} when that sandbox was lost, and its end is not known."
    return fail(pass_, status="unknown", code="sandbox_gone", detail=why)


async def told(pass_: gate.Pass, result: Mapping[str, Any], command: Command | None = None) -> bool:
    """False when what was answered could not be stored; then that is how it ended."""
    short, long = answers.parts(result)
    try:
        if long:
            await asyncio.to_thread(answers.keep, pass_.action_id, long)
        await db.write(succeed, pass_, short, command)
    except Exception:
        log.exception("What action %s answered could not be stored.", pass_.action_id)
        await _plainly(pass_, status="failed", detail=ANSWER)
        return False
    return True


async def told_failure(
    pass_: gate.Pass, *, status: str, code: str, detail: str, began: bool = True, fields: Mapping[str, Any] = NOTHING
) -> None:
    """As `fail`; with fewer words where these could not be stored."""
    try:
        await db.write(fail, pass_, status=status, code=code, detail=detail, began=began, fields=fields)
    except Exception:
        log.exception("How action %s failed could not be stored.", pass_.action_id)
        await _plainly(pass_, status=status, detail=FAILURE, began=began)


async def _plainly(pass_: gate.Pass, *, status: str, detail: str, began: bool = True) -> None:
    """In words that every database takes, as soon as this one takes any."""
    while True:
        try:
            await db.write(fail, pass_, status=status, code=NotStored.code, detail=detail, began=began)
            return
        except Error:
            log.exception("The end of action %s is not stored yet. The next try is in %g s.", pass_.action_id, AGAIN_S)
            await asyncio.sleep(AGAIN_S)
