"""The card of a plan: every item whole, each with a tick, and once it is decided what became of each.

One token covers all that waits: it comes after the last item's text. Must never offer to approve when one item of it
could not be drawn, or could not be approved by this member alone.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils import timezone

from approvals import decisions, selves, showing, votes
from approvals.models import Action, Plan
from approvals.plans import fate as plan_fate
from console.workspaces.models import Member
from sandboxes.models import Command, Sandbox

from . import absences, cards, denials, fates, looking, rows, voting
from .reasons import REASONS
from .words import number

UNDRAWABLE = "An item cannot be shown whole, so the plan can only be denied."


@dataclass
class Item:
    """As a card of its own would show it. `matter`: on a card, and not where only its fate is told."""

    action: Action
    row: rows.Row
    command: Command | None
    left_out: bool
    streams: list[fates.Stream]
    matter: cards.Matter | None = None

    @property
    def digest(self) -> str:
        return f"{self.action.digest[:8]} {self.action.digest[8:16]}"

    @property
    def fate(self) -> fates.Fate:
        return fates.fate(self.action, self.command)

    @property
    def said(self) -> str:
        return fates.said(self.action, self.command)

    @property
    def sentence(self) -> str:
        return fates.sentence(self.action) if self.action.status not in ("pending", "approved", "running") else ""


def card(request: Any, opened: Action, *, unticked: frozenset[str] = frozenset()) -> dict[str, Any]:
    """`opened` is the item whose address this is. `may_approve` is the page's; deciding checks again."""
    plan, member, actions = plan_of(opened), request.here.member, _actions(opened)
    first, voted = _first(actions), _voted(actions, member)
    shown = _became(opened, actions, member)
    undrawable = UNDRAWABLE if _draw(shown["items"], unticked) else ""
    why_not, is_waiting = selves.why_not(first, member), shown["status"] == "pending"
    open_ = is_waiting and plan.expires_at > timezone.now()
    may_decide = (open_ or shown["late"]) and request.here.may_review
    return {
        "template": "partials/_plan.html",
        "reasons": REASONS,
        "ids": " ".join(action.pk for action in actions),
        "wants": _wants(shown["status"], len(actions)),
        "sandbox": Sandbox.objects.filter(pk=plan.sandbox_id).first(),
        "may_decide": may_decide,
        "may_approve": open_ and may_decide and not (why_not or undrawable or voted["voted"]),
        "own": f"{why_not} {absences.others_can(first, member)} You can deny it." if why_not else "",
        "undrawable": undrawable,
        "seen": partial(_token, request, first, voted["voted_on"]) if open_ and not undrawable else "",
        "looking": looking.names(member).get(opened.pk, "") if open_ else "",
        "overtaken": "" if open_ else fates.overtaken(_told(actions), mine=member, decision=shown["decision"]),
        **shown,
        **voted,
    }


def became(opened: Action, member: Member) -> dict[str, Any]:
    """What was decided, and what came of each item."""
    return _became(opened, _actions(opened), member)


def voted(opened: Action, member: Member) -> dict[str, Any]:
    return _voted(_actions(opened), member)


def _actions(opened: Action) -> list[Action]:
    return list(plan_of(opened).in_order().select_related("agent__owner__user", "workspace", "plan"))


def _first(actions: list[Action]) -> Action:
    """The one that a view of all is noted at."""
    return next((action for action in actions if action.status == "pending"), actions[0])


def _voted(actions: list[Action], member: Member) -> dict[str, Any]:
    return voting.shown(_first(actions), member, digest=plan_fate.digest(actions))


def _became(opened: Action, actions: list[Action], member: Member) -> dict[str, Any]:
    status, decision = plan_fate.status(actions), votes.deciding(_told(actions))
    return {
        "action": opened,
        "plan": opened.plan,
        "items": _items(actions),
        "status": status,
        "decision": decision,
        "late": status != "pending" and any(map(decisions.is_deniable_late, actions)),
        "fate": fates.Fate(*fates.STATES[status]),
        "headline": fates.headline(_told(actions), viewer=member, decision=decision),
        "decided_at": next((action.decided_at for action in actions if action.decided_at), None),
    }


def _items(actions: list[Action]) -> list[Item]:
    commands, streams = fates.commands_of(actions), fates.streams(actions)
    return [
        Item(action, row, commands.get(action.pk), plan_fate.left_out(action), streams.get(action.pk, []))
        for action, row in zip(actions, rows.of(actions), strict=True)
    ]


def _draw(items: list[Item], unticked: frozenset[str]) -> bool:
    """Each with its text; whether one that waits has none that can be shown."""
    undrawable = False
    for item in items:
        item.matter = cards.matter(item.action, f"item-{item.action.plan_place}")
        if item.action.status == "pending":
            item.left_out = item.action.pk in unticked
            item.matter.sheets += denials.sheets(item.action) if item.matter.sheets else []
            undrawable = undrawable or bool(item.matter.undrawable)
    return undrawable


def _told(actions: list[Action]) -> Action:
    """The item that says best what was decided: one that was approved, where there is one."""
    return next((action for action in actions if not plan_fate.left_out(action)), actions[0])


def _wants(status: str, count: int) -> str:
    verb = {"pending": "wants to", "approved": "asked to", "running": "asked to"}.get(status, "wanted to")
    return f"{verb} do {number(count, 'thing')}, in order"


def _token(request: Any, first: Action, digest: str) -> str:
    """Given out only together with the whole text of every item, after it."""
    if request.method == "HEAD":
        return ""
    return showing.show(first, to=request.here.member, session=request.session.session_key, digest=digest)


def plan_of(action: Action) -> Plan:
    assert action.plan is not None
    return action.plan
