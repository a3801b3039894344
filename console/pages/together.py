"""Deciding on several actions of the queue: those ticked, or all that a conversation waits for. And telling the server
that a card was read to its end, which approving several takes.

Denying asks for the reason on a page of its own, so that it works without script. GET shows nothing here.
"""

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from approvals import showing, together
from approvals.errors import NotSeen
from approvals.models import Action

from . import rows
from .queue import find, written
from .reasons import REASONS
from .shell import LOOK, complain, member_page

MOST = 100
NOTHING = "Nothing was decided: tick at least one action that still waits."


@member_page("queue", *LOOK, methods=("POST",))
def decide(request: Any) -> HttpResponseBase:
    chosen = _chosen(request)
    verdict = "deny" if "of" in request.POST else request.POST.get("verdict", "")  # a conversation is only denied
    if not chosen or verdict not in ("approve", "deny"):
        complain(request, NOTHING)
        return redirect("queue", request.here.workspace.pk)
    reason = written(request.POST)
    if verdict == "deny" and not reason:
        return _asks_why(request, chosen)
    became = together.decide_each(
        chosen, verdict, by=request.here.member, session=request.session.session_key, reason=reason
    )
    return _told(request, became, "approved" if verdict == "approve" else "denied")


def _chosen(request: Any) -> list[Action]:
    """The ticked ones that wait, in the order of the queue; or all of the conversation of the one named by `of`."""
    if first := request.POST.get("of"):
        return together.of_conversation(find(request, first))
    visible = Action.objects.visible_to(request.here.member).pending()
    ticked = visible.filter(pk__in=request.POST.getlist("action")[:MOST])
    return list(ticked.select_related("agent__owner__user", "workspace").order_by("created_at"))


def _asks_why(request: Any, chosen: list[Action]) -> HttpResponse:
    shown = {
        "rows": rows.of(chosen),
        "of": request.POST.get("of", ""),
        "reasons": REASONS,
        "missing": "reason" in request.POST,
    }
    return render(request, "queue/why.html", shown, status=400 if shown["missing"] else 200)


def _told(request: Any, became: list[together.Became], verb: str) -> HttpResponse:
    shown = list(zip(rows.of([each.action for each in became]), [each.said for each in became], strict=True))
    done = sum(not each.said for each in became)
    return render(request, "queue/together.html", {"became": shown, "done": done, "verb": verb})


@member_page("queue", *LOOK, methods=("POST",))
def read(request: Any, action_id: str) -> HttpResponseBase:
    """Its end was on screen, or who has no script says so below it."""
    action, by = find(request, action_id), request.here.member
    try:
        view = showing.seen(action, by=by, session=request.session.session_key, token=request.POST.get("seen", ""))
    except NotSeen as error:
        if request.htmx:
            return HttpResponse(error.detail, status=409, content_type="text/plain; charset=utf-8")
        complain(request, error.detail)
    else:
        showing.read(view)
    return HttpResponse(status=204) if request.htmx else redirect("queue", request.here.workspace.pk)
