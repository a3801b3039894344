"""Which colleagues have which card open now, so that two do not read the same thing without knowing.

Lives as long as their sockets do, in this process alone; nothing of it is kept. Must never hold a decision up, and
never tell of anybody outside the workspace.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from console.workspaces import bus
from console.workspaces.models import Member

from . import rows
from .words import listed

_lock = threading.Lock()
_open: dict[object, tuple[str, str, str]] = {}  # one for each socket: workspace, member, action


def topic(workspace_id: str) -> str:
    return f"looking:{workspace_id}"


@contextmanager
def at(workspace_id: str, member_id: str, action_id: str) -> Iterator[None]:
    """For as long as the socket is open; `action_id` is empty for a page without a card."""
    mark = object()
    if action_id:
        _set(mark, (workspace_id, member_id, action_id))
    try:
        yield
    finally:
        if action_id:
            _set(mark, None)


def _set(mark: object, who: tuple[str, str, str] | None) -> None:
    with _lock:
        workspace_id = (who or _open[mark])[0]
        if who:
            _open[mark] = who
        else:
            del _open[mark]
    bus.announce(topic(workspace_id))


def others(workspace_id: str, *, but: str) -> dict[str, list[str]]:
    """Action → ids of the members who look at it, without `but`."""
    with _lock:
        found = {(action, member) for place, member, action in _open.values() if place == workspace_id}
    by_action: dict[str, list[str]] = {}
    for action, member in sorted(found):
        if member != but:
            by_action.setdefault(action, []).append(member)
    return by_action


def names(viewer: Member) -> dict[str, str]:
    """Action → `Ines is looking`."""
    found = others(viewer.workspace_id, but=viewer.pk)
    ids = {member for members in found.values() for member in members}
    people = Member.objects.filter(pk__in=ids).select_related("user") if ids else []
    known = {member.pk: str(member) for member in people}
    return {action: _said([known[each] for each in members if each in known]) for action, members in found.items()}


def _said(people: list[str]) -> str:
    return f"{listed(people)} {'is' if len(people) == 1 else 'are'} looking" if people else ""


def mark(listed_rows: Iterable[rows.Row], viewer: Member) -> None:
    said = names(viewer)
    for row in listed_rows:
        row.looking = said.get(row.action.pk, "") if row.action.status == "pending" else ""
