"""What a notice says: tool, agent, how many, and a link. The command, its reason and its conversation are not read.

Names are drawn as everywhere (`approvals.draw`): what could pass for more than a name is shown as what it is.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse

from approvals.draw import one_line
from approvals.models import Action
from console.workspaces.models import Member

from . import planning
from .models import Delivery

MOST_LINES = 10
WHY = {"flagged": "flagged", "expiring": "expires within the hour", "escalated": "nobody has decided yet"}


@dataclass(frozen=True)
class Notice:
    id: str
    event: str
    workspace_id: str
    workspace: str
    items: tuple[tuple[str, str, int], ...]  # agent, tool, how many
    link: str
    instead_of: tuple[tuple[str, str, int], ...] = ()  # who is away, until when, and how many of them are theirs

    @property
    def count(self) -> int:
        return sum(count for _, _, count in self.items)

    @property
    def title(self) -> str:
        if self.event == "test":
            return "Sandgate can reach you"
        acts = "1 action waits" if self.count == 1 else f"{self.count} actions wait"
        why = f" ({WHY[self.event]})" if self.event in WHY else ""
        return f"{acts} for approval in {self.workspace}{why}"

    @property
    def lines(self) -> list[str]:
        if self.event == "test":
            return [f"A test from {self.workspace}. Nothing waits because of it."]
        shown = [f"{agent}: {tool}{f' ×{count}' if count > 1 else ''}" for agent, tool, count in self.items]
        more = len(shown) - MOST_LINES
        others = [f"{count} for {name}, who is away until {until}" for name, until, count in self.instead_of]
        return [*shown[:MOST_LINES], *([f"and {more} more"] if more > 0 else []), *others]


def notice(delivery: Delivery) -> Notice | None:
    """As it is now. None when nothing of it waits any more, and so nobody needs to come."""
    workspace = delivery.webhook.workspace
    ids, instead_of = _still(delivery)
    rows = list(Action.objects.pending().filter(pk__in=ids).values_list("pk", "agent__name", "tool"))
    if not rows and delivery.event != "test":
        return None
    counted = Counter((one_line(agent or "a key"), one_line(tool)) for _, agent, tool in rows)
    return Notice(
        id=delivery.pk, event=delivery.event, workspace_id=workspace.pk, workspace=one_line(workspace.name),
        items=tuple((agent, tool, count) for (agent, tool), count in sorted(counted.items())),
        link=_link(workspace.pk, [pk for pk, *_ in rows]), instead_of=instead_of,
    )  # fmt: skip


def _still(delivery: Delivery) -> tuple[Collection[str], tuple[tuple[str, str, int], ...]]:
    """Ids of what is still to be told, and in whose place. A reviewer may have turned email off since, or be away."""
    told = list(delivery.told.values_list("action_id", "event"))
    if delivery.webhook.member is None:
        return {action_id for action_id, _ in told}, ()
    heard = planning.heard(delivery.webhook, {action_id for action_id, _ in told})
    ids = {action_id for action_id, event in told if action_id in heard and event in heard[action_id].reasons}
    counted = Counter(member for action_id in ids for member in heard[action_id].instead_of)
    return ids, tuple((one_line(str(member)), _until(member), count) for member, count in counted.items())


def _until(member: Member) -> str:
    return f"{member.away_until:%Y-%m-%d %H:%M} UTC"


def _link(workspace_id: str, action_ids: list[str]) -> str:
    """To the card of the only one, else to the queue. Opening it decides nothing."""
    one = len(action_ids) == 1
    where = reverse("card", args=[workspace_id, action_ids[0]]) if one else reverse("queue", args=[workspace_id])
    return f"{settings.SITE}{where}"
