"""The queue's socket: ids, numbers and states, never content. A page fetches what it shows through its own URLs.

On connect a snapshot with the number it is true at, then every change of the workspace by number, without a gap: a page
that misses one connects anew; and which members look at which card, by their ids. Who is signed in and may look is
asked again every few seconds, however far behind the page is. Must never take orders, nor stay open and say nothing.
"""

import asyncio
import logging
import re
from typing import Any, Never
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.urls import path

from approvals.models import Action
from console.signed_in import user_of
from console.workspaces import bus, db
from console.workspaces.models import Member, User, Workspace

from . import looking, tail
from .shell import LOOK

CARD = re.compile(r"act_[0-9a-z]{1,36}")
RECHECK_S = 3.0  # with the query and the close: gone within 5 s of losing the right
SIGNED_OUT, NOT_YOURS = 4401, 4404
FAILED = 4000  # the page connects anew; 1011 is not an application's to send

_log = logging.getLogger(__name__)


class Queue(AsyncJsonWebsocketConsumer):
    """One page's queue. `scope["user"]` is signed in and the Origin is ours: `console.signed_in` saw to it."""

    serving: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:  # not in disconnect(): a cancelled consumer never gets there
            if self.serving:
                self.serving.cancel()

    async def connect(self) -> None:
        self.workspace_id: str = self.scope["url_route"]["kwargs"]["workspace_id"]
        self.card = _card(self.scope)
        if not await db.read(_may_look, self.scope["user"], self.workspace_id):
            return await self.close()  # before accepting: 403, whether it is somebody else's or nobody's
        await self.accept()
        self.serving = asyncio.create_task(self._serve())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        """Nothing that a page says here counts."""

    async def _serve(self) -> None:
        try:
            code = await self._push_until_refused()
        except Exception:
            _log.exception("A page's socket failed and is closed; the page connects anew.")
            code = FAILED
        await self.close(code)

    async def _push_until_refused(self) -> int:
        """Asks beside the pushing, which a page that is slow to take it holds up."""
        pushing = asyncio.create_task(self._push())
        try:
            while not (code := await self._refusal()):
                if (await asyncio.wait([pushing], timeout=RECHECK_S / settings.TIMER_DIVISOR))[0]:
                    pushing.result()  # it ends by failing only
            return code
        finally:
            pushing.cancel()

    async def _push(self) -> Never:
        me = await db.read(_member_id, self.scope["user"], self.workspace_id)
        topics = (f"workspace:{self.workspace_id}", looking.topic(self.workspace_id))
        with (
            bus.listening(*topics) as bell,
            looking.at(self.workspace_id, me, self.card),
            tail.of(self.workspace_id) as changes,
        ):
            seq, waiting = await db.read(_snapshot, self.workspace_id)
            await self.send_json({"snapshot": seq, "open": waiting})
            shown: dict[str, list[str]] = {}
            while True:
                seq, shown = await self._tell(changes, seq, shown, me)
                await bell.wait_s(RECHECK_S / settings.TIMER_DIVISOR)

    async def _tell(
        self, changes: tail.Tail, seq: int, shown: dict[str, list[str]], me: str
    ) -> tuple[int, dict[str, list[str]]]:
        """What is new since; answers what is known from here on."""
        more = True
        while more:
            found = await changes.after(seq)
            for number, text in found:
                seq = number
                await self.send(text_data=text)
            more = len(found) >= tail.READ
        if (now := looking.others(self.workspace_id, but=me)) != shown:
            await self.send_json({"looking": now})
        return seq, now

    async def _refusal(self) -> int:
        user = await user_of(self.scope)
        if not isinstance(user, User):
            return SIGNED_OUT
        return 0 if await db.read(_may_look, user, self.workspace_id) else NOT_YOURS


def _may_look(user: User, workspace_id: str) -> bool:
    return Member.objects.of(user).filter(workspace_id=workspace_id, permissions__name__in=LOOK).exists()


def _member_id(user: User, workspace_id: str) -> str:
    return Member.objects.of(user).filter(workspace_id=workspace_id).values_list("pk", flat=True).first() or ""


def _card(scope: Any) -> str:
    """The card that the page shows, which colleagues are told of. It gives no right to anything."""
    named = parse_qs(scope.get("query_string", b"").decode("ascii", "replace")).get("card", [""])[0]
    return named if CARD.fullmatch(named) else ""


def _snapshot(workspace_id: str) -> tuple[int, dict[str, str]]:
    """The number first: a change between the two reads is sent again rather than lost."""
    seq = Workspace.objects.values_list("change_seq", flat=True).get(pk=workspace_id)
    rows = Action.objects.filter(workspace_id=workspace_id, asked=True).open().values_list("pk", "status")
    return seq, dict(rows)


routes = [path("ws/queue/<str:workspace_id>", Queue.as_asgi())]
