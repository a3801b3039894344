"""Members and their permissions, one by one; `sandboxes:run` stands apart. Acts are in `workspaces.members`."""

from typing import Any

from django.db import transaction
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from approvals import leaving
from console.workspaces import members, owners
from console.workspaces import permissions as names
from console.workspaces.errors import SandgateError
from console.workspaces.models import Member, Permission

from .absences import moment
from .shell import givers_in, member_page, say
from .words import listed as listed_names
from .words import number

COLUMNS = tuple(name for name in names.ALL if name != names.SANDBOXES_RUN)
METHODS = ("GET", "HEAD", "POST")
OWNER = "owner-"  # and an agent's id: the name of a field


@member_page("members", names.MEMBERS_MANAGE, methods=METHODS)
def listed(request: Any) -> HttpResponseBase:
    """The matrix; POST adds a member by address. A first password is on this one page and nowhere else."""
    shown: dict[str, Any] = {}
    if request.method == "POST":
        shown = _added(request)
        if "error" not in shown and not shown["password"]:
            say(request, f"{shown['added']} is a member now, with no permission yet.")
            return redirect("member", request.here.workspace.pk, shown["added"].pk)
    shown |= {"rows": _rows(request.here.workspace.pk), "columns": COLUMNS, "run": names.SANDBOXES_RUN}
    return render(request, "members/list.html", shown, status=400 if "error" in shown else 200)


def _added(request: Any) -> dict[str, Any]:
    email, name = request.POST.get("email", "").strip(), request.POST.get("name", "").strip()
    if "@" not in email or not name:
        return {"error": "A member has a name and an email address.", "email": email, "name": name}
    try:
        member, password = members.add_by_email(request.here.workspace, email=email, name=name, by=request.here.member)
    except SandgateError as caught:
        return {"error": caught.detail, "email": email, "name": name}
    return {"added": member, "password": password}


def _rows(workspace_id: str) -> list[dict[str, Any]]:
    found = (
        Member.objects.current().filter(workspace_id=workspace_id).select_related("user").order_by("user__name", "pk")
    )
    given = Permission.objects.filter(member__in=found).select_related("given_by__user")
    by_member: dict[str, dict[str, Permission]] = {}
    for each in given:
        by_member.setdefault(str(each.member_id), {})[each.name] = each
    return [
        {
            "member": member,
            "away": f"away until {moment(member.away_until)}" if member.is_away and member.away_until else "",
            "has": [(name, name in by_member.get(member.pk, {})) for name in COLUMNS],
            "run": by_member.get(member.pk, {}).get(names.SANDBOXES_RUN),
        }
        for member in found
    ]


@member_page("members", names.MEMBERS_MANAGE, methods=METHODS)
def permissions(request: Any, member_id: str) -> HttpResponseBase:
    """What is ticked, and their end here. A form that is refused comes back as it was sent, with why."""
    member = _member(request, member_id)
    ticked, refused = set(member.permissions.values_list("name", flat=True)), ""
    if request.method == "POST":
        try:
            _act(request, member)
            return redirect("members", request.here.workspace.pk)
        except SandgateError as caught:
            refused = caught.detail
            ticked = ticked if _removes(request) else set(request.POST.getlist("permission"))
    at_removal = _removes(request) and member != request.here.member  # who has no such form of their own
    shown = _shown(request, member, ticked) | {"refused": refused, "of_removal": at_removal}
    return render(request, "members/member.html", shown, status=400 if refused else 200)


def _removes(request: Any) -> bool:
    return bool(request.POST.get("act") == "remove")


def _shown(request: Any, member: Member, ticked: set[str]) -> dict[str, Any]:
    to_self = members.to_self(member, request.here.member)
    has_run = member.permissions.filter(name=names.SANDBOXES_RUN).exists()
    return {
        "member": member,
        "choices": [(name, names.MEANINGS[name], name in ticked) for name in COLUMNS],
        "run": (names.SANDBOXES_RUN, names.SANDBOXES_RUN in ticked),
        "cannot_take_run": to_self and not has_run,
        "givers": listed_names(givers_in(request.here.workspace, but=request.here.member)),
        "agents": owners.owned(member),
        "heirs": _others(request, member),
    }


def _act(request: Any, member: Member) -> None:
    by = request.here.member
    if _removes(request):
        cancelled = leaving.remove(member, by=by, heirs=_heirs(request))
        ended = f" {number(cancelled, 'action')} that they approved did not start." if cancelled else ""
        say(request, f"{member} is no member any more. What was open for them here closes within 5 seconds.{ended}")
        return
    wanted = set(request.POST.getlist("permission")) & set(names.ALL)
    had = set(member.permissions.values_list("name", flat=True))
    with transaction.atomic():  # all of the form or nothing
        for name in sorted(wanted - had):
            members.give(member, name, by=by)
        for name in sorted(had - wanted):
            members.take(member, name, by=by)
    say(request, f"{member} has these permissions from now on.")


def _others(request: Any, member: Member) -> list[Member]:
    found = Member.objects.current().filter(workspace=request.here.workspace).exclude(pk=member.pk)
    return list(found.select_related("user").order_by("user__name", "pk"))


def _heirs(request: Any) -> dict[str, Member | None]:
    """Who takes over each agent that the form showed; an empty choice is nobody."""
    chosen = {name.removeprefix(OWNER): str(value) for name, value in request.POST.items() if name.startswith(OWNER)}
    return {agent_id: _member(request, member_id) if member_id else None for agent_id, member_id in chosen.items()}


def _member(request: Any, member_id: str) -> Member:
    found = Member.objects.current().filter(workspace=request.here.workspace, pk=member_id)
    member = found.select_related("user", "workspace").first()
    if member is None:
        raise Http404
    return member
