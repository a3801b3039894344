"""The card of a plan: every item whole, each with a tick, and once it is decided what became of each.

One token covers all that waits: it comes after the last item's text. Must never offer to approve when one item of it
could not be drawn, or could not be approved by this member alone.
"""

from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from approvals import selves, showing, votes
from approvals.models import Action, Plan
from approvals.plans import fate as plan_fate
from sandboxes.models import Command, Sandbox

from . import cards, denials, fates, looking, rows, voting
from .reasons import REASONS
from .words import listed, number

PARTS = {"card": "partials/_plan.html", "fate": "partials/_plan_fate_alone.html"}
UNDRAWABLE = "An item cannot be shown whole, so the plan can only be denied."


@dataclass
class Item:
    """As a card of its own would show it."""

    action: Action
    row: rows.Row
    matter: cards.Matter
    command: Command | None
    left_out: bool = False
    streams: list[fates.Stream] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return f"{self.action.digest[:8]} {self.action.digest[8:16]}"

    @property
    def fate(self) -> fates.Fate:
        return fates.fate(self.action, self.command)

    @property
    def said(self) -> str:
        return fates.said(self.action)

    @property
    def sentence(self) -> str:
        return fates.sentence(self.action) if self.action.status not in ("pending", "approved", "running") else ""


def card(request: Any, opened: Action, *, unticked: frozenset[str] = frozenset()) -> dict[str, Any]:
    """`opened` is the item whose address this is. `may_approve` is the page's; deciding checks again."""
    plan, member = opened.plan, request.here.member
    assert plan is not None
    actions = list(plan.in_order().select_related("agent__owner__user", "workspace"))
    waiting = [action for action in actions if action.status == "pending"]
    first = waiting[0] if waiting else actions[0]
    items = _items(actions, waiting, unticked)
    undrawable = UNDRAWABLE if any(item.matter.undrawable for item in items if item.action in waiting) else ""
    why_not, open_ = selves.why_not(first, member), bool(waiting) and plan.expires_at > timezone.now()
    voted, digest = voting.shown(first, member), plan_fate.digest(actions)
    may_decide = open_ and request.here.may_review
    status, decision = plan_fate.status(actions), votes.deciding(_told(actions))
    return {
        "template": "partials/_plan.html",
        "parts": PARTS,
        "reasons": REASONS,
        "action": opened,
        "plan": plan,
        "items": items,
        "ids": " ".join(action.pk for action in actions),
        "waiting": len(waiting),
        "wants": _wants(status, len(actions)),
        "status": status,
        "digest": digest,
        "shown_digest": f"{digest[:8]} {digest[8:16]}",
        "sandbox": Sandbox.objects.filter(pk=plan.sandbox_id).first(),
        "may_decide": may_decide,
        "may_approve": may_decide and not (why_not or undrawable or voted["voted"]),
        "own": f"{why_not} {_others(first, request)} You can deny it." if why_not else "",
        "undrawable": undrawable,
        "seen": token(request, first, digest) if open_ and not undrawable else "",
        "looking": looking.names(member).get(opened.pk, "") if open_ else "",
        "fate": fates.Fate(*fates.STATES[status]),
        "headline": fates.headline(_told(actions), viewer=member, decision=decision),
        "decided_at": next((action.decided_at for action in actions if action.decided_at), None),
        "overtaken": "" if open_ else fates.overtaken(_told(actions), mine=member, decision=decision),
        **voted,
    }


def _items(actions: list[Action], waiting: list[Action], unticked: frozenset[str]) -> list[Item]:
    found = zip(actions, rows.of(actions), strict=True)
    commands = fates.commands_of(actions)
    made = [
        Item(action, row, cards.matter(action, f"item-{action.plan_place}"), commands.get(action.pk))
        for action, row in found
    ]
    for item in made:
        item.left_out = item.action.pk in unticked or plan_fate.left_out(item.action)
        if item.action in waiting:
            item.matter.sheets += denials.sheets(item.action) if item.matter.sheets else []
        else:
            item.streams = fates.streams(item.action)
    return made


def _told(actions: list[Action]) -> Action:
    """The item that says best what was decided: one that was approved, where there is one."""
    return next((action for action in actions if not plan_fate.left_out(action)), actions[0])


def _wants(status: str, count: int) -> str:
    verb = {"pending": "wants to", "approved": "asked to", "running": "asked to"}.get(status, "wanted to")
    return f"{verb} do {number(count, 'thing')}, in order"


def _others(action: Action, request: Any) -> str:
    able = [str(other) for other in selves.others(action, request.here.member)]
    return f"{listed(able)} can." if able else "No other reviewer is there."


def token(request: Any, first: Action, digest: str) -> str:
    """Given out only together with the whole text of every item, after it."""
    session = request.session.session_key
    return showing.show(first, to=request.here.member, session=session, digest=digest)


def plan_of(action: Action) -> Plan:
    assert action.plan is not None
    return action.plan
