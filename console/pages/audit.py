"""The audit log, for reading: rows as they were written, newest first, and whether the chain holds."""

from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast
from django.http.response import HttpResponseBase
from django.shortcuts import render

from console.workspaces import audit, permissions
from console.workspaces.models import Agent, AuditEntry, Key, Member, Workspace

from .shell import member_page

PAGE = 100
MARKS = {
    "approved": ("go", "check"),
    "succeeded": ("go", "circle-check"),
    "denied": ("stop", "ban"),
    "failed": ("stop", "circle-x"),
    "removed": ("stop", "user-minus"),
    "revoked": ("stop", "ban"),
    "running": ("live", "circle-dot"),
    "pending": ("wait", "hourglass"),
    "unknown": ("wait", "circle-question-mark"),
}


@member_page("audit", permissions.AUDIT_READ)
def listed(request: Any) -> HttpResponseBase:
    here, q = request.here, request.GET.get("q", "").strip()
    found = AuditEntry.objects.filter(workspace=here.workspace).order_by("-seq")
    if q:
        found = found.alias(said=Cast("data", TextField())).filter(
            Q(subject_id=q) | Q(actor_id=q) | Q(event__icontains=q) | Q(hash__startswith=q) | Q(said__icontains=q)
        )
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit():
        found = found.filter(seq__lt=min(int(before), 1 << 62))
    page = list(found[: PAGE + 1])
    shown = {
        "entries": _named(here.workspace, page[:PAGE]),
        "older": page[PAGE - 1].seq if len(page) > PAGE else 0,
        "q": q,
        "broken": list(audit.broken_links(here.workspace)) if request.GET.get("check") else None,
    }
    return render(request, "audit/list.html", shown)


def _named(workspace: Workspace, entries: list[AuditEntry]) -> list[dict[str, Any]]:
    ids = {entry.actor_id for entry in entries} | {entry.subject_id for entry in entries}
    ids |= {value for entry in entries for value in entry.data.values() if isinstance(value, str)}
    names = _names(workspace, ids)
    return [
        {
            "entry": entry,
            "who": names.get(entry.actor_id, entry.actor),
            "is_person": entry.actor == "member",
            "subject": names.get(entry.subject_id, ""),
            "what": entry.event.replace(".", " ").replace("_", " "),
            "mark": MARKS.get(entry.event.rpartition(".")[2], ("", "circle-small")),
            "data": [
                (name, _words(value, names)) for name, value in sorted(entry.data.items()) if _is_said(name, value)
            ],
            "is_action": entry.subject_id.startswith("act_"),
        }
        for entry in entries
    ]


def _is_said(name: str, value: Any) -> bool:
    # The action's card shows the digest and where it ran.
    return name not in ("digest", "profile") and value not in ("", [], {})


def _words(value: Any, names: dict[str, str]) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in sorted(value.items()))
    return names.get(value, value) if isinstance(value, str) else str(value)


def _names(workspace: Workspace, ids: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind in (Agent, Key):
        found |= dict(kind.objects.filter(workspace=workspace, pk__in=ids).values_list("pk", "name"))
    people = Member.objects.filter(workspace=workspace, pk__in=ids).values_list("pk", "user__name")
    return found | dict(people)
