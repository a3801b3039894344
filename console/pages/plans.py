"""Deciding on a plan from its card: the ticked items are approved in one act, the others denied with the reason given.

GET shows nothing here; the card is the queue's. Approving takes the token that came with the whole text of all items.
"""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from approvals import showing
from approvals.errors import NotSeen
from approvals.models import Action, View
from approvals.plans import deciding
from console.workspaces.errors import SandgateError

from . import plan_cards
from .queue import NOT_SHOWN, find, listing, written
from .shell import LOOK, member_page


@member_page("queue", *LOOK, methods=("POST",))
def decide(request: Any, action_id: str) -> HttpResponseBase:
    """`action_id`: of any of its items. What is not ticked on the page that was sent is left out."""
    action, verdict = find(request, action_id), request.POST.get("verdict", "")
    if action.plan is None:
        return redirect("card", request.here.workspace.pk, action.pk)
    waiting = {item.pk for item in deciding.waiting(action.plan)}
    left_out = frozenset(waiting - set(request.POST.getlist("item"))) if verdict == "approve" else frozenset()
    reason = request.POST.get("left_out_reason", "").strip() if left_out else ""
    refusal = _decided(request, action, verdict, left_out=left_out, reason=reason or written(request.POST))
    return _answer(request, action, refusal, unticked=left_out)


def _decided(request: Any, action: Action, verdict: str, *, left_out: frozenset[str], reason: str) -> str:
    """What kept it from being decided; empty when it is."""
    plan, digest = plan_cards.plan_of(action), request.POST.get("digest", "")
    try:
        view = _seen(request, action, digest) if verdict == "approve" else None
        deciding.decide(
            plan, verdict, by=request.here.member, digest=digest, left_out=left_out, reason=reason, via="page",
            view=view,
        )  # fmt: skip
    except NotSeen:
        return NOT_SHOWN
    except SandgateError as error:
        return error.detail
    return ""


def _seen(request: Any, action: Action, digest: str) -> View:
    waiting = deciding.waiting(plan_cards.plan_of(action))
    first, session = waiting[0] if waiting else action, request.session.session_key
    token = request.POST.get("seen", "")
    return showing.seen(first, by=request.here.member, session=session, token=token, digest=digest)


def _answer(request: Any, action: Action, refusal: str, *, unticked: frozenset[str]) -> HttpResponseBase:
    """What was ticked and written and did not get through is on the page that says so."""
    if not refusal and not request.htmx:
        return redirect(reverse("card", args=[request.here.workspace.pk, action.pk]) + "#outcome")
    shown = plan_cards.card(request, find(request, action.pk), unticked=unticked if refusal else frozenset())
    sent = {name: request.POST.get(name, "") for name in ("reason", "left_out_reason")} if refusal else {}
    shown |= {"refusal": refusal, "sent": sent}
    if request.htmx:
        return render(request, shown["template"], {"card": shown})
    page = {**listing(request), "card": shown, "open_id": action.pk}
    return render(request, "queue/queue.html", page, status=409)
