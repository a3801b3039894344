"""Keys: made here, shown once on the page that answers the form, revoked here. A secret is in no session and no log."""

from typing import Any

from django.db.models import Case, Q, Value, When
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from console.workspaces import keys, permissions
from console.workspaces.errors import SandgateError
from console.workspaces.models import Agent, Key

from . import once
from .shell import complain, member_page, say


@member_page("keys", permissions.KEYS_MANAGE, methods=("GET", "HEAD", "POST"))
@sensitive_variables("secret")
def listed(request: Any) -> HttpResponseBase:
    """POST makes a key and answers with its secret: never by redirect, which would have to keep it somewhere."""
    shown: dict[str, Any] = {"error": ""}
    if request.method == "POST" and not once.is_first(request):
        complain(request, "This form made its key already, and no second one. A key that you did not copy: revoke it.")
        return redirect("keys", request.here.workspace.pk)
    if request.method == "POST":
        try:
            key, secret = _make(request)
            shown |= {"made": key, "secret": secret}
        except SandgateError as caught:
            shown |= {"error": caught.detail, "sent": request.POST, "sent_may": request.POST.getlist("may")}
    return render(request, "keys/list.html", {**shown, **_listed(request)}, status=400 if shown["error"] else 200)


def _make(request: Any) -> tuple[Key, str]:
    post, here = request.POST, request.here
    days = int(days) if (days := post.get("days", "")).isascii() and days.isdigit() else 0
    common = {"name": post.get("name", ""), "by": here.member, "days": days}
    if post.get("of") != "member":
        agent = Agent.objects.current().filter(workspace=here.workspace, pk=post.get("of", "")).first()
        if agent is None:
            raise Http404
        return keys.make_agent_key(agent, **common)
    return keys.make_member_key(here.member, may=post.getlist("may"), **common)


def _listed(request: Any) -> dict[str, Any]:
    here = request.here
    over = Q(revoked_at__isnull=False) | Q(expires_at__lt=timezone.now())
    found = Key.objects.filter(workspace=here.workspace).select_related("agent", "member__user")
    return {
        "keys": found.annotate(over=Case(When(over, then=Value(1)), default=Value(0))).order_by("over", "-created_at")[
            :200
        ],
        "agents": Agent.objects.current().filter(workspace=here.workspace).order_by("name"),
        "may": [(name, permissions.MEANINGS[name]) for name in permissions.ALL if name in here.may],
        "once": once.token(),
        "days": keys.AGENT_KEY_DAYS,
        "most_days": keys.MAX_DAYS,
    }


@member_page("keys", permissions.KEYS_MANAGE, methods=("POST",))
def revoke(request: Any, key_id: str) -> HttpResponseBase:
    key = Key.objects.filter(workspace=request.here.workspace, pk=key_id).first()
    if key is None:
        raise Http404
    if keys.revoke(key, by=request.here.member):
        say(request, f"{key.name} is revoked. Calls with it are refused from now on.")
    return redirect("keys", request.here.workspace.pk)
