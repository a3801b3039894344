"""`Idempotency-Key` on a POST, or a PUT that is an action: it acts once, and the same call again is given the same
answer.

Calls that are actions hand `scope_of` to the gate, whose actions are their answers; all others are `acting_once`. What
is shown once is never kept, so it is null in an answer given again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Status

from console.workspaces import db, once
from console.workspaces.errors import Invalid, SandgateError
from console.workspaces.keys import Caller

HEADER = "Idempotency-Key"
MOST = 255
PARAMETER = {
    "in": "header",
    "name": HEADER,
    "required": False,
    "schema": {"type": "string", "maxLength": MOST},
    "description": "Of your choice. For 24 h, the same call by the same key with this acts once and is answered the "
    "same; with another body it is refused. What an answer shows once is null the second time.",
}
View = TypeVar("View", bound=Callable[..., Awaitable[Any]])
Doing = Callable[[], Awaitable[Any]]
_turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
_running: set[asyncio.Task[Any]] = set()


def scope_of(request: HttpRequest) -> str:
    """One word for the call's method, address and Idempotency-Key; empty without one."""
    sent = request.headers.get(HEADER, "") if request.method in ("POST", "PUT") else ""
    if not sent:
        return ""
    if len(sent) > MOST:
        raise Invalid(f"`{HEADER}` has {len(sent)} characters; the limit is {MOST}.", field=HEADER)
    return once.fingerprint(request.method, request.path, sent)


def acting_once(view: View, shown_once: tuple[str, ...]) -> View:
    """`view`, and what its answer may show this one time."""

    @wraps(view)
    async def wrapped(request: Any, **values: Any) -> Any:
        if not (scope := scope_of(request)):
            return await view(request, **values)
        work = _in_turn(
            request.auth, scope, once.fingerprint(request.json), lambda: view(request, **values), shown_once
        )
        task = asyncio.create_task(work)
        _running.add(task)
        task.add_done_callback(_running.discard)
        return await asyncio.shield(task)  # a client that leaves and comes again must find the answer

    return wrapped  # type: ignore[return-value]


async def _in_turn(who: Caller, scope: str, body: str, act: Doing, shown_once: tuple[str, ...]) -> Any:
    """Of the same calls at once, one acts; the others wait for its end and give its answer."""
    async with _turns.setdefault((who.key_id, scope), asyncio.Lock()):
        if before := await db.write(once.begin, who.key_id, scope, body):
            return JsonResponse(before.answer, status=before.status)
        try:
            answer = await act()
        except SandgateError:  # a refusal did nothing
            await db.write(once.forget, who.key_id, scope)
            raise
        if (plain := _plain(answer)) is None:
            await db.write(once.forget, who.key_id, scope)
        else:
            kept = {**plain[1], **dict.fromkeys(shown_once)}
            await db.write(once.end, who.key_id, scope, status=plain[0], answer=kept)
        return answer


def _plain(answer: Any) -> tuple[int, dict[str, Any]] | None:
    """None for one that is streamed: a command's long output, there before this call and the same after it."""
    if isinstance(answer, Status):
        return answer.status_code, answer.value.model_dump(mode="json")
    return (answer.status_code, json.loads(answer.content)) if isinstance(answer, HttpResponse) else None
