"""Notices: a reviewer's own email and browser, and for who manages the workspace its webhooks and what they were sent.

Acts are in `approvals.notices.acts`. GET changes nothing, and shows of an address only its host; a secret is shown on
the page that answers the form that made it, and kept in no session.
"""

from typing import Any

from django.http import Http404, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from approvals.draw import one_line
from approvals.models import Action
from approvals.notices import acts, deciding, planning
from approvals.notices.hearing import Hearing
from approvals.notices.models import EVENTS, OWN_EVENTS, Delivery, Webhook
from console.workspaces import permissions
from console.workspaces.errors import Invalid, SandgateError

from . import away as people_away
from . import escalation, once
from .shell import complain, member_page, refused, say

NEEDS = (permissions.WORKSPACE_MANAGE, permissions.APPROVALS_REVIEW)
KINDS = {"plain": "A program, signed JSON", "slack": "Slack", "teams": "Teams", "ntfy": "ntfy", "email": "Email"}
EVENT_WORDS = {
    "waiting": ("Something waits", "at most one in 5 minutes, with counts"),
    "flagged": ("It is flagged", "at once"),
    "expiring": ("It expires within the hour", "at once"),
    "escalated": ("Nobody has decided in time", "at once, see below"),
}
STATES = {
    "delivered": ("go", "circle-check", "delivered"),
    "waiting": ("wait", "hourglass", "to be tried"),
    "failed": ("stop", "circle-x", "given up"),
    "moot": ("", "circle-slash", "not needed any more"),
}
DELIVERIES_SHOWN, WAITING_SHOWN = 100, 200


@member_page("notices", *NEEDS, methods=("GET", "HEAD", "POST"))
@sensitive_variables("hook")
def listed(request: Any) -> HttpResponseBase:
    """POST makes a webhook, and answers with its secret."""
    shown: dict[str, Any] = {}
    if request.method == "POST" and permissions.WORKSPACE_MANAGE not in request.here.may:
        return refused(request, permissions.WORKSPACE_MANAGE)
    if request.method == "POST" and not once.is_first(request):
        complain(request, "This form made its webhook already, and no second one.")
        return redirect("notices", request.here.workspace.pk)
    if request.method == "POST":
        try:
            hook = _make(request)
            shown = {"made": hook, "secret": hook.secret if hook.kind == "plain" else ""}
        except SandgateError as wrong:
            field = wrong.fields.get("field", "") if isinstance(wrong, Invalid) else ""
            shown = {"error": wrong.detail, "field": field, "sent": request.POST}
    status = 400 if "error" in shown else 200
    return render(request, "notices/notices.html", {**_shown(request), **shown}, status=status)


def _make(request: Any) -> Webhook:
    post = request.POST
    return acts.make(
        kind=post.get("kind", ""), target=post.get("target", ""), events=post.getlist("events"), by=request.here.member
    )


def _shown(request: Any) -> dict[str, Any]:
    here, post = request.here, request.POST if request.method == "POST" else None
    manages = permissions.WORKSPACE_MANAGE in here.may
    kept = Webhook.objects.kept().shared().filter(workspace=here.workspace).select_related("owner__user")
    return {
        "manages": manages,
        "own_email": acts.has_own_email(here.member),
        "hooks": [_row(hook) for hook in kept.order_by("-pk")] if manages else [],
        "kinds": KINDS.items(),
        "events": [(event, *EVENT_WORDS[event], post is None or event in post.getlist("events")) for event in EVENTS],
        "once": once.token(),
        **people_away.shown(here.member),
        **(escalation.shown(here.workspace) if manages else {}),
    }


def _row(hook: Webhook) -> dict[str, Any]:
    last = hook.deliveries.order_by("-pk").first()
    return {
        "hook": hook,
        "kind": KINDS[hook.kind],
        "is_on": hook.enabled and hook.owner.is_current,
        "owner_left": not hook.owner.is_current,
        "hears": "all" if len(hook.events) == len(EVENTS) else ", ".join(hook.events),
        "last": last,
        "state": STATES[last.status] if last else None,
    }


@member_page("notices", permissions.APPROVALS_REVIEW, methods=("POST",))
def own_email(request: Any) -> HttpResponseBase:
    on = bool(request.POST.get("on"))
    acts.set_own_email(on=on, by=request.here.member)
    say(request, "You are told by email from now on." if on else "You get no more email.")
    return redirect("notices", request.here.workspace.pk)


@member_page("notices", permissions.WORKSPACE_MANAGE)
def log(request: Any, webhook_id: str) -> HttpResponseBase:
    hook = _hook(request, webhook_id)
    rows = Delivery.objects.filter(webhook=hook).prefetch_related("attempts").order_by("-pk")[:DELIVERIES_SHOWN]
    found = [(row, EVENT_WORDS.get(row.event, ("A test", ""))[0], STATES[row.status]) for row in rows]
    return render(request, "notices/log.html", {**_row(hook), "deliveries": found})


@member_page("notices", permissions.WORKSPACE_MANAGE, methods=("POST",))
def change(request: Any, webhook_id: str, act: str) -> HttpResponseBase:
    """On, off, a test, or its end."""
    hook, by = _hook(request, webhook_id), request.here.member
    to = redirect("notices", request.here.workspace.pk)
    try:
        if act == "test":
            acts.test(hook, by=by)
            say(request, "A test is on its way. This page says how it went; look again in some seconds.")
            to = redirect("notices-log", request.here.workspace.pk, hook.pk)
        elif act in ("on", "off"):
            acts.turn(hook, on=act == "on", by=by)
            say(request, f"The webhook to {one_line(hook.shown)} is {act}.")
        elif act == "end":
            acts.end(hook, by=by)
            say(request, f"The webhook to {one_line(hook.shown)} has ended.")
        else:
            raise Http404
    except SandgateError as wrong:
        complain(request, wrong.detail)
    return to


@member_page("notices", permissions.APPROVALS_REVIEW)
def waiting(request: Any) -> HttpResponseBase:
    """For the browser's own notices: what this reviewer hears of, by tool and agent, why, and in whose place."""
    here, now = request.here, timezone.now()
    actions = planning.waiting([here.workspace.pk]).get(here.workspace.pk, [])
    heard = Hearing(here.workspace.pk, actions).by(here.member, lambda _: frozenset(OWN_EVENTS))
    known = {each.id: each for each in actions if each.id in heard}
    rows = Action.objects.filter(pk__in=list(known)[:WAITING_SHOWN]).select_related("agent").order_by("pk")
    items = [
        {
            "id": row.pk,
            "agent": one_line(str(row.agent)),
            "tool": one_line(row.tool),
            "link": reverse("card", args=[here.workspace.pk, row.pk]),
            "reasons": sorted(deciding.reasons(known[row.pk], now=now) & heard[row.pk].reasons),
            "instead_of": [one_line(str(member)) for member in heard[row.pk].instead_of],
        }
        for row in rows.defer("arguments", "result")
    ]
    return JsonResponse({"link": reverse("queue", args=[here.workspace.pk]), "items": items})


def _hook(request: Any, webhook_id: str) -> Webhook:
    found = Webhook.objects.kept().shared().filter(workspace=request.here.workspace).select_related("owner__user")
    if (hook := found.filter(pk=webhook_id).first()) is None:
        raise Http404
    return hook
