"""What a page fetches of an action when it hears of a change: each part asks for what it shows and for no more, since
each open page fetches it.

Must never draw an action's text, nor say that it was shown: both are the card's.
"""

from collections.abc import Callable
from typing import Any

from approvals import decisions, showing, told, votes
from approvals.models import Action
from console.workspaces.models import Member

from . import fates, kept, looking, plan_cards, rows, voting

Fragment = tuple[str, dict[str, Any]]
"""A template and what it is given."""


def row(request: Any, action: Action) -> Fragment:
    (found,) = marked(request, rows.of([action]))
    return "partials/_row.html", {"row": found, "open_id": request.GET.get("open", ""), **read(request)}


def marked(request: Any, found: list[rows.Row]) -> list[rows.Row]:
    looking.mark(found, request.here.member)
    return found


def read(request: Any) -> dict[str, set[str]]:
    return {"read": showing.read_to_end(by=request.here.member, session=request.session.session_key)}


def _votes(request: Any, action: Action) -> Fragment:
    member = request.here.member
    shown = plan_cards.voted(action, member) if action.plan_id else voting.shown(action, member)
    return "partials/_votes.html", {"card": {"action": action, **shown}}


def _looking(request: Any, action: Action) -> Fragment:
    names = looking.names(request.here.member).get(action.pk, "") if action.status == "pending" else ""
    return "partials/_looking.html", {"card": {"action": action, "looking": names}}


def _fate(request: Any, action: Action) -> Fragment:
    member = request.here.member
    if action.plan_id:
        return "partials/_plan_fate_alone.html", {"card": plan_cards.became(action, member)}
    return "partials/_fate_alone.html", {"card": became(action, member)}


def became(action: Action, member: Member) -> dict[str, Any]:
    """What was decided, and what came of it."""
    decision, command = votes.deciding(action), fates.commands_of([action]).get(action.pk)
    return {
        "action": action,
        "fate": fates.fate(action, command),
        "command": command,
        "headline": fates.headline(action, viewer=member, decision=decision),
        "said": fates.said(action, command),
        "told": told.ended(action) if action.status == "denied" else "",
        "sentence": fates.sentence(action),
        "decision": decision,
        "late": decisions.is_deniable_late(action),
        "kept": kept.of_action(member, action),
        "streams": fates.streams([action]).get(action.pk, []),
    }


PARTS: dict[str, Callable[[Any, Action], Fragment]] = {"row": row, "votes": _votes, "looking": _looking, "fate": _fate}
