"""The audit log, for reading: rows as they were written, newest first, and whether the chain holds."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import async_to_sync
from django.http import Http404, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from console import audited
from console.workspaces import audit, audit_heads, audit_search, permissions
from console.workspaces.errors import Invalid
from console.workspaces.models import Agent, AuditEntry, Key, Member, Workspace

from . import audit_filters, downloads
from .shell import complain, member_page

PAGE = 100
SHOWN = 5  # faults of a chain
ID_CHARS = 40
MARKS = {
    "approved": ("go", "check"),
    "halted": ("stop", "octagon-x"),
    "lifted": ("go", "check"),
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
    workspace, asked = request.here.workspace, audit_filters.asked(request.GET)
    before = request.GET.get("before", "")
    before = min(int(before), 1 << 62) if before.isascii() and before.isdigit() else None
    try:
        wanted, wrong = audit_filters.sought(workspace, asked), ""
        page, older = audit_search.page(workspace.pk, wanted, limit=PAGE, before=before)
    except Invalid as error:
        page, older, wrong = [], None, error.detail
    query = urlencode({name: value for name, value in asked.items() if value})
    shown = {
        "entries": _named(workspace, page),
        "older": older,
        "asked": asked,
        "asks": bool(query),
        "query": query,
        "wrong": wrong,
        "places": audit_heads.standing(),
        "broken": list(islice(audit.broken_links(workspace), SHOWN)) if request.GET.get("check") else None,
        **audit_filters.choices(workspace),
    }
    return render(request, "audit/list.html", shown, status=400 if wrong else 200)


@member_page("audit", permissions.AUDIT_READ, methods=("GET",))
def export(request: Any, form: str) -> HttpResponseBase:
    """What the page shows, all pages of it, as a file."""
    member = request.here.member
    if form not in audited.TYPES:
        raise Http404
    try:
        wanted = audit_filters.sought(member.workspace, audit_filters.asked(request.GET))
    except Invalid as error:
        complain(request, error.detail)
        return redirect("audit", member.workspace_id)
    content = async_to_sync(audited.export)(
        member.workspace_id, wanted, form=form, actor=audit.Actor("member", member.pk)
    )
    name = f'attachment; filename="audit-{member.workspace_id}.{form}"'
    headers = {**downloads.HEADERS, "Content-Disposition": name}
    return StreamingHttpResponse(content, content_type=audited.TYPES[form], headers=headers)


def _named(workspace: Workspace, entries: list[AuditEntry]) -> list[dict[str, Any]]:
    ids = {entry.actor_id for entry in entries} | {entry.subject_id for entry in entries}
    ids |= {text for entry in entries for text in _texts(entry.data) if len(text) <= ID_CHARS}
    names = _names(workspace, ids)
    return [
        {
            "entry": entry,
            "who": names.get(entry.actor_id, entry.actor),
            "is_person": entry.actor == "member",
            "how": _how(entry),
            "subject": names.get(entry.subject_id, ""),
            "what": entry.event.replace(".", " ").replace("_", " "),
            "mark": MARKS.get(entry.event.rpartition(".")[2], ("", "circle-small")),
            "data": [
                (name.replace("_", " "), _words(value, names))
                for name, value in sorted(entry.data.items())
                if _is_said(name, value)
            ],
            "is_action": entry.subject_id.startswith("act_"),
        }
        for entry in entries
    ]


def _how(entry: AuditEntry) -> str:
    """`browser, 192.0.2.14`: how whoever did it was signed in, and from where."""
    came = entry.data.get("origin") if isinstance(entry.data, dict) else None
    if not isinstance(came, dict):
        return entry.actor
    by = "browser" if came.get("by") == "password" else str(came.get("key", entry.actor))
    return ", ".join(filter(None, (by, str(came.get("address", "")))))


def _is_said(name: str, value: Any) -> bool:
    # The action's card shows the digest and where it ran.
    return name not in ("digest", "profile", "origin") and value not in ("", [], {})


def _words(value: Any, names: dict[str, str]) -> str:
    """Of any structure: `/work/.env (by Alice, reason to rotate it)`, `command mode always, persistent allowed no`."""
    if isinstance(value, list | tuple):
        return ", ".join(_words(each, names) for each in value) or "none"
    if isinstance(value, dict):
        return _of_record(value, names) or "none"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return names.get(value, value) or "none" if isinstance(value, str) else str(value)


def _of_record(record: dict[str, Any], names: dict[str, str]) -> str:
    """What has a path is called by it."""
    rest = {name: each for name, each in sorted(record.items()) if name != "path" and each not in ("", None)}
    parts = [f"{name.replace('_', ' ')} {_nested(_time(name, each), names)}" for name, each in rest.items()]
    if "path" not in record:
        return ", ".join(parts)
    return f"{record['path']} ({', '.join(parts)})" if parts else str(record["path"])


def _time(name: str, value: Any) -> Any:
    """`2030-01-01 00:00 UTC` of what is a time; all else as it is."""
    try:
        at = datetime.fromisoformat(value) if name.endswith("_at") else None
    except (TypeError, ValueError):
        return value
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at and at.tzinfo else value


def _nested(value: Any, names: dict[str, str]) -> str:
    said = _words(value, names)
    return f"({said})" if isinstance(value, dict) and value else said


def _texts(value: Any) -> Iterator[str]:
    """All texts in a structure: ids of people may be among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _names(workspace: Workspace, ids: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind in (Agent, Key):
        found |= dict(kind.objects.filter(workspace=workspace, pk__in=ids).values_list("pk", "name"))
    people = Member.objects.filter(workspace=workspace, pk__in=ids).values_list("pk", "user__name")
    return found | dict(people)
