"""The changes of a workspace as its open pages hear them: read, and written out, once for all of them.

Owns the newest ones in memory for as long as a page is open. Must never miss one that the table had when it was asked:
what is kept is used only by who came before the reading of it began.
"""

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from console.workspaces import changes, db
from console.workspaces.models import Change

KEPT = 500
READ = 200
_tails: dict[str, "Tail"] = {}


class Tail:
    """All on one loop."""

    def __init__(self, workspace_id: str) -> None:
        self._workspace_id = workspace_id
        self._kept: deque[tuple[int, str]] = deque(maxlen=KEPT)
        self._since, self._last = -1, -1  # everything after the one is kept, up to the other
        self._begun, self._done = 0, 0  # readings, by number
        self._one_at_a_time = asyncio.Lock()
        self.pages = 0

    async def after(self, seq: int) -> list[tuple[int, str]]:
        """By number, without a gap: the changes after `seq`, as the texts of their messages. READ or more: there may be
        further ones."""
        begun = self._begun
        async with self._one_at_a_time:
            if self._done <= begun:  # no reading began since this call did and came to its end
                self._begun += 1
                number = self._begun
                await self._read(seq)
                self._done = number
            if self._since <= seq:
                return [each for each in self._kept if each[0] > seq]
        return _told(await db.read(changes.after, self._workspace_id, seq, limit=READ))

    async def _read(self, seq: int) -> None:
        if self._since < 0:
            self._since = self._last = seq
        while found := await db.read(changes.after, self._workspace_id, self._last, limit=READ):
            self._kept.extend(_told(found))
            self._last = found[-1].seq
            self._since = max(self._since, self._kept[0][0] - 1)
            if len(found) < READ:
                break


def _told(found: list[Change]) -> list[tuple[int, str]]:
    return [(change.seq, _text(change)) for change in found]


def _text(change: Change) -> str:
    told = {"seq": change.seq, "subject": change.subject, "id": change.subject_id, "status": change.status}
    return json.dumps(told)


@contextmanager
def of(workspace_id: str) -> Iterator[Tail]:
    """For as long as a page is open."""
    tail = _tails.setdefault(workspace_id, Tail(workspace_id))
    tail.pages += 1
    try:
        yield tail
    finally:
        tail.pages -= 1
        if not tail.pages:
            del _tails[workspace_id]
